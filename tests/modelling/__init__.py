"""Tests of `cpsched.modelling`."""
