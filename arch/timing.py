"""DRAM timing as data: which command may follow which, where, and how many cycles later.

A rule reads: after ``previous``, the command ``next`` must wait ``distance`` cycles, in the part
of the channel that ``scope`` names. Distances are sums of the named parameters of a device, as
in ``"CWL + BURST + WTR_L"``. All rules hold at once, so the longest of several counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

COMMANDS = ("ACT", "PRE", "RD", "WR", "RDA", "WRA", "REF", "REFPB")
ACT, PRE, RD, WR, RDA, WRA, REF, REFPB = range(len(COMMANDS))

#: Where a rule applies, seen from the previous command: its bank, its bank group (that bank
#: included), its rank (likewise), or all ranks of the channel but its own.
SCOPES = ("bank", "group", "rank", "other_ranks")
BANK, GROUP, RANK, OTHER_RANKS = range(len(SCOPES))

#: Parameters of a device in cycles of its command clock, with what each means.
PARAMETERS: Mapping[str, str] = {
    "BURST": "a burst's data on the bus",
    "CL": "RD to its data",
    "CWL": "WR to its data",
    "RCDRD": "ACT to RD",
    "RCDWR": "ACT to WR",
    "RP": "PRE to ACT",
    "RAS": "ACT to PRE",
    "RC": "ACT to ACT of a bank",
    "CCD_S": "RD to RD and WR to WR, other bank group",
    "CCD_L": "RD to RD, same bank group",
    "CCD_L_WR": "WR to WR, same bank group",
    "RRD_S": "ACT to ACT, other bank group",
    "RRD_L": "ACT to ACT, same bank group",
    "FAW": "window that may hold four ACT",
    "AW32": "window that may hold thirty-two ACT (0: no limit)",
    "WTR_S": "end of write data to RD, other bank group",
    "WTR_L": "end of write data to RD, same bank group",
    "RTP": "RD to PRE",
    "WR": "end of write data to PRE",
    "RTW": "idle data bus between read and write data",
    "RTRS": "idle data bus between data of two ranks",
    "WTW_RANK": "idle data bus between write data of two ranks",
    "PPD": "PRE to PRE of a rank",
    "RDA_EXTRA": "RD with auto-precharge to ACT, beyond RTP + RP",
    "RFC": "REF to ACT",
    "REFI": "between two REF of a rank",
    "RFCPB": "REFPB to ACT of its bank",
    "RREFD": "REFPB to ACT or REFPB of another bank",
    "REFIPB": "between two REFPB of a rank (0: no per-bank refresh)",
    "ACT_BUS": "an ACT on the command bus",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """``window`` counts back: 4 is from the fourth last ``previous`` command."""

    previous: str
    next: str
    scope: str
    distance: str
    window: int = 1


def _rules(previous: str, next_: str, *scoped: tuple[str, str]) -> Iterator[Rule]:
    """Rules for each pair of commands: ``"RD RDA"`` stands for both."""
    for before in previous.split():
        for after in next_.split():
            yield from (Rule(before, after, scope, distance) for scope, distance in scoped)


#: The rules of the JEDEC standards for DDR, LPDDR, GDDR and HBM memories (JESD79, JESD209,
#: JESD250, JESD235). What differs between them are the values; a rule whose distance is not
#: positive has no effect.
RULES: tuple[Rule, ...] = (
    *_rules("RD RDA", "RD RDA", ("group", "CCD_L"), ("rank", "CCD_S"), ("rank", "BURST")),
    *_rules("RD RDA", "RD RDA", ("other_ranks", "BURST + RTRS")),
    *_rules("WR WRA", "WR WRA", ("group", "CCD_L_WR"), ("rank", "CCD_S"), ("rank", "BURST")),
    *_rules("WR WRA", "WR WRA", ("other_ranks", "BURST + WTW_RANK")),
    *_rules("RD RDA", "WR WRA", ("rank", "CL + BURST + RTW - CWL")),
    *_rules("RD RDA", "WR WRA", ("other_ranks", "CL + BURST + RTRS - CWL")),
    *_rules("WR WRA", "RD RDA", ("group", "CWL + BURST + WTR_L")),
    *_rules("WR WRA", "RD RDA", ("rank", "CWL + BURST + WTR_S")),
    *_rules("WR WRA", "RD RDA", ("other_ranks", "CWL + BURST + RTRS - CL")),
    *_rules("ACT", "RD RDA", ("bank", "RCDRD")),
    *_rules("ACT", "WR WRA", ("bank", "RCDWR")),
    *_rules("ACT", "PRE", ("bank", "RAS")),
    *_rules("ACT", "ACT", ("bank", "RC"), ("group", "RRD_L"), ("rank", "RRD_S")),
    Rule("ACT", "ACT", "rank", "FAW", window=4),
    Rule("ACT", "ACT", "rank", "AW32", window=32),
    *_rules("RD", "PRE", ("bank", "RTP")),
    *_rules("WR", "PRE", ("bank", "CWL + BURST + WR")),
    *_rules("PRE", "ACT", ("bank", "RP")),
    *_rules("PRE", "PRE", ("rank", "PPD")),
    *_rules("RDA", "ACT", ("bank", "RTP + RP + RDA_EXTRA")),
    *_rules("WRA", "ACT", ("bank", "CWL + BURST + WR + RP")),
    *_rules("PRE", "REF", ("rank", "RP")),
    *_rules("RDA", "REF", ("rank", "RTP + RP")),
    *_rules("WRA", "REF", ("rank", "CWL + BURST + WR + RP")),
    *_rules("REF", "ACT REF REFPB", ("rank", "RFC")),
    *_rules("PRE", "REFPB", ("bank", "RP")),
    *_rules("RDA", "REFPB", ("bank", "RTP + RP")),
    *_rules("WRA", "REFPB", ("bank", "CWL + BURST + WR + RP")),
    *_rules("ACT", "REFPB", ("rank", "RRD_S")),
    *_rules("REFPB", "ACT REFPB", ("bank", "RFCPB"), ("rank", "RREFD")),
    *_rules("REFPB", "REF", ("rank", "RFCPB")),
)

_TERM = re.compile(r"([+-]?)\s*([A-Z][A-Z0-9_]*)")


def cycles(distance: str, parameters: Mapping[str, int]) -> int:
    """The value of a distance such as ``"CL + BURST - CWL"`` for a device."""
    return sum(
        -parameters[name] if sign == "-" else parameters[name]
        for sign, name in _TERM.findall(distance)
    )


@dataclass(frozen=True, slots=True)
class Gate:
    """A rule with its value: all numbers, as simulators use it."""

    previous: int
    next: int
    scope: int
    cycles: int
    window: int


def gates(
    parameters: Mapping[str, int],
    without: tuple[str, ...],
    rules: tuple[Rule, ...] = RULES,
) -> tuple[Gate, ...]:
    """The rules that can ever delay a command of this device, weaker duplicates left out.

    Rules in the scopes ``without`` do not hold. A device with only one bank group is without
    ``group``: the distances between groups (``_S``) hold, those within a group (``_L``) do not.
    """
    longest: dict[tuple[int, int, int, int], int] = {}
    for rule in rules:
        if rule.scope in without:
            continue
        key = (
            COMMANDS.index(rule.previous),
            COMMANDS.index(rule.next),
            SCOPES.index(rule.scope),
            rule.window,
        )
        longest[key] = max(longest.get(key, 0), cycles(rule.distance, parameters))
    return tuple(
        Gate(previous, next_, scope, value, window)
        for (previous, next_, scope, window), value in longest.items()
        if value > 0
    )
