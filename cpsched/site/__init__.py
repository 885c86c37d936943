"""The site, which runs a cluster: `bridge`, `daemon` and `serve`.

It imports the core, which plans one window, and never the laboratory.
"""
