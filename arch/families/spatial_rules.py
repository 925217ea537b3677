"""Rules between the components of family ``spatial``, beyond what each field allows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from arch import technology, units
from arch.errors import InputError, suggest
from arch.fields import Role
from arch.schema import Finding
from arch.spec import ROLES


def rule_findings(data: Mapping[str, Any], reserved: Collection[str]) -> Iterator[Finding]:
    """``reserved`` are names that components must not have."""
    components = data.get("components")
    if not isinstance(components, Mapping):
        return
    kinds = {
        name: component.get("kind") if isinstance(component, Mapping) else None
        for name, component in components.items()
    }
    yield from _names(kinds, reserved)
    yield from _counts(kinds)
    yield from _order(kinds)
    yield from _off_chip(components, kinds)
    yield from _folds(components, kinds)
    yield from _network(components, kinds)
    yield from _arbitration(components, kinds)
    yield from _banks(components, kinds)
    if all(kind in _KINDS for kind in kinds.values()):
        yield from _kept(data, components, kinds)


_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _names(kinds: Mapping[Any, Any], reserved: Collection[str]) -> Iterator[Finding]:
    for name in kinds:
        if not _NAME.fullmatch(str(name)):
            message = "a component's name is lower case letters, digits and '_'"
            yield Finding(("components", name), message)
        elif name in reserved:
            message = f"'{name}' is a key of the architecture; name the component otherwise"
            yield Finding(("components", name), message)


def _counts(kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """How many components of each kind there must be."""
    found = list(kinds.values())
    for kind, low, high in (
        ("dram", 1, 1),
        ("sram", 1, 16),
        ("noc", 0, 1),
        ("pe_array", 1, 1),
        ("vector_unit", 0, 1),
    ):
        count = found.count(kind)
        if count < low:
            near = [suggest(kind, [str(k)]) for k in found if k not in _KINDS]
            hint = "; is a 'kind' misspelt?" if any(near) else ""
            yield Finding(("components",), f"there is no component of kind '{kind}'{hint}")
        if count > high:
            names = ", ".join(str(n) for n, k in kinds.items() if k == kind)
            message = f"{count} components of kind '{kind}' ({names}); allowed at most {high}"
            yield Finding(("components",), message)


_DEPTH = {"dram": 0, "sram": 1, "registers": 2}
_KINDS = (*_DEPTH, "noc", "pe_array", "vector_unit")


def _order(kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """Memories stand from the outermost inwards."""
    deepest = ("", 0)
    for name, kind in kinds.items():
        depth = _DEPTH.get(kind, len(_DEPTH)) if isinstance(kind, str) else len(_DEPTH)
        if depth == len(_DEPTH):
            continue
        if depth < deepest[1]:
            message = f"must stand before '{deepest[0]}': memories go from the outermost inwards"
            yield Finding(("components", name), message)
        else:
            deepest = (str(name), depth)


def _off_chip(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    for name, kind in kinds.items():
        if kind != "dram":
            continue
        dram = components[name]
        missing = [role for role in ROLES if role not in _roles(dram, ROLES)]
        if missing:
            message = f"must keep every operand; missing {', '.join(missing)}"
            yield Finding(("components", name, "keeps"), message)
        if dram.get("energy") == "auto" and dram.get("type") is None:
            message = "'auto' needs 'type'; allowed " + ", ".join(technology.DRAM_TYPES)
            yield Finding(("components", name, "energy"), message)
        yield from _timing(("components", name), dram)


#: What stays in the array by dataflow, and whether it is shifted in (results arise in place).
STATIONARY: Mapping[str, tuple[Role, bool]] = {
    "weight_stationary": ("weight", True),
    "input_stationary": ("input", True),
    "output_stationary": ("output", False),
}


def _folds(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """Exposed folds need something that stays, and a place where it stays."""
    for name, array in components.items():
        if kinds[name] != "pe_array":
            continue
        if array.get("folds") != "exposed":
            if array.get("turnaround", 0) != 0:
                message = "a turnaround is part of a fold: needs 'folds: exposed'"
                yield Finding(("components", name, "turnaround"), message)
            continue
        role, _ = STATIONARY.get(str(array.get("dataflow")), (None, False))
        kept = [
            n
            for n, kind in kinds.items()
            if kind == "registers"
            and components[n].get("per") == "pe"
            and role in _roles(components[n])
        ]
        if role is None:
            message = (
                f"exposed folds need a dataflow in which a tile stays: {', '.join(STATIONARY)}"
            )
            yield Finding(("components", name, "folds"), message)
        elif not kept:
            message = f"exposed folds need 'registers' with 'per: pe' that keep '{role}'"
            yield Finding(("components", name, "folds"), message)


def _network(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """It joins the innermost buffer with what computes."""
    srams = [name for name, kind in kinds.items() if kind == "sram"]
    for name, kind in kinds.items():
        if kind != "noc":
            continue
        network = components[name]
        if "packet" in network and network.get("switching", "wormhole") == "wormhole":
            message = "is a size for 'switching: store_and_forward'"
            yield Finding(("components", name, "packet"), message)
        for key in ("rows", "cols"):
            most = [components[n].get(key) for n, k in kinds.items() if k == "pe_array"]
            if _all_counts(network.get(key), *most) and network[key] > min(most, default=4096):
                message = f"{network[key]} is more than the array has to divide, {min(most)}"
                yield Finding(("components", name, key), message)
        if srams and network.get("source") != srams[-1]:
            message = f"must be '{srams[-1]}', the innermost sram"
            yield Finding(("components", name, "source"), message)
        for key in ("link_bandwidth", "energy"):
            if network.get(key) in ("unlimited", "auto"):
                yield Finding(("components", name, key), "must be a number")


def _arbitration(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    """What would have no effect is refused."""
    for name, kind in kinds.items():
        component = components[name]
        if not isinstance(component, Mapping):
            continue
        chosen = {key: component.get(key, plain) for key, plain in _PLAIN_PORT.items()}
        if "priority" in component and chosen["arbitration"] != "priority":
            message = "is an order for 'arbitration: priority'"
            yield Finding(("components", name, "priority"), message)
        if kind == "dram" and component.get("timing") and chosen["queue"] != "unlimited":
            message = "with 'timing' its controller has queues of its own: transaction_depth there"
            yield Finding(("components", name, "queue"), message)
        if kind == "registers" and component.get("per") != "chip" and chosen != _PLAIN_PORT:
            key = next(key for key, plain in _PLAIN_PORT.items() if chosen[key] != plain)
            message = "nobody else asks for registers inside the array; allowed with 'per: chip'"
            yield Finding(("components", name, key), message)


_PLAIN_PORT = {"arbitration": "fifo", "queue": "unlimited"}


def _banks(components: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> Iterator[Finding]:
    for name, kind in kinds.items():
        if kind != "sram":
            continue
        sram = components[name]
        banked = sram.get("banks", 1) != 1
        if "interleave" in sram and not banked:
            yield Finding(("components", name, "interleave"), "needs several 'banks'")
        if not banked:
            continue
        if _uneven(sram):
            message = "must divide the size into equal banks of whole pieces ('interleave')"
            yield Finding(("components", name, "banks"), message)
        for key, plain in _PLAIN_PORT.items():
            if sram.get(key, plain) != plain:
                message = "each of several banks serves in the order of the requests"
                yield Finding(("components", name, key), message)
        for key in ("read_bandwidth", "write_bandwidth"):
            if sram.get(key) == "unlimited":
                message = "several banks share a bandwidth, which must be a number"
                yield Finding(("components", name, key), message)


def _uneven(sram: Mapping[str, Any]) -> bool:
    """Whether some banks would be larger than others; of what is malformed nothing is said."""
    banks: Any = sram.get("banks")
    try:
        size, piece = (units.parse_size(sram.get(k, "64 B")) for k in ("size", "interleave"))
    except InputError:
        return False
    return _all_counts(banks, size, piece) and bool(size % (banks * piece))


def _all_counts(*values: object) -> bool:
    return all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in values)


def _timing(path: tuple[str, str], dram: Mapping[str, Any]) -> Iterator[Finding]:
    """Its bandwidth is the timing's own."""
    timed, auto = dram.get("timing") is not None, dram.get("bandwidth") == "auto"
    if auto and not timed:
        yield Finding((*path, "bandwidth"), "'auto' needs 'timing'")
    if timed and "bandwidth" in dram and not auto:
        yield Finding((*path, "bandwidth"), "must be 'auto', since 'timing' says what it is")


def _roles(component: Mapping[str, Any], default: tuple[str, ...] = ()) -> tuple[Any, ...]:
    keeps = component.get("keeps", default)
    return tuple(keeps) if isinstance(keeps, list | tuple) else ROLES


def _kept(
    data: Mapping[str, Any], components: Mapping[Any, Any], kinds: Mapping[Any, Any]
) -> Iterator[Finding]:
    """A role that no memory on the chip keeps is read from DRAM for each use: only on purpose."""
    on_chip = [n for n, kind in kinds.items() if kind in ("sram", "registers")]
    kept = [role for name in on_chip for role in _roles(components[name])]
    streamed = data.get("streamed", [])
    misread = not isinstance(streamed, list) or any(role not in ROLES for role in kept)
    undecided = any("keeps" not in components[name] for name in on_chip)
    if misread or undecided or not on_chip:
        return
    for role in ROLES:
        if role not in kept and role not in streamed:
            message = (
                f"no memory on the chip keeps '{role}'; add it to a 'keeps', or to the list "
                "'streamed' if it shall come from DRAM for each use"
            )
            yield Finding(("components",), message)
        if role in kept and role in streamed:
            yield Finding(("streamed",), f"'{role}' is kept on the chip, so it is not streamed")
