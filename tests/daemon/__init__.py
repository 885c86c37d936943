"""Tests of `cpsched.daemon`."""
