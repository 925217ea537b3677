"""Calls of torch's own libraries (cuBLAS, cuDNN, flash attention, NCCL): what is measured and
predicted, by kind, with the sizes of each kind and the split into training and held-out points.
"""
