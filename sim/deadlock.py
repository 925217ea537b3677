"""Who waits for whom when nothing happens any more, and the circle in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sim.process import Process, Put, Take


class DeadlockError(RuntimeError):
    """Processes wait for each other for ever.

    With ``by_queues`` it is the hardware's doing (bounded queues and an order of requests that
    closes a circle), otherwise the program is wrong.
    """

    def __init__(self, message: str, *, by_queues: bool) -> None:
        super().__init__(message)
        self.by_queues = by_queues


@dataclass(frozen=True, slots=True, kw_only=True)
class Jam:
    """A port that has an arbiter: the process that keeps it, those in its queue, those before."""

    port: str
    keeper: Process | None
    queued: Sequence[Process]
    held_back: Sequence[Process]


@dataclass(frozen=True, slots=True)
class _Wait:
    """What for, and who has to act first."""

    what: str
    on: Process
    at_port: bool


def deadlock(processes: Iterable[Process], jams: Iterable[Jam]) -> DeadlockError:
    """The error to raise: the circle first, then whoever else waits."""
    waits = _waits([p for p in processes if not p.finished], list(jams))
    circle = _circle(waits)
    lines = ["processes wait for each other in a circle:"]
    lines += [f"  {process.name} waits for {wait.what}" for process, wait in circle]
    inside = {process for process, _ in circle}
    others = [(p, found[0]) for p, found in waits.items() if found and p not in inside]
    if others:
        lines.append("and therefore:")
        lines += [f"  {process.name} waits for {wait.what}" for process, wait in others]
    return DeadlockError("\n".join(lines), by_queues=any(wait.at_port for _, wait in circle))


def _waits(stuck: list[Process], jams: list[Jam]) -> Mapping[Process, list[_Wait]]:
    waits: dict[Process, list[_Wait]] = {process: [] for process in stuck}
    for jam in jams:
        if jam.keeper is None:
            continue
        for process in jam.held_back:
            what = f"room in the queue of {jam.port}, which {jam.keeper.name} keeps"
            waits[process].append(_Wait(what, jam.keeper, at_port=True))
        for process in jam.queued:
            what = f"{jam.port}, which {jam.keeper.name} keeps"
            waits[process].append(_Wait(what, jam.keeper, at_port=True))
    for process in stuck:
        step = process.script[process.position]
        if isinstance(step, Take):
            waits[process] += [
                _Wait(f"{step.channel.meaning}, which {sender.name} has to send", sender, False)
                for sender in stuck
                if any(isinstance(s, Put) and s.channel is step.channel for s in sender.script)
            ]
    return waits


def _circle(waits: Mapping[Process, list[_Wait]]) -> list[tuple[Process, _Wait]]:
    """The first circle that a walk along the waits closes."""
    done: set[Process] = set()
    for start in waits:
        path: list[tuple[Process, _Wait]] = []
        process = start
        while process not in done and waits.get(process):
            done.add(process)
            path.append((process, waits[process][0]))
            process = waits[process][0].on
        on_path = [number for number, (walked, _) in enumerate(path) if walked is process]
        if on_path:
            return path[on_path[0] :]
    return []
