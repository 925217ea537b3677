"""Vocabulary: do the words of configuration files and the tables behind them agree?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from arch import fields, technology, technology_data
from arch.datatypes import BITS
from arch.families.spatial import DATAFLOWS, REPLICATION
from arch.families.spatial_schema import PeArrayConfig, RegistersConfig
from arch.spec import DIM_CLASSES, ROLES, VECTOR_OPERATIONS


def test_each_word_of_a_file_is_one_of_the_records() -> None:
    assert get_args(fields.Role) == ROLES
    assert get_args(fields.VectorOperation) == VECTOR_OPERATIONS
    assert get_args(fields.DramType) == technology.DRAM_TYPES
    assert get_args(fields.Corner) == technology.CORNERS
    assert set(get_args(fields.Dtype)) <= set(BITS)
    assert get_args(PeArrayConfig.model_fields["dataflow"].annotation) == tuple(DATAFLOWS)
    assert set(get_args(RegistersConfig.model_fields["per"].annotation)) == set(REPLICATION)


def test_every_data_type_has_its_energy_and_area() -> None:
    dtypes = set(get_args(fields.Dtype))
    for table in (
        technology_data.MULTIPLY_PJ,
        technology_data.ADD_PJ,
        technology_data.MULTIPLY_UM2,
        technology_data.ADD_UM2,
    ):
        assert set(table) == dtypes


def test_a_dataflow_unrolls_known_classes_on_two_axes() -> None:
    for rows, cols in DATAFLOWS.values():
        assert set(rows) | set(cols) <= set(DIM_CLASSES)


@pytest.mark.parametrize("node", technology_data.SRAM)
def test_the_sram_table_is_strictly_monotone_in_size(node: int) -> None:
    points = technology_data.SRAM[node]
    for name in ("size_bytes", "read_pj", "write_pj", "area_mm2", "leakage_w", "access_ps"):
        column = [getattr(point, name) for point in points]
        assert column == sorted(set(column))


def terms() -> list[str]:
    """The first cell of each row of the vocabulary's tables."""
    file = Path(__file__).parents[2] / "docs" / "vocabulary.md"
    rows = [line.split("|")[1].strip() for line in file.read_text().splitlines() if line[:1] == "|"]
    return [row for row in rows if row != "term" and not set(row) <= set("-")]


def test_each_term_of_the_vocabulary_has_one_meaning() -> None:
    counts = Counter(term.lower() for term in terms())
    assert len(counts) > 60
    assert [term for term, count in counts.items() if count > 1] == []


def test_words_with_several_meanings_are_told_apart() -> None:
    """A plan is of memory, recomputation or measurement; what runs in which order is a schedule."""
    known = set(terms())
    assert {"schedule", "memory plan", "recomputation plan", "measurement plan"} <= known
    assert not known & {"plan", "optimal"}
