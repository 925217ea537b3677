"""Is what is asked of an engine, or of pictures of its run, done or refused, never ignored?"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from dse.cli.console import table
from tests.cli.running import Dse

GEMM = ("--workload", "gemm:M=8,N=8,K=8")
STREAM = ("--arch", "hbm2_8ch", "--workload", "stream:bytes=64KiB,pattern=sequential")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("--arch", "tiny", *GEMM, "--fidelity", "roofline"), "this one is roofline"),
        (("--arch", "tiny", *GEMM, "--fidelity", "analytical"), "this one is analytical"),
        (("--arch", "h200", *GEMM), "h200 runs kernels of a library"),
        (STREAM, "in compiled code only"),
    ],
)
@pytest.mark.parametrize("engine", ["simpy", "replay"])
def test_an_engine_is_refused_where_none_runs(
    dse: Dse, command: tuple[str, ...], complaint: str, engine: str
) -> None:
    done = dse("simulate", *command, "--engine", engine)
    assert (done.code, done.out) == (2, "")
    assert "--engine" in done.err
    assert complaint in done.err


@pytest.mark.parametrize(
    "option",
    [
        ("--fidelity", "roofline"),
        ("--objective", "latency"),
        ("--fuse",),
        ("--mapping", "weight_stationary"),
    ],
)
def test_a_stream_refuses_what_it_would_ignore(dse: Dse, option: tuple[str, ...]) -> None:
    done = dse("simulate", *STREAM, *option)
    assert (done.code, done.out) == (2, "")
    assert f"{option[0]}: a stream of requests has no operators" in done.err


def test_a_search_without_simulations_refuses_an_engine(dse: Dse, tmp_path: Path) -> None:
    done = dse("search", "resnet18_edge", "--out", tmp_path / "run", "--engine", "simpy")
    assert done.code == 2
    assert "--engine: runs simulations at fidelity event; this one is analytical" in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--trace", "--timeline"])
@pytest.mark.parametrize("fidelity", ["roofline", "analytical"])
def test_pictures_are_refused_at_other_fidelities(
    dse: Dse, tmp_path: Path, option: str, fidelity: str
) -> None:
    name = tmp_path / "picture.png"
    done = dse("simulate", "--arch", "tiny", *GEMM, "--fidelity", fidelity, option, name)
    assert done.code == 2
    assert f"{option}: pictures are of a run at fidelity event, not {fidelity}" in done.err


@pytest.mark.parametrize(
    "rows", [[], [("a", "1,000", "µ")], [("conv1", "1", "x"), ("b", "22", "a longer one")]]
)
def test_a_table_is_laid_out_as_rich_does(rows: list[tuple[str, ...]]) -> None:
    """On a terminal as wide as the table, and on one a column too narrow."""
    ours = table("", ("operator", ">MACs", "bound by"), rows)
    for width in (12, 15, 21, 22, 24, 26, 29, 30, 31, 80):
        drawn = []
        for thing in (ours, ours.folded()):
            console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
            console.print(thing)
            drawn.append(console.file.getvalue())
        assert drawn[0] == drawn[1]


def test_a_trace_follows_links_and_spares_devices(dse: Dse, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    gemm = ("simulate", "--arch", "tiny", *GEMM)
    assert dse(*gemm, "--trace", link).code == 0
    assert link.is_symlink()
    assert '"traceEvents"' in real.read_text()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = dse(*gemm, "--trace", pipe)
    assert done.code == 2
    assert "it is no regular file" in done.err
    assert pipe.is_fifo()


def test_tables_in_files_are_whole(dse: Dse) -> None:
    """Unlike on a terminal, where long cells are folded: lines are searched and compared."""
    lines = dse("list", "archs").out.splitlines()
    (found,) = (line for line in lines if line.split()[:1] == ["hbm2_2000"])
    assert found.rstrip().endswith("256 GB/s")


def test_a_heading_of_two_lines_stays_in_its_column() -> None:
    """As those of recommended designs, with their roles below."""
    drawn = io.StringIO()
    Console(file=drawn, width=80).print(table("", ("", ">#20\ncompromise"), [("latency", "1 ms")]))
    first, second = drawn.getvalue().split("\n")[1:3]
    assert first.rstrip().endswith("#20")
    assert second.rstrip().endswith("compromise")


@pytest.mark.parametrize(
    "option",
    [("--objective", "latency"), ("--objective", "energy"), ("--mapping", "weight_stationary")],
)
@pytest.mark.parametrize("arch", ["h200", "stm32f746"])
def test_where_kernels_run_what_concerns_mappings_is_refused(
    dse: Dse, arch: str, option: tuple[str, str]
) -> None:
    done = dse("simulate", "--arch", arch, *GEMM, *option)
    assert (done.code, done.out) == (2, "")
    assert f"{option[0]}: {arch}" in done.err
