"""Changes to ``data/npu.yaml`` that make no sense, and what the message must say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BadArchitecture:
    """``old`` is replaced by ``new``; the message names the place ``where`` and ``says`` this."""

    name: str
    old: str
    new: str
    where: str
    says: tuple[str, ...]


def bad(name: str, change: tuple[str, str], where: str, *says: str) -> BadArchitecture:
    return BadArchitecture(name, *change, where, says)


GBUF = """\
  gbuf:
    kind: sram
    size: 256 KiB"""

BAD_ARCHITECTURES = (
    bad(
        "typo key in a memory",
        ("    size: 256 KiB ", "    szie: 256 KiB "),
        "components.gbuf.szie",
        "did you mean 'size'?",
    ),
    bad(
        "typo top-level key",
        ("components:\n", "componets:\n"),
        "componets",
        "did you mean 'components'?",
    ),
    bad("unknown family", ("family: spatial", "family: spacial"), "family", "'spatial'?"),
    bad(
        "negative memory size",
        ("size: 256 KiB", "size: -256 KiB"),
        "components.gbuf.size",
        "allowed",
    ),
    bad("zero memory size", ("size: 256 KiB", "size: 0 B"), "components.gbuf.size", "allowed"),
    bad(
        "zero array",
        ("rows: 16", "rows: 0"),
        "components.array.rows",
        "0 is out of range; allowed 1",
    ),
    bad(
        "negative array", ("rows: 16", "rows: -16"), "components.array.rows", "-16 is out of range"
    ),
    bad("fractional array", ("rows: 16", "rows: 15.5"), "components.array.rows", "whole number"),
    bad(
        "negative energy",
        ("energy: 8 pJ/bit", "energy: -8 pJ/bit"),
        "components.dram.energy",
        "allowed",
    ),
    bad(
        "negative cost of a multiplication",
        ("mac_energy: auto", "mac_energy: -0.2 pJ"),
        "components.array.mac_energy",
        "allowed",
    ),
    bad(
        "negative bandwidth",
        ("bandwidth: 16 B/cycle ", "bandwidth: -16 B/cycle "),
        "components.dram.bandwidth",
        "allowed",
    ),
    bad(
        "zero bandwidth",
        ("read_bandwidth: 32 B/cycle", "read_bandwidth: 0 B/cycle"),
        "components.gbuf.read_bandwidth",
        "allowed",
    ),
    bad(
        "unit slip of 10^12, joules for picojoules",
        ("energy: 8 pJ/bit", "energy: 8 J/bit"),
        "components.dram.energy",
        "allowed",
    ),
    bad(
        "unit slip of 10^9, clock in GHz for Hz",
        ("clock: 1 GHz", "clock: 1000000000 GHz"),
        "clock",
        "allowed",
    ),
    bad(
        "number without a unit",
        ("size: 256 KiB", "size: 262144"),
        "components.gbuf.size",
        "unit",
    ),
    bad("ambiguous unit", ("size: 256 KiB", "size: 256 KB"), "components.gbuf.size", "KiB"),
    bad("unknown unit", ("size: 256 KiB", "size: 256 KiBi"), "components.gbuf.size", "KiB"),
    bad(
        "node in metres",
        ("technology: 22 nm", "technology: 22"),
        "technology",
        "22 nm",
    ),
    bad(
        "missing DRAM",
        ("    kind: dram\n", "    kind: sram\n"),
        "components",
        "there is no component of kind 'dram'",
    ),
    bad(
        "DRAM that cannot store outputs",
        ("    type: lpddr4\n", "    type: lpddr4\n    keeps: [input, weight]\n"),
        "components.dram.keeps",
        "missing output",
    ),
    bad(
        "missing port",
        ("    read_bandwidth: 32 B/cycle", "    # "),
        "components.gbuf.read_bandwidth",
        "this required key is missing",
    ),
    bad(
        "missing compute",
        ("    kind: pe_array\n", "    kind: vector_unit\n"),
        "components",
        "there is no component of kind 'pe_array'",
    ),
    bad(
        "unknown dataflow",
        ("dataflow: weight_stationary", "dataflow: rs"),
        "components.array.dataflow",
        "weight_stationary, output_stationary, input_stationary, row_stationary, free",
    ),
    bad(
        "unknown axis to replicate over",
        ("per: column", "per: colum"),
        "components.acc.per",
        "did you mean 'column'?",
    ),
    bad(
        "unknown operand",
        ("keeps: [weight]", "keeps: [weights]"),
        "components.wreg.keeps",
        "did you mean 'weight'?",
    ),
    bad(
        "unknown data type",
        ("dtypes: [int8]", "dtypes: [int7]"),
        "components.array.dtypes.0",
        "allowed int4, int8",
    ),
    bad(
        "duplicate key",
        ("    size: 256 KiB ", "    size: 1 MiB\n    size: 256 KiB "),
        "components.gbuf.size",
        "duplicate key",
    ),
    bad("unknown kind of component", (GBUF, GBUF.replace("sram", "srma")), "components", "'sram'?"),
    bad("text for a number", ("rows: 16", "rows: sixteen"), "components.array.rows", "sixteen"),
    bad("tab", ("  gbuf:", "\tgbuf:"), "", "tab"),
    bad("broken syntax", ("keeps: [weight]", "keeps: [weight"), "", "not valid YAML"),
    bad(
        "inner memory before outer",
        ("  gbuf:\n    kind: sram", "  gbuf:\n    kind: registers\n    per: chip"),
        "components",
        "there is no component of kind 'sram'",
    ),
    bad("another name than the file", ("name: npu", "name: mpu"), "name", "'npu'"),
)
