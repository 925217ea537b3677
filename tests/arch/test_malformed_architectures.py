"""Bad architecture files: is each refused with its line, what is allowed, and a suggestion?

Each case replaces one piece of a sound file. None may be accepted and none may crash: a result
computed from an input that makes no sense would be worse than no result.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arch.errors import InputError
from arch.load import load_architecture

SOUND = """\
name: chip
family: spatial
description: a sound file
clock: 1 GHz
technology: 22 nm
components:
  dram:
    kind: dram
    size: 1 GiB
    bandwidth: 16 B/cycle
    energy: 8 pJ/bit
    latency: 100 ns
  gbuf:
    kind: sram
    size: 256 KiB
    keeps: [input, weight, output]
    read_bandwidth: 32 B/cycle
    write_bandwidth: 32 B/cycle
    read_energy: 1.5 pJ/B
    area: 0.2 mm2
    leakage: 35 uW
  wreg:
    kind: registers
    per: pe
    keeps: [weight]
    size: 2 B
    read_energy: 0.1 pJ/B
  array:
    kind: pe_array
    rows: 16
    cols: 16
    dataflow: weight_stationary
    interconnect: systolic
    mac_pipeline: 1
    dtypes: [int8]
    mac_energy: 0.2 pJ
  vector:
    kind: vector_unit
    lanes: 16
    pipeline: 1
    operations: [add, max]
    dtypes: [int8]
"""

GBUF = SOUND[SOUND.index("  gbuf:") : SOUND.index("  wreg:")]
DRAM = SOUND[SOUND.index("  dram:") : SOUND.index("  gbuf:")]
ARRAY = SOUND[SOUND.index("  array:") : SOUND.index("  vector:")]
VECTOR = SOUND[SOUND.index("  vector:") :]

#: name: (piece to replace, what stands there instead, line of the problem, parts of the message)
CASES: dict[str, tuple[str, str, int, tuple[str, ...]]] = {
    "typo in a key": (
        "    size: 256 KiB",
        "    sise: 256 KiB",
        15,
        ("components.gbuf.sise", "unknown key 'sise'", "allowed ", "did you mean 'size'?"),
    ),
    "missing key": ("    size: 256 KiB\n", "", 13, ("components.gbuf.size", "missing")),
    "typo at top level": ("clock:", "clok:", 4, ("clok: unknown key", "did you mean 'clock'?")),
    "missing at top level": ("clock: 1 GHz\n", "", 1, ("clock: ", "missing")),
    "duplicate key": (
        "    size: 256 KiB\n",
        "    size: 256 KiB\n    size: 1 MiB\n",
        16,
        ("components.gbuf.size", "duplicate", "first on line 15"),
    ),
    "duplicate component": (
        "  wreg:",
        "  gbuf:",
        22,
        ("components.gbuf", "duplicate", "first on line 13"),
    ),
    "negative size": ("256 KiB", "-256 KiB", 15, ("gbuf.size", "negative", "allowed 16 B to")),
    "zero size": ("256 KiB", "0 KiB", 15, ("gbuf.size", "zero", "allowed 16 B to 1 GiB")),
    "size without unit": ("256 KiB", "262144", 15, ("has no unit", "such as '256 KiB'")),
    "ambiguous unit": ("256 KiB", "256 KB", 15, ("KiB (1024 bytes) or kB (1000 bytes)",)),
    "fraction of a byte": ("256 KiB", "256.3 B", 15, ("not a whole number",)),
    "size as a list": ("256 KiB", "[256 KiB]", 15, ("expected a size",)),
    "negative bandwidth": ("16 B/cycle", "-16 B/cycle", 10, ("negative", "100 MB/s to 10 TB/s")),
    "zero bandwidth": ("16 B/cycle", "0 B/cycle", 10, ("zero",)),
    "bandwidth slip of 10^3": ("16 B/cycle", "16 kB/cycle", 10, ("is the unit right?",)),
    "bandwidth slip down": ("16 B/cycle", "16 MB/s", 10, ("is the unit right?",)),
    "buffer bandwidth slip": (
        "read_bandwidth: 32 B",
        "read_bandwidth: 32 kB",
        17,
        ("unit right?",),
    ),
    "DRAM energy slip of 10^12": (
        "8 pJ/bit",
        "8 J/bit",
        11,
        ("dram.energy", "allowed 0 or 200 fJ/bit to 100 pJ/bit", "is the unit right?"),
    ),
    "DRAM energy slip of 10^3": ("8 pJ/bit", "8 nJ/bit", 11, ("is the unit right?",)),
    "DRAM energy slip down": ("8 pJ/bit", "8 fJ/bit", 11, ("is the unit right?",)),
    "DRAM energy per access": ("8 pJ/bit", "8 pJ", 11, ("such as '8 pJ/bit'",)),
    "negative energy": ("1.5 pJ/B", "-1.5 pJ/B", 19, ("gbuf.read_energy", "negative")),
    "buffer energy slip": ("1.5 pJ/B", "1.5 nJ/B", 19, ("is the unit right?",)),
    "register energy slip": ("0.1 pJ/B", "0.1 nJ/B", 27, ("wreg.read_energy", "unit right?")),
    "negative MAC energy": ("0.2 pJ", "-0.2 pJ", 36, ("array.mac_energy", "negative")),
    "MAC energy slip of 10^3": ("0.2 pJ", "0.2 nJ", 36, ("is the unit right?",)),
    "MAC energy slip down": ("0.2 pJ", "0.2 fJ", 36, ("is the unit right?",)),
    "clock slip of 10^3": ("1 GHz", "1 THz", 4, ("clock", "allowed 5 MHz to 10 GHz")),
    "clock slip down": ("1 GHz", "1 MHz", 4, ("is the unit right?",)),
    "negative clock": ("1 GHz", "-1 GHz", 4, ("negative",)),
    "node slip of 10^3": ("22 nm", "22 um", 5, ("technology", "allowed 7 nm to 65 nm")),
    "node without data": ("22 nm", "90 nm", 5, ("allowed 7 nm to 65 nm",)),
    "negative area": ("0.2 mm2", "-0.2 mm2", 20, ("gbuf.area", "negative")),
    "area slip": ("0.2 mm2", "2000 cm2", 20, ("is the unit right?",)),
    "negative leakage": ("35 uW", "-35 uW", 21, ("gbuf.leakage", "negative")),
    "negative latency": ("100 ns", "-100 ns", 12, ("dram.latency", "negative")),
    "latency slip": ("100 ns", "100 ms", 12, ("is the unit right?",)),
    "missing DRAM": (DRAM, "", 6, ("components", "no component of kind 'dram'")),
    "two DRAMs": (
        GBUF,
        DRAM.replace("dram:", "dram2:") + GBUF,
        6,
        ("2 components of kind 'dram' (dram, dram2)", "at most 1"),
    ),
    "missing buffer": (GBUF, "", 6, ("no component of kind 'sram'",)),
    "missing array": (ARRAY, "", 6, ("no component of kind 'pe_array'",)),
    "two vector units": (
        VECTOR,
        VECTOR + VECTOR.replace("vector:", "vector2:"),
        6,
        ("2 components of kind 'vector_unit'",),
    ),
    "DRAM without an operand": (
        "    energy: 8 pJ/bit",
        "    energy: 8 pJ/bit\n    keeps: [input, weight]",
        12,
        ("dram.keeps", "must keep every operand", "missing output"),
    ),
    "DRAM energy auto without type": (
        "energy: 8 pJ/bit",
        "energy: auto",
        11,
        ("'auto' needs 'type'", "lpddr4"),
    ),
    "unknown DRAM type": (
        "energy: 8 pJ/bit",
        "type: lpdr4\n    energy: auto",
        11,
        ("dram.type", "'lpdr4' is not allowed", "did you mean 'lpddr4'?"),
    ),
    "unknown kind": (
        "kind: sram",
        "kind: srma",
        13,
        ("unknown kind 'srma'", "allowed dram, sram", "did you mean 'sram'?"),
    ),
    "missing kind": ("    kind: sram\n", "", 13, ("required key 'kind' is missing",)),
    "unknown dataflow": (
        "weight_stationary",
        "weight_stationery",
        32,
        ("array.dataflow", "output_stationary", "did you mean 'weight_stationary'?"),
    ),
    "dataflow of another tool": ("weight_stationary", "rs", 32, ("'rs' is not allowed", "free")),
    "unknown data type": ("[int8]\n    mac", "[int9]\n    mac", 35, ("dtypes.0", "'int8'?")),
    "data types not a list": ("[int8]\n    mac", "int8\n    mac", 35, ("expected a list",)),
    "no data type": ("[int8]\n    mac", "[]\n    mac", 35, ("at least one",)),
    "unknown operation": ("[add, max]", "[add, maxx]", 41, ("operations.1", "did you mean 'max'?")),
    "operation twice": ("[add, max]", "[add, add]", 41, ("lists add more than once",)),
    "unknown operand": (
        "keeps: [weight]",
        "keeps: [weights]",
        25,
        ("wreg.keeps.0", "'weights' is not allowed", "did you mean 'weight'?"),
    ),
    "operand kept nowhere": (
        "keeps: [input, weight, output]",
        "keeps: [input, weight]",
        6,
        ("no memory on the chip keeps 'output'", "'streamed'"),
    ),
    "streamed though kept": (
        "clock:",
        "streamed: [input]\nclock:",
        4,
        ("streamed", "'input' is kept on the chip"),
    ),
    "unknown place of registers": (
        "per: pe",
        "per: cell",
        24,
        ("wreg.per", "chip, column, row, pe"),
    ),
    "zero rows": ("rows: 16", "rows: 0", 30, ("array.rows", "allowed 1 to 4096")),
    "negative columns": ("cols: 16", "cols: -16", 31, ("array.cols", "allowed 1 to 4096")),
    "absurd rows": ("rows: 16", "rows: 1000000", 30, ("allowed 1 to 4096",)),
    "rows as text": ("rows: 16", "rows: '16'", 30, ("expected a whole number",)),
    "fractional rows": ("rows: 16", "rows: 16.5", 30, ("expected a whole number",)),
    "rows true": ("rows: 16", "rows: true", 30, ("expected a whole number",)),
    "flag as text": (
        "    leakage: 35 uW",
        "    double_buffered: 'yes'",
        21,
        ("double_buffered", "true or false"),
    ),
    "memories out of order": (
        GBUF,
        "  early:\n    kind: registers\n    per: pe\n    keeps: [output]\n    size: 4 B\n" + GBUF,
        18,
        ("components.gbuf", "must stand before 'early'", "outermost inwards"),
    ),
    "name of a component": ("  gbuf:", "  G-buf:", 13, ("components.G-buf", "lower case")),
    "component named as a key": ("  gbuf:", "  clock:", 13, ("is a key of the architecture",)),
    "component is not a mapping": (GBUF, "  gbuf: 12\n", 13, ("components.gbuf",)),
    "components is a list": (
        SOUND[SOUND.index("components:") :],
        "components: [a]\n",
        6,
        ("components", "expected a mapping"),
    ),
    "name of another file": (
        "name: chip",
        "name: chap",
        1,
        ("'chap' is not the name of the file",),
    ),
    "unknown family": (
        "family: spatial",
        "family: spacial",
        2,
        ("unknown family 'spacial'", "did you mean 'spatial'?"),
    ),
    "missing family": ("family: spatial\n", "", 1, ("family: this required key is missing",)),
    "no description": ("a sound file", "''", 3, ("description: must not be empty",)),
    "name with a space": ("name: chip", "name: a chip", 1, ("name: ",)),
    "tab": ("    kind: sram", "\tkind: sram", 14, ("indented with a tab",)),
    "not a mapping": (SOUND, "- a\n- b\n", 1, ("expected a mapping",)),
    "null": ("256 KiB", "~", 15, ("gbuf.size", "expected a size")),
    "not a number": ("256 KiB", ".nan", 15, ("gbuf.size",)),
}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "chip.yaml"
    path.write_text(text)
    return path


def test_the_sound_file_loads(tmp_path: Path) -> None:
    assert load_architecture(written(tmp_path, SOUND)).name == "chip"


@pytest.mark.parametrize("case", CASES)
def test_each_problem_is_named_with_its_line(tmp_path: Path, case: str) -> None:
    old, new, line, parts = CASES[case]
    assert old in SOUND
    path = written(tmp_path, SOUND.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_architecture(path)
    here = [str(p) for p in error.value.problems if str(p).startswith(f"{path}:{line}: ")]
    assert any(all(part in text for part in parts) for text in here), str(error.value)


def test_all_problems_of_a_file_are_reported_at_once_in_its_order(tmp_path: Path) -> None:
    text = (
        SOUND.replace("clock:", "clok:").replace("256 KiB", "-1 B").replace("rows: 16", "rows: 0")
    )
    text = text.replace(DRAM, "").replace("name: chip", "name: chap")
    with pytest.raises(InputError) as error:
        load_architecture(written(tmp_path, text))
    problems = error.value.problems
    assert {problem.where for problem in problems} == {
        *("name", "clok", "components", "components.gbuf.size", "components.array.rows")
    }
    assert "did you mean 'clock'?" in str(error.value)
    lines = [problem.line or 0 for problem in problems]
    assert lines == sorted(lines)


def test_a_register_of_one_byte_and_no_energy_is_a_held_operand(tmp_path: Path) -> None:
    text = SOUND.replace("size: 2 B\n    read_energy: 0.1 pJ/B", "size: 1 B\n    read_energy: 0")
    memory = load_architecture(written(tmp_path, text)).memories[-1]
    assert (memory.size_bytes, memory.read_pj_per_byte) == (1, 0.0)


def test_an_operand_may_be_streamed_on_purpose(tmp_path: Path) -> None:
    text = SOUND.replace("keeps: [input, weight, output]", "keeps: [input, weight]")
    architecture = load_architecture(written(tmp_path, "streamed: [output]\n" + text))
    assert [m.name for m in architecture.memories if "output" in m.roles] == ["dram"]


def test_no_such_file_and_no_such_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_architecture(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="is a folder"):
        load_architecture(tmp_path)
    with pytest.raises(InputError, match=r"did you mean 'edge_npu'\?"):
        load_architecture("egde_npu")


SCALARS = (
    "0",
    "-1",
    "1e99",
    "~",
    "true",
    "[]",
    "{}",
    "[[1]]",
    "{a: {b: c}}",
    "x",
    "'",
    "&a",
    "12 nm",
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_no_damage_to_a_file_is_anything_but_sound_or_an_input_error(seed: int, cuts: int) -> None:
    random_ = random.Random(seed)
    lines = SOUND.splitlines()
    for _ in range(cuts):
        where = random_.randrange(len(lines))
        key = lines[where].partition(":")[0]
        lines[where] = random_.choice(
            ["", f"{key}: {random_.choice(SCALARS)}", f"  {lines[where]}"]
        )
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "\n".join(lines))
        try:
            architecture = load_architecture(path)
        except InputError as error:
            problems = error.problems
            architecture = None
        else:
            problems = ()
    assert all(problem.file == path and problem.line is not None for problem in problems)
    assert architecture is None or architecture.area_mm2 >= 0
