"""Vocabulary: do the words of configuration files and the tables behind them agree?"""

from __future__ import annotations

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
