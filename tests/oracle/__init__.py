"""Naive twins: slow, plain, and obviously right; what is fast is compared with them."""
