"""Arena of TensorFlow Lite Micro: our plan beside the interpreter's own report, file by file.

    python -m venv tflm && tflm/bin/pip install tflite-micro
    python -m benchmarks.tflm_arena --python tflm/bin/python FOLDER_OR_FILE ...

Without files, random networks are written and compared (``--networks N``). The interpreter stands
in an environment of its own, since its requirements are its own. ``--golden FILE`` keeps its
reports of the random networks, by seed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.tflm_networks import random_network
from mapper.memory_plan.arena import TFLM_ALIGNMENT, extent_bytes, first_fit, tflm_order
from mapper.memory_plan.plan import Buffer, live_bytes
from mapper.workload.tflite_import.file import read_model
from mapper.workload.tflite_import.lifetimes import runtime_graph

RUNNER = Path(__file__).with_name("tflm_runner.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Bytes of the arena's head; ``reported`` is ``None`` where the interpreter refuses."""

    name: str
    planned: int
    bound: int
    reported: int | None
    refusal: str = ""

    @property
    def equal(self) -> bool:
        return self.planned == self.reported


class Interpreter:
    """tflite-micro in a process of another environment."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(RUNNER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def ask(self, file: Path, seeds: Iterable[int] = ()) -> dict[str, Any]:
        """The report, and results for inputs of those seeds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        network = read_model(file).graphs[0]
        request = {
            "file": str(file),
            "inputs": len(network.inputs),
            "outputs": len(network.outputs),
            "seeds": list(seeds),
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line else {"error": "the interpreter crashed"}


def planned(file: Path) -> tuple[int, int]:
    """Our arena for the file, and what is live at once."""
    graph = runtime_graph(read_model(file), {})
    buffers = [
        Buffer(name=b.name, size_bytes=b.size_bytes, first=b.first, last=b.last)
        for b in graph.buffers
    ]
    placed = first_fit(tflm_order(buffers), alignment=TFLM_ALIGNMENT)
    return extent_bytes(placed, TFLM_ALIGNMENT), live_bytes(buffers)


def compare(files: Iterable[Path], interpreter: Interpreter) -> Iterator[Compared]:
    for file in files:
        ours, bound = planned(file)
        report = interpreter.ask(file)
        yield Compared(
            name=file.name,
            planned=ours,
            bound=bound,
            reported=report.get("head"),
            refusal=report.get("error", ""),
        )


def written(folder: Path, count: int) -> list[Path]:
    """Random networks as files, by seed."""
    files = []
    for seed in range(count):
        file = folder / f"random_{seed}.tflite"
        file.write_bytes(random_network(seed))
        files.append(file)
    return files


def found(paths: Iterable[Path]) -> list[Path]:
    """Files, and those of folders."""
    return [f for p in paths for f in (sorted(p.rglob("*.tflite")) if p.is_dir() else [p])]


def _table(rows: list[Compared], everything: bool) -> Table:
    table = Table("file", "ours B", "tflite-micro B", "difference", "live at once B")
    for row in rows:
        if row.reported is None:
            table.add_row(row.name, f"{row.planned:,}", "refuses", row.refusal, f"{row.bound:,}")
        elif everything or not row.equal:
            difference = f"{row.planned - row.reported:+,}"
            numbers = (f"{row.planned:,}", f"{row.reported:,}", difference, f"{row.bound:,}")
            table.add_row(row.name, *numbers)
    ran = [row for row in rows if row.reported is not None]
    equal = sum(row.equal for row in ran)
    table.caption = (
        f"{equal} of {len(ran)} equal, {len(rows) - len(ran)} refused by the interpreter"
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--python", required=True, help="Python that has tflite-micro")
    parser.add_argument("--networks", type=int, default=200, help="random networks, without files")
    parser.add_argument("--golden", type=Path, help="keep the interpreter's reports here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Interpreter(given.python) as interpreter:
        files = found(given.files) or written(Path(folder), given.networks)
        rows = list(compare(files, interpreter))
    Console(width=140).print(_table(rows, everything=bool(given.files)))
    if given.golden:
        command = f"python -m benchmarks.tflm_arena --python PYTHON --networks {given.networks}"
        heads = {row.name: row.reported for row in rows}
        given.golden.write_text(json.dumps({"made by": command, "heads": heads}, indent=1) + "\n")


if __name__ == "__main__":
    main()
