"""Does ``dse map --unroll`` keep to the given loops, and is the free choice never worse?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.running import Dse

CONV = ("map", "-a", "edge_npu", "-w", "conv2d:C=8,H=6,K=16,R=3")


def mapped(dse: Dse, *unroll: str) -> dict[str, Any]:
    options = [word for text in unroll for word in ("--unroll", text)]
    outcome = dse(*CONV, *options, "--json")
    assert outcome.code == 0, outcome.err
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def edp(document: dict[str, Any]) -> float:
    return float(document["energy_pj"] * document["latency_ps"])


def spatial(document: dict[str, Any]) -> set[tuple[str, str]]:
    """Axis and loop of everything that is unrolled."""
    (operator,) = document["operators"]
    return {(s["axis"], s["dim"]) for s in operator["mapping"]["spatial"]}


def test_the_free_choice_is_at_least_as_good(dse: Dse) -> None:
    free = mapped(dse)
    for rows in ("C", "R+S", "C+R+S"):
        given = mapped(dse, f"rows={rows}", "cols=K")
        assert edp(given) >= edp(free)
        assert spatial(given) <= {("cols", "K"), *(("rows", dim) for dim in rows.split("+"))}
    assert edp(mapped(dse, "rows=C+R+S", "cols=K")) == edp(free)


def test_an_axis_that_is_left_out_unrolls_nothing(dse: Dse) -> None:
    assert spatial(mapped(dse, "cols=K")) == {("cols", "K")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--unroll", "rows=P"), "loop P of conv2d cannot be unrolled there; allowed C, R, S"),
        (("--unroll", "rows=X"), "unknown loop 'X'"),
        (("--unroll", "row=C"), "did you mean 'rows'?"),
        (("--unroll", "rows"), "is not AXIS=LOOPS"),
        (("--unroll", "rows=C", "--unroll", "rows=R"), "axis rows is given twice"),
    ],
)
def test_what_makes_no_sense(dse: Dse, options: tuple[str, ...], message: str) -> None:
    outcome = dse(*CONV, *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_it_is_about_one_operator(dse: Dse) -> None:
    outcome = dse("map", "-a", "edge_npu", "-w", "vit-ti:image=32", "--unroll", "rows=K")
    assert (outcome.code, "add --op NAME" in outcome.err) == (2, True)
