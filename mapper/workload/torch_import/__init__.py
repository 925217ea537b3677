"""Import of torch modules: ``torch.export`` on meta tensors, one lowering per aten operator."""
