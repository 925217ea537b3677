"""Import of the models of Hugging Face's ``transformers``, built from a configuration alone."""
