"""Which measured points may be calibrated with, and which only judge: by a hash of the point."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: Changing it would draw another split.
SALT = "tilewright-1"

#: Share of the points that calibration may see.
TRAINING_PERCENT = 70


def is_training(kind: str, params: Mapping[str, Any], dtype: str) -> bool:
    """The same for a point and its repetitions, wherever they stand in a file."""
    text = json.dumps([SALT, kind, sorted(params.items()), dtype])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % 100 < TRAINING_PERCENT
