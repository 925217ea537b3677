"""Chrome/Perfetto trace of an event simulation: open it at ui.perfetto.dev."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from arch.errors import InputError, Problem
from arch.spec import Architecture
from mapper.cost import Mappings
from mapper.workload.graph import Workload
from sim.counters import Count, counts
from sim.timeline import GROUPS, Slice, TooManySlicesError, View, timeline

#: Viewers in a browser become unusable beyond this.
MAX_BYTES = 100 * 10**6
#: A slice takes at least this much of a trace.
LEAST_SLICE_BYTES = 50
#: The group of the counters, after those of slices.
COUNTERS = "counters"


def write_trace(
    path: Path,
    workload: Workload,
    architecture: Architecture,
    mappings: Mappings,
    *,
    max_bytes: int = MAX_BYTES,
    window_ps: tuple[int, int] | None = None,
) -> None:
    """Write the trace, or nothing: ``InputError`` if it would be too large to look at.

    Loops that reached a steady state are one slice, labelled with the iterations it stands
    for and, on a port, how long of it the port was busy. With a window (from, up to) only what
    overlaps it is written, every iteration of it.
    """
    slices = timeline(workload, architecture, mappings, view=view_of(window_ps, max_bytes))
    write_slices(path, workload.name, slices, max_bytes)


def view_of(window_ps: tuple[int, int] | None, max_bytes: int = MAX_BYTES) -> View:
    """What a trace can show of the window (or of the whole run)."""
    return View(stretch_ps=window_ps, most_slices=max_bytes // LEAST_SLICE_BYTES)


def write_slices(
    path: Path, name: str, slices: Iterator[Slice], max_bytes: int = MAX_BYTES
) -> None:
    """As ``write_trace``, for slices of any run of the workload called ``name``."""
    path = path.resolve()  # a link stays one
    partial = path.with_name(f"{path.name}.partial")
    try:
        _write(partial, _document(slices), max_bytes, name)
        partial.replace(path)
    except OSError as error:
        raise InputError(Problem(f"cannot write the trace: {error.strerror}", str(path))) from error
    except TooManySlicesError as error:
        raise _too_large(name, max_bytes) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def _too_large(workload: str, max_bytes: int) -> InputError:
    message = (
        f"the trace of {workload} is larger than {max_bytes // 10**6} MB; trace a part of it "
        "(--trace-window 10us:20us), a single operator (such as 'conv2d:C=64,H=56,K=64,R=3') or "
        "a smaller batch"
    )
    return InputError(Problem(message, "trace"))


def _write(path: Path, pieces: Iterator[str], max_bytes: int, workload: str) -> None:
    written = 0
    with path.open("w", encoding="ascii") as file:
        for piece in pieces:
            written += file.write(piece)
            if written > max_bytes:
                raise _too_large(workload, max_bytes)


def _document(slices: Iterator[Slice]) -> Iterator[str]:
    """JSON in the Trace Event Format, one event per line, times in microseconds."""
    yield '{"displayTimeUnit":"ns","traceEvents":[\n'
    for number, group in enumerate((*GROUPS, COUNTERS)):
        yield _metadata("process_name", number, 0, {"name": group})
        yield _metadata("process_sort_index", number, 0, {"sort_index": number})
    tracks: dict[tuple[str, str], int] = {}
    for operator in _by_operator(slices):
        for piece in operator:
            key = (piece.group, piece.track)
            process = GROUPS.index(piece.group)
            if key not in tracks:
                tracks[key] = len(tracks) + 1
                yield _metadata("thread_name", process, tracks[key], {"name": piece.track})
            yield _event(piece, process, tracks[key])
        yield from map(_counter, counts(operator))
    yield '{"ph":"M","pid":0,"tid":0,"name":"trace_end","args":{}}\n]}\n'


def _by_operator(slices: Iterator[Slice]) -> Iterator[list[Slice]]:
    """Each operator's slice begins a list of its own."""
    found: list[Slice] = []
    for piece in slices:
        if piece.group == GROUPS[0] and found:
            yield found
            found = []
        found.append(piece)
    yield found


def _counter(count: Count) -> str:
    return (
        f'{{"ph":"C","pid":{len(GROUPS)},"tid":0,"name":{json.dumps(count.counter)},'
        f'"ts":{_us(count.time_ps)},"args":{{"value":{count.value:.12g}}}}},\n'
    )


def _metadata(name: str, process: int, track: int, args: dict[str, object]) -> str:
    event = {"ph": "M", "pid": process, "tid": track, "name": name, "args": args}
    return json.dumps(event, separators=(",", ":")) + ",\n"


def _event(piece: Slice, process: int, track: int) -> str:
    """Written by hand: picoseconds as exact decimal fractions of a microsecond."""
    args = ""
    if piece.iterations > 1:
        busy = _us(piece.busy_ps)
        args = f',"args":{{"iterations":{piece.iterations},"busy_us":{busy}}}'
    name = f"{piece.name} [{piece.tile}]" if piece.tile else piece.name
    return (
        f'{{"ph":"X","pid":{process},"tid":{track},"name":{json.dumps(name)},'
        f'"ts":{_us(piece.start_ps)},"dur":{_us(piece.duration_ps)}{args}}},\n'
    )


def _us(time_ps: int) -> str:
    whole, fraction = divmod(time_ps, 10**6)
    return f"{whole}.{fraction:06d}"
