"""Tests of the generators, the shipped instances and the fetching of logs."""
