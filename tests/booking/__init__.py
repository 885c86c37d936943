"""Tests of the booking room."""
