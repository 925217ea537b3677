"""Where a network's activations lie in a small memory, byte by byte.

``planners`` names the planners; each turns a workload into a ``MemoryPlan``.
"""
