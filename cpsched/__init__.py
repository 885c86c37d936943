"""cpsched."""
