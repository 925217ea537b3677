"""Run Triton's kernels in its interpreter, unless the caller chose (``TRITON_INTERPRET=0``).

Triton reads the switch once, when it is first imported, and torch.export imports it in tests
that have nothing to do with Triton: so it is set here, before any test module is loaded.
"""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")
