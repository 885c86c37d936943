"""Tests of the figures of plans and of simulations."""
