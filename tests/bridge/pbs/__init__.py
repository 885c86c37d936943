"""Tests of the readers of PBS."""
