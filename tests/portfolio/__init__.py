"""The recipe, its lanes and its promise."""
