"""Why the chosen design is better: sentences that follow from the records of both designs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arch.spec import Architecture
from arch.units import format_size
from dse.report import display
from dse.report.designs import label
from dse.report.layers import (
    LayerPair,
    component_sum,
    layers,
    time_by_bound,
    traffic_by_component,
    utilization,
)
from dse.study import Study
from dse.trial import Trial

#: Layers named in a sentence, and the share of the whole that names must reach to be worth it.
NAMED_LAYERS = 3
WORTH_NAMING = 0.02

#: A relative change below this is noise to a reader.
NOTABLE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The starting and the chosen design; ``before`` and ``after`` are their architectures."""

    study: Study
    chosen: Trial
    pairs: tuple[LayerPair, ...]
    before: Architecture
    after: Architecture

    @property
    def start(self) -> Trial:
        return self.study.start


def why(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Topic and sentence, in the order of an argument; topics without news are left out."""
    return tuple((topic, text) for topic, explain in TOPICS if (text := explain(comparison)))


def _bounds(c: Comparison) -> str:
    found = [(layer.bound_by, layer.latency_ps) for layer in layers(c.study.config, c.chosen)]
    if not found:
        return ""
    if not c.pairs or c.chosen is c.start:
        return _limits(label(c.chosen), found)
    before = _limits("Start", [(p.start.bound_by, p.start.latency_ps) for p in c.pairs])
    return f"{before} {_limits(label(c.chosen), found)}{_moves(c)}"


def _limits(subject: str, bound_layers: Sequence[tuple[str, float]]) -> str:
    """``Start: dram limits 12 of 21 layers (55 % of the time), array 9 (45 %).``"""
    times: dict[str, float] = {}
    for bound, latency in bound_layers:
        times[bound] = times.get(bound, 0.0) + latency
    counts = Counter(bound for bound, _ in bound_layers)
    total = sum(times.values())
    first, *rest = sorted(times.items(), key=lambda item: -item[1])
    lead = (
        f"{first[0]} limits {counts[first[0]]} of {display.plural(len(bound_layers), 'layer')} "
        f"({display.percent(first[1] / total)} of the time)"
    )
    others = [f"{name} {counts[name]} ({display.percent(time / total)})" for name, time in rest]
    return f"{subject}: {', '.join([lead, *others])}."


def _moves(c: Comparison) -> str:
    moved: Counter[tuple[str, str]] = Counter()
    for pair in c.pairs:
        if pair.start.bound_by != pair.chosen.bound_by:
            moved[pair.start.bound_by, pair.chosen.bound_by] += 1
    if not moved:
        return " No layer's bottleneck moved."
    (old, new), count = moved.most_common(1)[0]
    return f" In {display.plural(count, 'layer')} the bottleneck moved from {old} to {new}."


def _savings(c: Comparison) -> str:
    saved = sum(p.saved_ps for p in c.pairs)
    gains = sorted((p for p in c.pairs if p.saved_ps > 0), key=lambda p: -p.saved_ps)
    total_gain = sum(p.saved_ps for p in gains)
    if not c.pairs or saved <= NOTABLE * sum(p.start.latency_ps for p in c.pairs):
        return ""
    lead = f"{display.value('latency_ps', saved)} saved in all; {_largest(gains, total_gain)}."
    return f"{lead}{_losses(c)}"


def _largest(gains: Sequence[LayerPair], total_gain: float) -> str:
    """Which layers the saving comes from, or that no few do."""
    named = [p for p in gains[:NAMED_LAYERS] if p.saved_ps >= WORTH_NAMING * total_gain]
    if not named:
        return f"it is spread over {display.plural(len(gains), 'layer')}"
    names = display.listed(f"{p.name} (−{display.value('latency_ps', p.saved_ps)})" for p in named)
    share = sum(p.saved_ps for p in named) / total_gain
    verb = "makes up" if len(named) == 1 else "make up"
    return f"{names} {verb} {display.percent(share)} of the savings"


def _losses(c: Comparison) -> str:
    losses = [p for p in c.pairs if p.saved_ps < -0.005 * p.start.latency_ps]
    if not losses:
        return " No layer became slower."
    lost = -sum(p.saved_ps for p in losses)
    verb = "became slower, together by"
    return f" {display.plural(len(losses), 'layer')} {verb} {display.value('latency_ps', lost)}."


def _traffic(c: Comparison) -> str:
    before = traffic_by_component(c.study.config, c.start)
    after = traffic_by_component(c.study.config, c.chosen)
    changed = [
        f"{m.name} {format_size(before[m.name])} → {format_size(after[m.name])}"
        for m in c.before.memories
        if before.get(m.name) and abs(after.get(m.name, 0) / before[m.name] - 1) > NOTABLE
    ]
    return f"Bytes moved per run: {'; '.join(changed)}." if changed else ""


def _energy(c: Comparison) -> str:
    before = component_sum(c.study.config, c.start, "energy_pj")
    after = component_sum(c.study.config, c.chosen, "energy_pj")
    return _contributions("energy_pj", before, after)


def _area(c: Comparison) -> str:
    return _contributions("area_mm2", area_by_component(c.before), area_by_component(c.after))


def area_by_component(architecture: Architecture) -> dict[str, float]:
    """Silicon area of all instances of each component that has any."""
    return {c.name: c.area_mm2 * c.count for c in architecture.components if c.area_mm2 > 0}


def _contributions(key: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """``−1.2 mJ in all: dram −1.0 mJ, array −0.2 mJ.``"""
    deltas = {n: after.get(n, 0.0) - before.get(n, 0.0) for n in {**before, **after}}
    whole = sum(before.values())
    if whole <= 0 or max(abs(d) for d in deltas.values()) < 0.01 * whole:
        return ""
    parts = [
        f"{name} {_signed(key, delta)}"
        for name, delta in sorted(deltas.items(), key=lambda item: -abs(item[1]))
        if abs(delta) >= 0.01 * whole
    ]
    return f"{_signed(key, sum(deltas.values()))} in all: {', '.join(parts)}."


def _signed(key: str, delta: float) -> str:
    sign = "−" if delta < 0 else "+"
    return f"{sign}{display.value(key, abs(delta))}"


def _next_step(c: Comparison) -> str:
    times = time_by_bound(c.study.config, c.chosen)
    if not times:
        return ""
    busy = utilization(c.study.config, c.chosen)
    limiting = max(times, key=lambda name: times[name])
    share = display.percent(times[limiting] / sum(times.values()))
    others = [
        f"{name} {display.percent(part)}"
        for name, part in sorted(busy.items(), key=lambda item: -item[1])
        if name != limiting and part >= WORTH_NAMING
    ]
    itself = f" and is busy {display.percent(busy[limiting])}" if limiting in busy else ""
    rest = f" Busy besides: {', '.join(others)}." if others else ""
    needs = f"more of {limiting}" if limiting in busy else f"less {limiting}"
    return (
        f"{limiting} limits {share} of the time of {label(c.chosen)}{itself}; a faster design "
        f"needs {needs} first.{rest}"
    )


TOPICS: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("What limits", _bounds),
    ("Time", _savings),
    ("Traffic", _traffic),
    ("Energy", _energy),
    ("Area", _area),
    ("Next bottleneck", _next_step),
)
