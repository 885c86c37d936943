"""What a process that ends without Python's own end calls."""

from cpsched.rusv import remove_temporary_kernels

__all__ = ["remove_temporary_kernels"]
