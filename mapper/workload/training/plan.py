"""How a network is trained, as far as its cost goes: ``resnet18:batch=32,training=adam``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arch.datatypes import ALLOWED, datatype
from mapper.workload.parameters import Parameter, parse_parameters

#: Optimizer -> numbers kept per parameter (the parameter itself, momentum, second moment) and
#: scalar operations that an update takes (Kingma and Ba, Adam, 2015, algorithm 1).
OPTIMIZERS = {"sgd": (1, 2), "momentum": (2, 4), "adam": (3, 12)}

TRAINING_PARAMETERS = (
    Parameter(
        name="training",
        help="add the backward pass and the update of this optimizer",
        default="none",
        choices=("none", *OPTIMIZERS),
    ),
    Parameter(
        name="recompute",
        help="layers: keep only what enters each layer, and run it again on the way back",
        default="none",
        choices=("none", "layers"),
    ),
    Parameter(
        name="offload",
        help="activations: what is kept waits in the host's memory",
        default="none",
        choices=("none", "activations"),
    ),
    Parameter(
        name="states",
        help="format of what the optimizer keeps",
        default="fp32",
        check=datatype,
        texts=ALLOWED,
    ),
)

_NAMES = {parameter.name for parameter in TRAINING_PARAMETERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What is added to the forward pass."""

    optimizer: str
    recompute: bool
    offload: bool
    states: str

    @property
    def state_numbers(self) -> int:
        return OPTIMIZERS[self.optimizer][0]

    @property
    def update_ops(self) -> int:
        return OPTIMIZERS[self.optimizer][1]


def split_plan(
    name: str, given: Mapping[str, str]
) -> tuple[dict[str, str], TrainingPlan | None, str]:
    """The other parameters, the plan (``None``: inference), and its part of the title."""
    mine = {key: value for key, value in given.items() if key in _NAMES}
    rest = {key: value for key, value in given.items() if key not in _NAMES}
    if not mine:
        return rest, None, ""
    values = parse_parameters(name, TRAINING_PARAMETERS, mine)
    if values["training"] == "none":
        return rest, None, ""
    plan = TrainingPlan(
        optimizer=str(values["training"]),
        recompute=values["recompute"] == "layers",
        offload=values["offload"] == "activations",
        states=str(values["states"]),
    )
    return rest, plan, ",".join(f"{key}={value}" for key, value in mine.items())
