"""MiniZinc: the models, the border, the improver."""
