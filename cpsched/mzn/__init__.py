"""The same problem through MiniZinc."""
