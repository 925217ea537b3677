"""``dse simulate --workload stream:...``: what it prints, and what it says to bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Dse

STREAM = ("simulate", "--arch", "hbm2_8ch", "--workload")
SHORT = "stream:bytes=1MiB,pattern=sequential"


def test_json_has_the_promised_keys(dse: Dse) -> None:
    done = dse(*STREAM, "stream:bytes=1048576,pattern=random,read=0.5,outstanding=64", "--json")
    assert done.code == 0
    answer = json.loads(done.out)
    assert answer["requests"] == 16384
    assert answer["commands"]["RD"] == answer["commands"]["WR"] == 8192
    assert answer["bandwidth_gb_s"] == pytest.approx(1048576 / answer["cycles"])
    assert 0 <= answer["row_hit_rate"] < 0.1
    assert answer["mean_latency_cycles"] > 32
    assert answer["idle_latency_cycles"] == {"hit": 18, "closed": 32, "conflict": 46}
    assert answer["energy_pj"] == pytest.approx(sum(answer["energy_by_cause_pj"].values()))


def test_people_are_told_when_the_injection_limit_is_the_bottleneck(dse: Dse) -> None:
    done = dse(*STREAM, f"{SHORT},inject=1")
    assert done.code == 0
    assert "injection" in done.out
    assert "requests come too slowly" in done.err


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("stream:bytes=64", "pattern: must be given"),
        ("stream:pattern=random", "bytes: must be given"),
        ("stream:bytes=1MiB,pattern=sequental", "did you mean 'sequential'?"),
        ("stream:bytes=1MiB,pattern=random,reads=1", "did you mean 'read'?"),
        ("stream:bytes=1MiB,pattern=random,read=1.5", "allowed a share from 0 to 1"),
        ("stream:bytes=1MiB,pattern=random,read=nan", "allowed a share from 0 to 1"),
        ("stream:bytes=-1,pattern=random", "bytes"),
        ("stream:bytes=0,pattern=random", "allowed 1 B or more"),
        ("stream:bytes=1MiB,pattern=random,outstanding=0", "or unlimited"),
        ("stream:bytes=1MiB,pattern=random,outstanding=many", "or unlimited"),
        ("stream:bytes=1MiB,pattern=sequential,stride=100", "not a multiple of the burst, 64 B"),
        ("stream:bytes=1MiB,pattern=random,stride=128", "only a sequential stream"),
        ("stream:bytes=1MiB,pattern=sequential,stride=1GiB", "reaches beyond the memory"),
        (f"stream:bytes=64KiB,pattern=sequential,stride={2**59 + 64}", "reaches beyond the memory"),
        ("stream:bytes=64TiB,pattern=random", "allowed up to bytes="),
        ("stream:bytes=1MiB,pattern=random,channels=one", "'one' needs a sequential stream"),
        ("stream:bytes=1MiB,pattern=random,channels=2", "allowed all, one"),
        ("stream:bytes", "is not key=value"),
    ],
)
def test_bad_streams_are_explained(dse: Dse, workload: str, said: str) -> None:
    done = dse(*STREAM, workload)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_limit_beyond_all_requests_is_no_limit(dse: Dse) -> None:
    spec = "stream:bytes=64KiB,pattern=sequential"
    huge = f"{spec},inject={10**30},outstanding={10**30},seed={10**30}"
    done, plain = dse(*STREAM, huge, "--json"), dse(*STREAM, f"{spec},inject=1024", "--json")
    assert (done.code, plain.code) == (0, 0)
    assert json.loads(done.out)["cycles"] == json.loads(plain.out)["cycles"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("REFI=260",), "dram.REFI: 260 is not allowed; allowed 326 cycles or more"),
        (("REFI=0",), "dram.REFI: 0 is not allowed; allowed 326 cycles or more"),
        (("refresh=per_bank", "REFIPB=50"), "dram.REFIPB: 50 is not allowed; allowed 51 cycles"),
        (
            ("refresh=per_bank", "REFIPB=99", "RFCPB=9999"),
            "dram.REFIPB: 99 is not allowed; allowed 629 cycles",
        ),
    ],
)
def test_refreshes_that_cannot_be_done_in_time_are_refused(
    dse: Dse, changes: tuple[str, ...], said: str
) -> None:
    options = [part for change in changes for part in ("--set", f"dram.{change}")]
    done = dse(*STREAM, "stream:bytes=16KiB,pattern=random", *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_an_architecture_without_such_a_memory_is_explained(dse: Dse) -> None:
    done = dse("simulate", "--arch", "tiny", "--workload", SHORT)
    assert done.code == 2
    assert "'tiny' has no memory with 'timing'; a stream needs one of" in done.err
    assert "hbm2_8ch" in done.err


def test_a_stream_has_no_timeline(dse: Dse, tmp_path: Path) -> None:
    done = dse(*STREAM, SHORT, "--timeline", tmp_path / "t.png")
    assert done.code == 2
    assert "--timeline: a stream of requests has no timeline" in done.err


def test_a_memory_alone_says_what_can_be_asked_of_it(dse: Dse) -> None:
    done = dse("simulate", "--arch", "hbm2_8ch", "--workload", "gemm:M=8,N=8,K=8")
    assert done.code == 3
    assert "hbm2_8ch is a memory and computes nothing; ask it for a stream" in done.err
