"""Kernels that really run: plain torch, our own Triton, and what a GPU was measured to need.

Importing this package, or a kernel's description, imports neither torch nor Triton.
"""
