"""Timing rules: do they say what they mean, and only with words that exist?"""

from __future__ import annotations

import re

import pytest

from arch.timing import COMMANDS, PARAMETERS, RULES, SCOPES, Rule, cycles, gates

VALUES = dict.fromkeys(PARAMETERS, 10)


def test_every_rule_uses_known_commands_scopes_and_parameters() -> None:
    for rule in RULES:
        assert {rule.previous, rule.next} <= set(COMMANDS)
        assert rule.scope in SCOPES
        assert set(re.findall(r"[A-Z_0-9]*[A-Z][A-Z_0-9]*", rule.distance)) <= set(PARAMETERS)


def test_distances_are_sums() -> None:
    values = {"CL": 14, "BURST": 2, "RTW": 2, "CWL": 4}
    assert cycles("CL + BURST + RTW - CWL", values) == 14
    assert cycles("CL", values) == 14


def test_an_unknown_parameter_in_a_rule_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        gates(VALUES, (), (Rule("ACT", "RD", "bank", "RCDX"),))


def test_of_several_rules_the_longest_counts_and_empty_ones_vanish() -> None:
    rules = (
        Rule("RD", "RD", "rank", "CCD_S"),
        Rule("RD", "RD", "rank", "BURST"),
        Rule("PRE", "PRE", "rank", "PPD"),
    )
    (gate,) = gates(VALUES | {"CCD_S": 4, "BURST": 2, "PPD": 0}, (), rules)
    assert gate.cycles == 4


def test_a_window_is_another_rule_than_its_commands_next_to_each_other() -> None:
    found = gates(VALUES | {"RRD_S": 4, "FAW": 30}, ())
    act = [g for g in found if COMMANDS[g.previous] == COMMANDS[g.next] == "ACT"]
    rank = {g.window: g.cycles for g in act if SCOPES[g.scope] == "rank"}
    assert (rank[1], rank[4]) == (4, 30)


def test_scopes_can_be_left_out() -> None:
    assert any(SCOPES[g.scope] == "group" for g in gates(VALUES, ()))
    assert not any(SCOPES[g.scope] == "group" for g in gates(VALUES, ("group",)))
