"""Tests of `cpsched.bridge`."""
