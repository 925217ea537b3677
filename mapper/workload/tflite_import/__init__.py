"""Import of ``.tflite`` files: what the network computes, and how TensorFlow Lite Micro runs it."""
