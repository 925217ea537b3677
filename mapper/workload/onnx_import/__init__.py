"""Import of ONNX files: the graph is run as a torch module, which is then imported as any other."""
