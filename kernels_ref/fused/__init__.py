"""Kernels that are not one loop nest: quantized and sparse products, attention, recurrences, norms.

Each has a definition in fp32 or fp64, counts of FLOPs, special functions and bytes, and a Triton
version of our own. Unlike those of ``kernels_ref.registry`` they have no mapper operator.
"""
