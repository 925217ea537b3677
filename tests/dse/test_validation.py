"""Are rows checked, errors what they are called, and is nobody misled by a split?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from arch.errors import InputError
from arch.load import load_architecture
from dse import validation
from dse.cli import main
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model

HEADER = "kind,params,dtype,t_graph_us,t_cold_us,energy_mJ,power_W\n"


CONV: dict[str, object] = {"N": 1, "C": 64, "H": 7, "K": 66, "R": 3, "stride": 1, "groups": 1}


def row(kind: str, params: dict[str, object], dtype: str = "bf16", time_us: float = 5.0) -> str:
    text = json.dumps(params).replace('"', '""')
    return f'{kind},"{text}",{dtype},{time_us},9,1,200\n'


def write(path: Path, *rows: str) -> Path:
    path.write_text(HEADER + "".join(rows))
    return path


def test_errors_are_what_they_are_called() -> None:
    found = validation.errors("x", np.array([0.1, -0.3, 0.2, -0.2]))
    assert found.rows == 4
    assert found.mape == pytest.approx(0.2)
    assert found.median == pytest.approx(0.2)
    assert found.bias == pytest.approx(-0.05)


def test_unknown_sizes_are_ignored_with_a_warning(tmp_path: Path) -> None:
    gemm = {"M": 64, "N": 64, "K": 64}
    file = write(tmp_path / "a.csv", row("gemm", {**gemm, "impl": "torch"}), row("gemm", gemm))
    rows, warnings = validation.read_rows(file)
    assert rows[0].call == rows[1].call
    assert warnings == ["gemm: unknown size 'impl' ignored"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (row("gem", {"M": 1, "N": 1, "K": 1}), "gemm"),
        (row("gemm", {"M": 1, "N": 1}), "'K' is missing"),
        (row("gemm", {"m": 1, "N": 1}), "'M', 'K' are missing"),
        (row("gemm", {"M": 1, "N": 1, "K": 0}), "at least 1"),
        (row("gemm", {"M": 1, "N": 1, "K": 1}, dtype="bfp16"), "bf16"),
        (row("gemm", {"M": 1, "N": 1, "K": 1}, time_us=0), "above 0"),
        (row("gemm", {"M": 1, "N": 1, "K": 1}, time_us=float("inf")), "above 0"),
        ('gemm,"{M: 1}",bf16,5,9,1,200\n', "not JSON"),
        ('gemm,"[1]",bf16,5,9,1,200\n', "a JSON object"),
        ('gemm,"{}",bf16\n', "fewer cells"),
        (row("all_reduce", {"bytes": 1024, "gpus": 1}), "at least 2"),
        (row("ew_add", {"n": 64}, dtype="fp8"), "no ew_add in fp8"),
        (row("conv2d", CONV | {"groups": 3}), "not a multiple of groups 3"),
        (row("block", {"model": "lama3-8b", "B": 1, "S": 1, "ctx": 1}), "llama3-8b"),
    ],
)
def test_a_wrong_row_says_where_and_what_is_allowed(tmp_path: Path, bad: str, says: str) -> None:
    file = write(tmp_path / "a.csv", row("gemm", {"M": 1, "N": 1, "K": 1}), bad)
    with pytest.raises(InputError, match=says) as caught:
        validation.read_rows(file)
    assert f"{file}:3" in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_column(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.csv", row("gemm", {"M": 64, "N": 64, "K": 64}))
    marked = tmp_path / "b.csv"
    marked.write_text(plain.read_text(), encoding="utf-8-sig")
    assert validation.read_rows(marked) == validation.read_rows(plain)


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('kind,params,dtype,t_graph_us,t_graph_us\new_add,"{""n"": 64}",bf16,5,9\n')
    with pytest.raises(InputError, match="t_graph_us more than once"):
        validation.read_rows(file)


def test_a_file_without_rows_or_columns_says_what_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    for text, says in (
        ("", "the file is empty"),
        ("kind,params,dtype,time\n", "no column t_graph_us"),
        ("kind,params,dtype,t_graph_us\n", "there are no rows"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=says):
            validation.read_rows(file)


def test_columns_that_nothing_reads_are_ignored_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('kind,params,dtype,t_graph_us,host\new_add,"{""n"": 64}",bf16,2,a\n')
    rows, warnings = validation.read_rows(file)
    assert len(rows) == 1
    assert warnings == ["unknown column 'host' ignored"]


def test_splits_are_disjoint_and_complete() -> None:
    found = {
        split: {(r.call.kind, json.dumps(r.call.params), r.call.dtype) for r in rows}
        for split, (rows, _) in ((s, validation.shipped(s)) for s in validation.SPLITS)
    }
    judging = found["held-out"] | found["held-out-before"]
    assert found["train"] | judging == found["all"]
    assert not found["held-out"] & found["train"]
    # A launch of the smallest size may be drawn twice.
    assert len(found["train"] & found["held-out-before"]) <= 1
    # Few sizes of some KiB exist.
    assert len(found["train"] & found["two-gpus"]) <= 2


def test_collectives_and_blocks_on_two_gpus_never_used_for_fitting_are_predicted() -> None:
    rows, _ = validation.shipped("two-gpus")
    held = validation.compare(rows, gpu_model(chip_of(load_architecture("h200"))))
    size = np.abs(held.time_error)
    large = np.array([row.call.params.get("bytes", 0) > 4 << 20 for row in rows])
    blocks = np.array([row.call.kind == "block" for row in rows])
    assert large.sum() >= 30
    assert size[large].mean() <= 0.05
    assert size[blocks].mean() <= 0.05


def test_measured_kernels_never_used_for_fitting_are_predicted() -> None:
    rows, _ = validation.shipped("held-out")
    held = validation.compare(rows, gpu_model(chip_of(load_architecture("h200"))))
    table = {line.group: line for line in validation.time_table(held)}
    assert table["all"].rows > 200
    assert table["all"].median < 0.07
    products = [table[kind].median for kind in ("gemm", "bmm", "sdpa")]
    assert max(products) < 0.07
    assert table["block"].mape < 0.06


def test_a_split_is_of_the_shipped_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.csv", row("ew_add", {"n": 64}))
    assert main(["validate", "h200", "--csv", str(file), "--split", "train"]) == 2
    assert "--split" in capsys.readouterr().err


def test_the_command_prints_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "a.csv", row("row_sum", {"R": 128, "C": 1000}, "fp16"))
    assert main(["validate", "h200", "--csv", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"][0]["measured_us"] == 5.0
    assert document["time"][0]["rows"] == 1


def test_bad_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "h200", "--csv", str(tmp_path / "none.csv")]) == 2
    assert main(["validate", "tiny"]) == 2
    assert main(["validate", "h200", "--split", "test"]) == 2
    assert "held-out" in capsys.readouterr().err


def test_another_gpu_with_one_efficiency(capsys: pytest.CaptureFixture[str]) -> None:
    # Measured with the host's clock: 21 us per call besides the kernel (LLMCompass, ISCA 2024).
    file = str(validation.MEASURED / "a100_llmcompass.csv")
    options = ["--csv", file, "--efficiency", "1.3", "--overhead", "21", "--json"]
    assert main(["validate", "a100_80g", *options]) == 0
    total = json.loads(capsys.readouterr().out)["time"][0]
    assert total["rows"] == 17
    assert total["mape"] < 0.12


def test_a_plot_has_a_panel_for_every_kind(tmp_path: Path) -> None:
    rows = [row("row_sum", {"R": 128, "C": 1000}), row("gemm", {"M": 64, "N": 64, "K": 64})]
    file = write(tmp_path / "a.csv", *rows)
    picture = tmp_path / "a.svg"
    assert main(["validate", "h200", "--csv", str(file), "--plot", str(picture)]) == 0
    text = picture.read_text()
    assert text.count('<g id="axes_') == 2


def test_rows_without_energies_are_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gemm = {"M": 64, "N": 64, "K": 64}
    without = write(tmp_path / "a.csv", row("gemm", gemm).replace(",9,1,200", ",9,,"))
    assert main(["validate", "h200", "--csv", str(without)]) == 0
    assert "rows: a.csv: no row has measured energies (--csv" in capsys.readouterr().out
    assert main(["validate", "h200", "--csv", str(without), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["energy"] == []
    assert any("no row has measured energies" in text for text in document["warnings"])
    assert (
        main(["validate", "h200", "--csv", str(write(tmp_path / "b.csv", row("gemm", gemm)))]) == 0
    )
    assert "no row has measured" not in capsys.readouterr().out
