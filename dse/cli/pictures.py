"""A simulated run as a trace and as a picture, where asked for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from arch.errors import InputError, Problem
from arch.spec import Architecture
from arch.units import format_time_ps, parse_time
from dse.cli import inputs
from dse.cli.console import messages
from dse.simulation import Simulation
from mapper.workload.graph import Workload
from sim.timeline import TooManySlicesError, View
from sim.trace import view_of, write_slices

#: What the pictures are of.
FIDELITY = "event"
#: Beyond this nobody could tell slices apart, and drawing would take minutes.
MOST_SLICES = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What to write, checked before anything is simulated."""

    trace: Path | None
    window_ps: tuple[int, int] | None
    timeline: Path | None

    @classmethod
    def asked(cls, trace: Path | None, window: str | None, timeline: Path | None) -> Pictures:
        if trace is not None:
            inputs.output_file("--trace", trace)
        if window is not None and trace is None:
            raise _wrong("--trace-window", "is for --trace FILE, which is missing")
        if timeline is not None:
            inputs.picture_file("--timeline", timeline)
            if trace is not None and trace.resolve() == timeline.resolve():
                raise _wrong("--timeline", f"'{timeline}' is the file of --trace too")
        return cls(
            trace=trace, window_ps=None if window is None else _window(window), timeline=timeline
        )

    def check_fidelity(self, fidelity: str) -> None:
        """Another model has no times for single tiles."""
        if fidelity != FIDELITY:
            self.refuse(f"pictures are of a run at fidelity {FIDELITY}, not {fidelity}")

    def refuse(self, reason: str) -> None:
        """For what no picture can be drawn of."""
        for option, asked in (("--trace", self.trace), ("--timeline", self.timeline)):
            if asked is not None:
                raise _wrong(option, reason)

    def write(self, network: Workload, architecture: Architecture, simulation: Simulation) -> None:
        latency_ps = simulation.metrics.latency_ps
        if self.window_ps is not None and self.window_ps[0] >= latency_ps:
            begin, end = (format_time_ps(ps) for ps in (self.window_ps[0], latency_ps))
            raise _wrong("--trace-window", f"begins at {begin}; the run takes {end}")
        if self.trace is not None:
            slices = simulation.timeline(network, architecture, view_of(self.window_ps))
            write_slices(self.trace, network.name, slices)
            messages().print(f"trace: {self.trace} (open it in ui.perfetto.dev)", soft_wrap=True)
        if self.timeline is not None:
            self._draw(self.timeline, network, architecture, simulation)

    @staticmethod
    def _draw(
        path: Path, network: Workload, architecture: Architecture, simulation: Simulation
    ) -> None:
        view = View(most_slices=MOST_SLICES)
        try:
            slices = list(simulation.timeline(network, architecture, view))
        except TooManySlicesError as error:
            message = "the run has too many tiles to draw; use --trace with --trace-window"
            raise _wrong("--timeline", message) from error
        drawing = importlib.import_module("dse.report.figures.timeline")  # matplotlib and more
        drawing.write_run(path, slices, architecture)
        messages().print(f"timeline: {path}", soft_wrap=True)


def _window(text: str) -> tuple[int, int]:
    """``10us:20us`` in picoseconds."""
    parts = text.split(":")
    if len(parts) != 2:
        raise _wrong("--trace-window", f"'{text}' is not START:END, as in 10us:20us")
    try:
        begin, end = (parse_time(part.strip()) for part in parts)
    except ValueError as error:
        raise _wrong("--trace-window", str(error)) from error
    if begin < 0:
        raise _wrong("--trace-window", f"'{text}' begins before the run, which begins at 0us")
    if begin >= end:
        raise _wrong("--trace-window", f"'{text}' ends before it begins")
    return begin, end


def _wrong(option: str, message: str) -> InputError:
    return InputError(Problem(message, where=option))
