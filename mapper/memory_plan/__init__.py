"""Where a network's activations lie in a small memory, byte by byte.

``planners`` turns a workload into a ``MemoryPlan`` by the planner of a name.
"""

#: Planners, in the order in which they appeared; here so that naming them loads nothing.
PLANNER_NAMES = ("tflm", "tflm_offline", "tinyengine", "hmcos", "vmcu", "optimal")
