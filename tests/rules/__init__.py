"""Tests of the rule-based schedulers."""
