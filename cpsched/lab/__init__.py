"""The laboratory, which plays and compares histories of jobs: `sim`, `policies`, `workloads` and `bench`.

Neither the core, which plans one window, nor the site imports it.
"""
