"""The kernels written in Triton. Only these modules import it at their top: it finds the names
that a kernel uses among its module's globals.
"""
