"""Tests of the live page's server: what it answers, whom, and how much of it."""
