"""Networks written down operator by operator: language models, transformers for images, others.

Unlike ``mapper.workload.zoo``, nothing here needs torch, so that a model of hundreds of layers
takes a second, and operands may have formats of their own.
"""

from __future__ import annotations

from mapper.workload.models import decoders, encoders, mamba, others

_MODULES = (decoders, encoders, mamba, others)

MODELS = {entry.name: entry for module in _MODULES for entry in module.ENTRIES}
