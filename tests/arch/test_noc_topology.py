"""Do links carry what the nodes behind them want?"""

from __future__ import annotations

from fractions import Fraction

import pytest

from arch.noc import SPREADS, TOPOLOGIES, Branch, Network, loads

ROWS, COLS = 3, 4


def network(topology: str) -> Network:
    return TOPOLOGIES[topology](ROWS, COLS)


def branch(topology: str, name: str) -> Branch:
    return next(b for b in network(topology).branches if b.name == name)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_all_traffic_enters_once_and_every_node_but_the_first_has_a_link(topology: str) -> None:
    branches = network(topology).branches
    assert loads(branches[0], ROWS, COLS, multicast=True) == dict.fromkeys(SPREADS, 1)
    links = sum(b.count for b in branches[1:])
    assert links == (ROWS * COLS if topology == "crossbar" else ROWS * COLS - 1)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_without_multicast_links_carry_a_copy_for_each_node(topology: str) -> None:
    """A broadcast without multicast is as many unicasts as there are nodes."""
    for each in network(topology).branches:
        one = loads(each, ROWS, COLS, multicast=False)
        assert one[False, False] == ROWS * COLS * one[True, True]
        assert one[True, True] == loads(each, ROWS, COLS, multicast=True)[True, True]


def test_a_mesh_spreads_along_the_first_row_and_down_the_columns() -> None:
    """Of a unicast stream the link to column i carries (C - i) / C, the one down to row j of one
    column (R - j) / R of a column's share."""
    for i in range(1, COLS):
        got = loads(branch("mesh", f"x{i}"), ROWS, COLS, multicast=True)
        assert got[True, True] == Fraction(COLS - i, COLS)
        assert got[False, True] == Fraction(COLS - i, COLS)
        assert got[True, False] == got[False, False] == 1
    for j in range(1, ROWS):
        got = loads(branch("mesh", f"y{j}"), ROWS, COLS, multicast=True)
        assert got[True, True] == Fraction(ROWS - j, ROWS * COLS)
        assert got[True, False] == Fraction(ROWS - j, ROWS)
        assert got[False, True] == Fraction(1, COLS)
        assert got[False, False] == 1


def test_a_ring_goes_the_shorter_way_round() -> None:
    """Eleven nodes beside the entrance: six one way, five the other."""
    first = {
        name: loads(branch("ring", name), ROWS, COLS, multicast=True) for name in ("cw1", "ccw1")
    }
    assert first["cw1"][True, True] == Fraction(6, 12)
    assert first["ccw1"][True, True] == Fraction(5, 12)
    assert network("ring").hops == 1 + 6


def test_hops_are_those_to_the_farthest_node() -> None:
    assert network("mesh").hops == 1 + (ROWS - 1) + (COLS - 1)
    assert network("crossbar").hops == 2
