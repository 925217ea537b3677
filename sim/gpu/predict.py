"""Predict library calls: kernels by kind, constants by class of kernel, clock by power."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from arch.errors import InputError, Problem
from sim.gpu import attention, between, block, collective, convolution, products, streaming
from sim.gpu.chip import Chip
from sim.gpu.correction import Corrections, corrected, factors
from sim.gpu.demand import Array, Call, Constants, Demand, joined
from sim.gpu.power import Load, Machine, Steady, joined_prices, prices_of, steady


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModel:
    """``key`` names the class of kernel that a call runs, ``demand`` what such calls need."""

    key: Callable[[Call], str]
    demand: Callable[[Sequence[Call], Constants, Chip], Demand]


_PRODUCT = KernelModel(key=products.product_key, demand=products.product)
_ELEMENTWISE = KernelModel(key=streaming.elementwise_key, demand=streaming.elementwise)
_ROWS = KernelModel(key=streaming.row_key, demand=streaming.rows)
_COLLECTIVE = KernelModel(key=collective.collective_key, demand=collective.collective)
_HOT = KernelModel(key=block.hot_key, demand=block.hot)
_BETWEEN = KernelModel(key=between.between_key, demand=between.between)

MODELS: dict[str, KernelModel] = {
    "gemm": _PRODUCT,
    "gemm_2of4": KernelModel(key=products.sparse_key, demand=products.sparse_product),
    "bmm": _PRODUCT,
    "sdpa": KernelModel(key=attention.attention_key, demand=attention.attention),
    "conv2d": KernelModel(key=convolution.conv_key, demand=convolution.convolution),
    **dict.fromkeys(streaming.ELEMENTWISE_TENSORS, _ELEMENTWISE),
    **dict.fromkeys(streaming.ROW_CLASSES, _ROWS),
    **dict.fromkeys(collective.KINDS, _COLLECTIVE),
    **dict.fromkeys(between.KINDS, _BETWEEN),
    "hot": _HOT,
    "strided": _HOT,
}


#: Classes of which nothing was measured, and the one whose constants they take.
FALLBACKS = {
    "bmm.wgmma.1": "gemm.wgmma.1",
    "bmm.int8": "gemm.int8",
    "gemm.sparse.1": "gemm.sparse.2",
}


#: A kernel that takes this many times as long as the model's is not one like it.
OTHER_KERNEL = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """A chip, and the constants fitted on measurements: of kernels by class, and of the power;
    and what corrects the times of some kinds, if anything."""

    chip: Chip
    constants: Mapping[str, Constants]
    corrections: Corrections = field(default_factory=dict)

    @property
    def machine(self) -> Machine:
        return Machine(chip=self.chip, constants=self.constants["power"])


def kernels_of(call: Call) -> tuple[Call, ...]:
    """The kernels of a block, or the call itself."""
    if call.kind != "block":
        return (call,)
    return tuple(kernel for _, kernel in block.kernels(block.layer_of(call)))


def class_of(kernel: Call, constants: Mapping[str, Constants]) -> str:
    """The class of a kernel; ``InputError`` if there is no such kernel or none was measured."""
    key = MODELS[kernel.kind].key(kernel)
    if key in constants:
        return key
    if FALLBACKS.get(key) in constants:
        return FALLBACKS[key]
    sizes = ", ".join(f"{name}={value}" for name, value in kernel.params.items())
    message = f"the kernel model knows no {kernel.kind} in {kernel.dtype} with {sizes}"
    raise InputError(Problem(message))


def devices_of(call: Call) -> int:
    return int(call.params.get("gpus", call.params.get("tp", 1)))


def load_of(calls: Sequence[Call], model: GpuModel) -> Load:
    """All kernels of all calls with what they need."""
    groups: dict[tuple[str, str, str], list[Call]] = defaultdict(list)
    owners: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, call in enumerate(calls):
        for kernel in kernels_of(call):
            # One data type per group, since tiles and rates depend on it; a convolution of 1x1 may
            # be of the same class as a product.
            group = class_of(kernel, model.constants), kernel.dtype, kernel.kind
            groups[group].append(kernel)
            owners[group].append(number)
    demands, prices = [], []
    power = model.constants["power"]
    for (key, dtype, _), members in groups.items():
        constants = model.constants[key]
        demand = MODELS[members[0].kind].demand(members, constants, model.chip)
        price = prices_of(dtype, len(members), constants, power)
        factor = factors(demand, members, model.corrections, model.chip)
        if factor is not None:
            # The trees were fitted to times at the clock that the limit allows: where it counts, so
            # does the energy, unless the library took a kernel of another, slower sort.
            hot = model.machine.exceeds(demand, price) & (factor < OTHER_KERNEL)
            price = price.scaled(np.where(hot, factor, 1.0))
            demand = corrected(demand, factor)
        demands.append(demand)
        prices.append(price)
    return Load(
        demand=joined(demands),
        owner=np.concatenate([np.array(numbers) for numbers in owners.values()]),
        prices=joined_prices(prices),
        devices=np.array([float(devices_of(call)) for call in calls]),
    )


def predict(calls: Sequence[Call], model: GpuModel) -> Steady:
    """Each call repeated in the steady state."""
    return steady(load_of(calls, model), model.machine)


def predict_unlimited_us(calls: Sequence[Call], model: GpuModel) -> Array:
    """Each call at the highest clock, whatever it draws: calls with pauses stay below the limit."""
    load = load_of(calls, model)
    return np.asarray(np.bincount(load.owner, load.demand.time_us(), len(calls)))


def predict_once_us(calls: Sequence[Call], model: GpuModel) -> Array:
    """Each call alone, once, with cold caches and at the highest clock."""
    return predict_unlimited_us(calls, model) + model.constants["power"]["cold_us"]
