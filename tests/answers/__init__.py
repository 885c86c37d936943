"""Tests of `cpsched.answers`."""
