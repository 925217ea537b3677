"""One kernel of a workload."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sim.gpu.demand import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel: the operator it is named after, and its multiply-accumulates.

    ``useful_share`` of those no causal mask sets to zero. ``beside_bytes`` are read by its
    epilogue. Where an operand is stored narrower than the kernel computes, it takes
    ``spared_bytes`` less, and the kernel's blocks widen ``widened`` weights. ``note`` says in which
    way it is not what the operator is. It ``is_after`` the operator if it goes over its result.
    """

    name: str
    call: Call
    macs: int
    useful_share: float = 1.0
    beside_bytes: int = 0
    spared_bytes: int = 0
    widened: int = 0
    note: str = ""
    is_after: bool = False

    @property
    def useful_macs(self) -> float:
        return self.macs * self.useful_share


def noted(launch: Launch, *notes: str) -> Launch:
    """With notes (those that are empty left out) before its own."""
    return replace(launch, note=", ".join(filter(None, [*notes, launch.note])))
