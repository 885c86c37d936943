"""Tests of `cpsched.site.bridge`."""
