"""Tests of reading and writing documents and logs."""
