"""Tests of the environment for agents that learn."""
