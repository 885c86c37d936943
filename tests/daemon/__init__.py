"""Tests of `cpsched.site.daemon`."""
