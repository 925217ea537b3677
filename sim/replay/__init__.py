"""Replay: the semantics of ``sim/process.py``, compiled. See ``sim.replay.engine``."""
