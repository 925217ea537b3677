"""Chrome/Perfetto trace of an event simulation: open it at ui.perfetto.dev."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from arch.errors import InputError, Problem
from arch.spec import Architecture
from mapper.cost import Mappings, PriceList
from mapper.workload.graph import Workload
from sim.prices import price
from sim.timeline import GROUPS, Slice, timeline

#: Viewers in a browser become unusable beyond this.
MAX_BYTES = 100 * 10**6


def write_trace(
    path: Path,
    workload: Workload,
    architecture: Architecture,
    mappings: Mappings,
    *,
    price_of: PriceList = price,
    max_bytes: int = MAX_BYTES,
) -> None:
    """Write the trace, or nothing: ``InputError`` if it would be too large to look at.

    Loops that reached a steady state are one slice, labelled with the iterations it stands
    for and, on a port, how long of it the port was busy.
    """
    write_slices(
        path, workload.name, timeline(workload, architecture, mappings, price_of), max_bytes
    )


def write_slices(
    path: Path, name: str, slices: Iterator[Slice], max_bytes: int = MAX_BYTES
) -> None:
    """As ``write_trace``, for slices of any run of the workload called ``name``."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        _write(partial, _document(slices), max_bytes, name)
        partial.replace(path)
    except OSError as error:
        raise InputError(Problem(f"cannot write the trace: {error.strerror}", str(path))) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def _write(path: Path, pieces: Iterator[str], max_bytes: int, workload: str) -> None:
    written = 0
    with path.open("w", encoding="ascii") as file:
        for piece in pieces:
            written += file.write(piece)
            if written > max_bytes:
                message = (
                    f"the trace of {workload} is larger than {max_bytes // 10**6} MB; trace a "
                    "single operator of it (such as 'conv2d:C=64,H=56,K=64,R=3') or a smaller batch"
                )
                raise InputError(Problem(message, "trace"))


def _document(slices: Iterator[Slice]) -> Iterator[str]:
    """JSON in the Trace Event Format, one event per line, times in microseconds."""
    yield '{"displayTimeUnit":"ns","traceEvents":[\n'
    for number, group in enumerate(GROUPS):
        yield _metadata("process_name", number, 0, {"name": group})
        yield _metadata("process_sort_index", number, 0, {"sort_index": number})
    tracks: dict[tuple[str, str], int] = {}
    for piece in slices:
        key = (piece.group, piece.track)
        process = GROUPS.index(piece.group)
        if key not in tracks:
            tracks[key] = len(tracks) + 1
            yield _metadata("thread_name", process, tracks[key], {"name": piece.track})
        yield _event(piece, process, tracks[key])
    yield '{"ph":"M","pid":0,"tid":0,"name":"trace_end","args":{}}\n]}\n'


def _metadata(name: str, process: int, track: int, args: dict[str, object]) -> str:
    event = {"ph": "M", "pid": process, "tid": track, "name": name, "args": args}
    return json.dumps(event, separators=(",", ":")) + ",\n"


def _event(piece: Slice, process: int, track: int) -> str:
    """Written by hand: picoseconds as exact decimal fractions of a microsecond."""
    args = ""
    if piece.iterations > 1:
        busy = _us(piece.busy_ps)
        args = f',"args":{{"iterations":{piece.iterations},"busy_us":{busy}}}'
    return (
        f'{{"ph":"X","pid":{process},"tid":{track},"name":{json.dumps(piece.name)},'
        f'"ts":{_us(piece.start_ps)},"dur":{_us(piece.duration_ps)}{args}}},\n'
    )


def _us(time_ps: int) -> str:
    whole, fraction = divmod(time_ps, 10**6)
    return f"{whole}.{fraction:06d}"
