"""Samplers by name. Each is a class built from (space, number of objectives, options)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from arch.schema import StrictModel
from dse.samplers.base import Sampler
from dse.samplers.bayes import BayesSampler
from dse.samplers.modelled import ModelledOptions
from dse.samplers.nsga2 import Nsga2Options, Nsga2Sampler
from dse.samplers.random import RandomOptions, RandomSampler
from dse.samplers.skopt_backend import SkoptOptions, SkoptSampler
from dse.samplers.tpe import TpeOptions, TpeSampler
from dse.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerKind:
    """How a sampler is configured and built."""

    options: type[StrictModel]
    build: Callable[[Space, int, Any], Sampler]


SAMPLERS: Mapping[str, SamplerKind] = {
    "bayes": SamplerKind(options=ModelledOptions, build=BayesSampler),
    "skopt": SamplerKind(options=SkoptOptions, build=SkoptSampler),
    "nsga2": SamplerKind(options=Nsga2Options, build=Nsga2Sampler),
    "tpe": SamplerKind(options=TpeOptions, build=TpeSampler),
    "random": SamplerKind(options=RandomOptions, build=RandomSampler),
}


def make_sampler(name: str, options: Mapping[str, Any], space: Space, objectives: int) -> Sampler:
    """The named sampler; name and options were checked with the configuration."""
    kind = SAMPLERS[name]
    return kind.build(space, objectives, kind.options.model_validate(dict(options)))
