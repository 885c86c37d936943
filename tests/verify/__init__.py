"""Tests of the independent judge."""
