"""Workload ``stream:...``: what may be written, and on which memory it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from arch import catalog
from arch.dram_device import DramDevice
from arch.errors import InputError, Problem, suggest, suggestion, unknown
from arch.load import load_architecture
from arch.spec import Architecture
from arch.units import parse_size
from mapper.workload.graph import Workload
from mapper.workload.load import listings, load_workload, public_name
from mapper.workload.parameters import split_spec
from sim.stream_spec import PATTERNS, StreamSpec

NAME = "stream"
USAGE = (
    "bytes=,pattern=sequential|random,read=1.0,outstanding=unlimited,stride=,inject=,seed=0,"
    "channels=all|one"
)
#: Which channels are simulated.
CHANNELS = ("all", "one")
DESCRIPTION = "requests straight to a memory, as in stream:bytes=67108864,pattern=sequential"


def is_stream(spec: str) -> bool:
    return spec.partition(":")[0].strip() == NAME


def check_no_stream(spec: str) -> None:
    """``InputError`` where a network is needed and a stream is meant, or misspelt."""
    name = spec.partition(":")[0].strip()
    if name == NAME:
        message = "is requests straight to a memory, which only dse simulate takes"
        raise InputError(Problem(message, where=f"workload '{NAME}'"))
    if not suggest(name, [NAME]):
        return
    known = [listing.name for listing in listings()]
    if public_name(name) is None and suggest(name, [*known, NAME]) == suggestion(NAME):
        raise InputError(Problem(f"unknown workload '{name}'; {suggestion(NAME)}"))


def load_network(spec: str) -> Workload:
    """The workload where a stream makes no sense; ``InputError`` for one."""
    check_no_stream(spec)
    return load_workload(spec)


def parse_stream(spec: str, device: DramDevice) -> StreamSpec:
    """The stream that the text describes; every problem with it at once."""
    _, given = split_spec(spec)
    problems, values = [], {}
    for key, text in given.items():
        try:
            values[key] = _READERS[key](text)
        except KeyError:
            problems.append(_problem(key, unknown("parameter", key, list(_READERS))))
        except ValueError as error:
            problems.append(_problem(key, str(error)))
    for key, example in (("bytes", "67108864 or 64MiB"), ("pattern", " or ".join(PATTERNS))):
        if key not in given:
            problems.append(_problem(key, f"must be given, as {example}"))
    stride = values.get("stride")
    if stride is not None and stride % device.burst_bytes:
        message = f"{stride} is not a multiple of the burst, {device.burst_bytes} B"
        problems.append(_problem("stride", message))
    if stride is not None and values.get("pattern") == "random":
        problems.append(_problem("stride", "only a sequential stream has one"))
    if problems:
        raise InputError(problems)
    return StreamSpec(**{_FIELDS[key]: value for key, value in values.items()})


def _problem(key: str, message: str) -> Problem:
    return Problem(message, where=f"workload {NAME}: {key}")


def _whole(low: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise ValueError(f"'{text}' is not allowed; allowed a whole number from {low} on")
        return int(text)

    return read


def _size(text: str) -> int:
    size = int(text) if text.isdecimal() else parse_size(text)
    if size < 1:
        raise ValueError(f"'{text}' is not allowed; allowed 1 B or more, as in 64MiB")
    return size


def _share(text: str) -> float:
    message = f"'{text}' is not allowed; allowed a share from 0 to 1, as in 0.75"
    try:
        share = float(text)
    except ValueError:
        raise ValueError(message) from None
    if not 0 <= share <= 1:
        raise ValueError(message)
    return share


def _pattern(text: str) -> str:
    if text not in PATTERNS:
        raise ValueError(unknown("pattern", text, PATTERNS))
    return text


def _outstanding(text: str) -> int | None:
    if text == "unlimited":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"'{text}' is not allowed; allowed a number from 1 on, or unlimited")
    return int(text)


def _channels(text: str) -> bool:
    if text not in CHANNELS:
        raise ValueError(unknown("value", text, CHANNELS))
    return text == "one"


_READERS: Mapping[str, Callable[[str], Any]] = {
    "bytes": _size,
    "pattern": _pattern,
    "read": _share,
    "outstanding": _outstanding,
    "stride": _size,
    "inject": _whole(1),
    "seed": _whole(0),
    "channels": _channels,
}
_FIELDS = {
    "bytes": "size_bytes",
    "pattern": "pattern",
    "read": "read",
    "outstanding": "outstanding",
    "stride": "stride_bytes",
    "inject": "inject_per_cycle",
    "seed": "seed",
    "channels": "one_channel",
}


def device_of(architecture: Architecture) -> DramDevice:
    """The memory of an architecture whose commands can be simulated."""
    for memory in architecture.memories:
        device = getattr(memory, "device", None)
        if isinstance(device, DramDevice):
            return device
    shipped = [name for name in catalog.names("arch") if _is_memory(name)]
    message = (
        f"'{architecture.name}' has no memory with 'timing'; a stream needs one of "
        f"{', '.join(shipped)}, or an architecture that names one of them as its 'timing'"
    )
    raise InputError(Problem(message, where="--arch"))


def _is_memory(name: str) -> bool:
    architecture = load_architecture(name)
    return not architecture.computes
