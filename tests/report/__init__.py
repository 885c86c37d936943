"""Tests of charts and tables."""
