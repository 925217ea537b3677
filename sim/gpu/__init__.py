"""How long a library's kernels take on a GPU, and how much energy: a model of thread blocks.

``chip`` says what a GPU is, ``demand`` what a call asks of its pipes, ``power`` at which clock it
can do that, and one module per kind of kernel how its work is cut into thread blocks. All functions
take arrays, one element per call, so that many calls are predicted at once.
"""
