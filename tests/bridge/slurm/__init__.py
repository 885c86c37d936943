"""Tests of the bridge to Slurm."""
