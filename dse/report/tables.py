"""The tables of the report, as text cells that one template macro draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arch.units import format_size
from dse.report import display
from dse.report.data import Facts
from dse.report.designs import BOUNDED, Design, anchor, baseline, is_exact, label
from dse.report.layers import LayerPair
from dse.report.limits import Margin, margins, memory_margins
from dse.report.settings import all_paths, changed_paths, setting
from dse.space import Parameter
from dse.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """``note`` stands small below the text; ``tone`` is ``better``, ``worse``, ``strong`` or
    empty; ``order`` is what the column is sorted by.
    """

    text: str
    note: str = ""
    tone: str = ""
    order: float | str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``anchor`` makes the row a link target, ``tone`` marks it."""

    cells: tuple[Cell, ...]
    anchor: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``numeric`` columns are aligned to the right; the first column heads its row."""

    head: tuple[Cell, ...]
    rows: tuple[Row, ...]
    numeric: frozenset[int] = frozenset()
    sortable: bool = False


def _head(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text=text) for text in texts)


def _path_head(path: str) -> Cell:
    """The component above the name, to keep the column narrow."""
    component, _, name = path.partition(".")
    return Cell(text=component, note=name)


def space(facts: Facts) -> Table:
    """The parameters, their values and where the start stands."""
    return Table(
        head=_head("Parameter", "Values", "Start", "Tied to it"),
        rows=tuple(_parameter_row(facts, p) for p in facts.study.space.parameters),
    )


def _parameter_row(facts: Facts, parameter: Parameter) -> Row:
    values = f"{len(parameter.values)}: " + ", ".join(map(display.parameter, parameter.values))
    start = display.parameter(setting(facts.base, parameter.path))
    cells = (parameter.path, values, start, ", ".join(parameter.ties))
    return Row(cells=tuple(Cell(text=text) for text in cells))


def comparison(facts: Facts) -> Table:
    """The starting design beside the recommended ones: objectives, then parameters."""
    designs = facts.compared
    rows = [_quantity_row(facts, key) for key in facts.keys]
    # What is zero or unknown for all (areas of boards, SRAM that nobody plans) says nothing.
    others = [key for key in display.READINGS if key not in facts.keys]
    rows += [
        _quantity_row(facts, key)
        for key in others
        if any(d.trial.objectives.get(key) for d in designs)
    ]
    rows += [_setting_row(facts, path) for path in all_paths(facts.study.space)]
    return Table(
        head=(Cell(text=""), *(_design_head(facts, d) for d in designs)),
        rows=tuple(rows),
        numeric=frozenset(range(1, len(designs) + 1)),
    )


def _design_head(facts: Facts, design: Design) -> Cell:
    roles = ", ".join(role.name for role in design.roles)
    name = facts.base.name if design.trial is facts.study.start else ""
    return Cell(text=design.label, note=", ".join(filter(None, (name, roles))))


def _quantity_row(facts: Facts, key: str) -> Row:
    tone = "strong" if key in facts.keys else ""
    cells = (ratio_cell(facts, d.trial, key) for d in facts.compared)
    return Row(cells=(Cell(text=display.title(key), tone=tone), *cells))


def ratio_cell(facts: Facts, trial: Trial, key: str) -> Cell:
    """The value, and below it how it compares with the start."""
    value = value_cell(trial, key)
    start = baseline(facts.study, key)
    if start is None or trial is facts.study.start or not is_exact(trial, key):
        return value
    word = display.change(key, start, trial.objectives[key])
    tone = "" if word == display.EQUAL else "better" if trial.objectives[key] < start else "worse"
    return replace(value, note=word, tone=tone)


def value_cell(trial: Trial, key: str) -> Cell:
    """A design that was not simulated has lower bounds, or nothing."""
    if key not in trial.objectives or not (is_exact(trial, key) or key in BOUNDED):
        return Cell(text="–")
    number = trial.objectives[key]
    sign = "" if is_exact(trial, key) else "≥ "
    return Cell(text=sign + display.value(key, number), order=number)


def _setting_row(facts: Facts, path: str) -> Row:
    cells = [Cell(text=path)]
    for design in facts.compared:
        architecture = facts.evidence.architectures[design.trial.number]
        changed = path in changed_paths(facts.base, architecture, facts.study.space)
        text = display.parameter(setting(architecture, path))
        cells.append(Cell(text=text, tone="strong" if changed else ""))
    return Row(cells=tuple(cells))


def fidelity(facts: Facts) -> Table | None:
    """Latency of the compared designs by every model; ``None`` without checks."""
    checked = [d for d in facts.compared if facts.evidence.check(d.trial.number)]
    if not checked:
        return None
    return Table(
        head=_head(
            "Design",
            "Roofline (bound)",
            "Analytical",
            "Event",
            "Event / analytical",
            "Event / roofline",
            "Gain at event",
        ),
        rows=tuple(_fidelity_row(facts, d) for d in checked),
        numeric=frozenset(range(1, 7)),
    )


def _fidelity_row(facts: Facts, design: Design) -> Row:
    check, start = facts.evidence.check(design.trial.number), facts.evidence.check(0)
    assert check is not None
    low, middle, high = (check.latency_ps[f] for f in ("roofline", "analytical", "event"))
    is_start = design.trial is facts.study.start
    gain = (
        ""
        if is_start or start is None
        else (display.change("latency_ps", start.latency_ps["event"], high))
    )
    texts = (
        *(display.value("latency_ps", number) for number in (low, middle, high)),
        display.times(high / middle),
        display.times(high / low),
        gain,
    )
    name = Cell(text=design.label, note=", ".join(role.name for role in design.roles))
    return Row(cells=(name, *(Cell(text=text) for text in texts)))


def pareto(facts: Facts) -> Table:
    """Every Pareto design: objectives against the start, and free parameters."""
    free = [p.path for p in facts.study.space.parameters]
    roles = {d.trial.number: ", ".join(r.name for r in d.roles) for d in facts.designs}
    rows = tuple(_pareto_row(facts, t, roles.get(t.number, ""), free) for t in facts.front)
    return Table(
        head=(*_head("Design", *(display.title(k) for k in facts.keys)), *map(_path_head, free)),
        rows=rows,
        numeric=frozenset(range(1, len(facts.keys) + 1)),
        sortable=True,
    )


def _pareto_row(facts: Facts, trial: Trial, roles: str, free: Sequence[str]) -> Row:
    name = Cell(text=label(trial), note=roles, order=trial.number)
    objectives = (ratio_cell(facts, trial, key) for key in facts.keys)
    return Row(
        cells=(name, *objectives, *_settings(facts, trial, free)),
        anchor=anchor(trial),
        tone="marked" if roles else "",
    )


def _settings(facts: Facts, trial: Trial, free: Sequence[str]) -> list[Cell]:
    values = [trial.overrides.get(path, setting(facts.base, path)) for path in free]
    return [Cell(text=display.parameter(v), order=_order(v)) for v in values]


def _order(value: object) -> float | str:
    """Numbers and quantities sort by their number, labels by name."""
    head = str(value).split(" ")[0]
    return float(head) if head.replace(".", "", 1).isdigit() else str(value)


def layer_table(facts: Facts) -> Table:
    """Each layer in both designs."""
    return Table(
        head=_head(
            "Layer",
            "Start",
            facts.chosen_name,
            "Change",
            "Limited by (start)",
            f"Limited by ({facts.chosen_name})",
            "Energy (start)",
            f"Energy ({facts.chosen_name})",
            "Mapping",
        ),
        rows=tuple(_layer_row(p) for p in facts.pairs),
        numeric=frozenset({1, 2, 3, 6, 7}),
        sortable=True,
    )


def _layer_row(pair: LayerPair) -> Row:
    before, after = pair.start, pair.chosen
    word = display.change("latency_ps", before.latency_ps, after.latency_ps)
    tone = "" if word == display.EQUAL else "better" if pair.saved_ps > 0 else "worse"
    cells = (
        Cell(text=pair.name),
        Cell(text=display.value("latency_ps", before.latency_ps), order=before.latency_ps),
        Cell(text=display.value("latency_ps", after.latency_ps), order=after.latency_ps),
        Cell(text=word, tone=tone, order=after.latency_ps / before.latency_ps),
        Cell(text=before.bound_by),
        Cell(text=after.bound_by),
        Cell(text=display.value("energy_pj", before.energy_pj), order=before.energy_pj),
        Cell(text=display.value("energy_pj", after.energy_pj), order=after.energy_pj),
        Cell(text=_mapping_word(pair)),
    )
    return Row(cells=cells)


def _mapping_word(pair: LayerPair) -> str:
    mapping = pair.chosen.mapping
    if mapping is None:
        return ""
    return "optimal" if mapping["optimal"] else f"gap {display.percent(mapping['gap'])}"


def limits(facts: Facts) -> Table | None:
    """Constraints and memory capacities with the margin of each compared design."""
    columns = [{m.text: m for m in _all_margins(facts, d.trial)} for d in facts.compared]
    names = list(dict.fromkeys(name for column in columns for name in column))
    if not names:
        return None
    return Table(
        head=(Cell(text="Limit"), *(_design_head(facts, d) for d in facts.compared)),
        rows=tuple(
            Row(cells=(Cell(text=name), *(_margin_cell(column.get(name)) for column in columns)))
            for name in names
        ),
        numeric=frozenset(range(1, len(columns) + 1)),
    )


def _all_margins(facts: Facts, trial: Trial) -> tuple[Margin, ...]:
    configured = margins(facts.study.config.constraints, trial)
    return configured + memory_margins(trial, facts.evidence.architectures[trial.number])


def _margin_cell(margin: Margin | None) -> Cell:
    if margin is None:
        return Cell(text="–")
    if margin.key == "size_bytes":
        text = f"{format_size(margin.value)} of {format_size(margin.limit)}"
    else:
        text = display.value(margin.key, margin.value)
    if margin.share < 0:
        return Cell(text=text, note=f"{display.percent(-margin.share)} over", tone="worse")
    return Cell(text=text, note=f"{display.percent(margin.share)} free", tone="better")


def reasons(facts: Facts) -> Table:
    """Why trials were infeasible."""
    total = len(facts.study.trials)
    return Table(
        head=_head("Limit", "Trials", "Share", "First such trial", "Its message"),
        rows=tuple(
            Row(
                cells=(
                    Cell(text=r.limit),
                    Cell(text=str(r.count)),
                    Cell(text=display.percent(r.count / total)),
                    Cell(text=label(r.example)),
                    Cell(text=display.typeset(r.example.reason)),
                )
            )
            for r in facts.reasons
        ),
        numeric=frozenset({1, 2}),
    )


def trials(facts: Facts) -> Table:
    """All trials, the start first."""
    free = [p.path for p in facts.study.space.parameters]
    everything = (facts.study.start, *facts.study.trials)
    return Table(
        head=(
            *_head("Design", "State", *(display.title(k) for k in facts.keys)),
            *map(_path_head, free),
            Cell(text="Reason"),
        ),
        rows=tuple(_trial_row(facts, t, free) for t in everything),
        numeric=frozenset(range(2, len(facts.keys) + 2)),
        sortable=True,
    )


def _trial_row(facts: Facts, trial: Trial, free: Sequence[str]) -> Row:
    name = Cell(text=label(trial), order=trial.number)
    state = Cell(text=trial.state.value.lower())
    values = (value_cell(trial, key) for key in facts.keys)
    reason = Cell(text=display.typeset(trial.reason), tone="wrap")
    return Row(
        cells=(name, state, *values, *_settings(facts, trial, free), reason),
        tone="" if trial.feasible else "muted",
    )


def nearest(facts: Facts) -> Table:
    """Where nothing is feasible: the designs that came closest, and by how much they miss."""
    free = [p.path for p in facts.study.space.parameters]
    broken = sorted({key for t in facts.nearest for key in t.constraints})
    return Table(
        head=(
            *_head("Design", *(f"{key} limit" for key in broken)),
            *_head(*(display.title(k) for k in facts.keys)),
            *map(_path_head, free),
        ),
        rows=tuple(
            Row(
                cells=(
                    Cell(text=label(t)),
                    *(_violation_cell(t, key) for key in broken),
                    *(value_cell(t, key) for key in facts.keys),
                    *_settings(facts, t, free),
                )
            )
            for t in facts.nearest
        ),
        numeric=frozenset(range(1, len(broken) + len(facts.keys) + 1)),
    )


def _violation_cell(trial: Trial, key: str) -> Cell:
    if key not in trial.constraints:
        return Cell(text="–")
    beyond = trial.constraints[key]
    if beyond <= 0:
        return Cell(text="met", tone="better")
    return Cell(text=f"{display.percent(beyond)} over", tone="worse")
