"""Overrides: is exactly one parameter changed, and everything else checked again?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arch.errors import InputError
from arch.load import load_architecture
from arch.registry import family_named
from arch.spec import Architecture, Memory

EDGE = load_architecture("edge_npu")


def memory(architecture: Architecture, name: str) -> Memory:
    component = architecture.component(name)
    assert isinstance(component, Memory)
    return component


def test_one_parameter_changes_and_the_original_does_not() -> None:
    changed = EDGE.with_overrides({"gbuf.size": "1 MiB"})
    assert memory(changed, "gbuf").size_bytes == 1 << 20
    assert memory(EDGE, "gbuf").size_bytes == 256 << 10
    assert EDGE.document["components"]["gbuf"]["size"] == "256 KiB"
    same = [c for c in EDGE.components if c.name != "gbuf"]
    assert [c for c in changed.components if c.name != "gbuf"] == same


def test_no_override_is_no_change() -> None:
    assert EDGE.with_overrides({}) == EDGE


def test_top_level_parameters() -> None:
    changed = EDGE.with_overrides({"clock": "500 MHz", "technology": "28 nm", "corner": "high"})
    assert (changed.clock_hz, changed.technology_nm) == (500_000_000, 28)
    assert memory(changed, "dram").read_bytes_per_s == 16 * 500_000_000


def test_an_optional_parameter_may_be_set_though_the_file_leaves_it_out() -> None:
    assert (
        memory(EDGE.with_overrides({"acc.double_buffered": False}), "acc").double_buffered is False
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("32", 32), (32, 32), ("0x20", None), ("32.0", None), ("thirty-two", None), ("", None)],
)
def test_text_reads_as_it_would_in_a_file(text: object, value: int | None) -> None:
    if value is None:
        with pytest.raises(InputError, match=r"^array\.rows: expected a whole number"):
            EDGE.with_overrides({"array.rows": text})
    else:
        compute = EDGE.with_overrides({"array.rows": text}).computes[0]
        assert compute.intrinsics[0].axes[0].size == value


def test_lists_and_flags_as_text() -> None:
    changed = EDGE.with_overrides({"array.dtypes": "[int8, int16]", "gbuf.shared_port": "true"})
    assert changed.computes[0].intrinsics[0].dtypes == ("int8", "int16")
    assert memory(changed, "gbuf").shared_port is True


@given(st.integers(1, 4096))
def test_integers_of_array_libraries_count_as_integers(rows: int) -> None:
    class Index:
        def __index__(self) -> int:
            return rows

    assert EDGE.with_overrides({"array.rows": Index()}) == EDGE.with_overrides({"array.rows": rows})


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        ("gbuf.sise", "1 KiB", ("gbuf.sise: no such parameter", "did you mean 'gbuf.size'?")),
        ("gbfu.size", "1 KiB", ("gbfu.size: no such parameter", "did you mean 'gbuf.size'?")),
        ("clok", "1 GHz", ("clok: no such parameter", "did you mean 'clock'?")),
        ("gbuf", "1 KiB", ("gbuf: no such parameter", "gbuf.size, gbuf.keeps")),
        ("gbuf.kind", "dram", ("gbuf.kind: no such parameter",)),
        ("name", "other", ("name: no such parameter",)),
        ("components.gbuf.size", "1 KiB", ("no such parameter", "did you mean 'gbuf.size'?")),
        ("gbuf.size", "-1 KiB", ("gbuf.size: '-1 KiB' is negative", "allowed 16 B to 1 GiB")),
        ("gbuf.size", 262144, ("gbuf.size: 262144 has no unit",)),
        ("dram.energy", "8 J/bit", ("dram.energy: ", "is the unit right?")),
        ("array.dataflow", "fre", ("array.dataflow: 'fre' is not allowed", "did you mean 'free'?")),
        ("gbuf.keeps", "[input]", ("no memory on the chip keeps 'weight'",)),
        ("dram.keeps", "[input]", ("dram.keeps: must keep every operand",)),
    ],
)
def test_what_cannot_be_set(path: str, value: object, parts: tuple[str, ...]) -> None:
    only_in_buffer = EDGE.with_overrides({"wreg.keeps": "[input]"})
    with pytest.raises(InputError) as error:
        only_in_buffer.with_overrides({path: value})
    text = str(error.value)
    assert all(part in text for part in parts), text
    assert all(problem.file is None for problem in error.value.problems)


def test_all_bad_overrides_are_reported_at_once() -> None:
    with pytest.raises(InputError) as error:
        EDGE.with_overrides({"gbuf.size": "0 B", "array.rows": 0, "clock": "1 s"})
    wheres = {problem.where for problem in error.value.problems}
    assert wheres == {"gbuf.size", "array.rows", "clock"}


def test_every_listed_path_can_be_set_to_what_it_is() -> None:
    family = family_named("spatial")
    components = EDGE.document["components"]
    for path in family.paths(EDGE.document):
        name, dot, key = path.partition(".")
        holder = components[name] if dot else EDGE.document
        if (key or name) in holder:
            assert EDGE.with_overrides({path: holder[key or name]}) == EDGE


@given(st.integers(1, 64), st.integers(1, 64), st.integers(4, 16))
def test_overrides_at_once_or_one_after_the_other(rows: int, cols: int, log2_kib: int) -> None:
    size = f"{1 << log2_kib} KiB"
    at_once = {"array.rows": rows, "array.cols": cols, "gbuf.size": size}
    one_by_one = EDGE
    for path, value in at_once.items():
        one_by_one = one_by_one.with_overrides({path: value})
    assert one_by_one == EDGE.with_overrides(at_once)
