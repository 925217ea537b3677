"""Run by the Python of an environment with tflite-micro; speaks JSON lines.

    PYTHON -m pip install tflite-micro

Each line in is a request: ``{"file": ..., "inputs": 1, "outputs": 1, "seeds": [...]}``. Each line
out has the bytes of the
arena by part, as the interpreter reports them, and the results for random inputs of those seeds.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import zlib
from typing import Any

ARENA_BYTES = 64 << 20
_REPORT = re.compile(r"Arena allocation (\w+) (\d+) bytes")


def _allocations(interpreter: Any) -> dict[str, int]:
    """The report goes to the process's standard error, past Python."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            interpreter.print_allocations()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        text = file.read().decode()
    return {name: int(size) for name, size in _REPORT.findall(text)}


def _results(interpreter: Any, request: dict[str, Any], seed: int) -> list[int]:
    """Checksums of every output for random inputs of that seed, from a fresh state."""
    import numpy as np

    rng = np.random.default_rng(seed)
    interpreter.reset()
    for number in range(request["inputs"]):
        details = interpreter.get_input_details(number)
        kind, shape = np.dtype(details["dtype"]), tuple(details["shape"])
        if kind.kind == "f":
            data = rng.standard_normal(shape).astype(kind)
        else:
            limits = np.iinfo(kind)
            data = rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
        interpreter.set_input(data, number)
    interpreter.invoke()
    outputs = (interpreter.get_output(number) for number in range(request["outputs"]))
    return [zlib.crc32(np.ascontiguousarray(output).tobytes()) for output in outputs]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    from tflite_micro import runtime

    try:
        interpreter = runtime.Interpreter.from_file(request["file"], arena_size=ARENA_BYTES)
        found: dict[str, Any] = _allocations(interpreter)
        found["results"] = [_results(interpreter, request, s) for s in request["seeds"]]
    except (RuntimeError, ValueError) as error:
        return {"error": str(error)}
    return found


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
