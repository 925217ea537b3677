"""What is known of kernels before any run: cycles where sources and build are public.

CMSIS-NN is: its rates come from its instructions (``python -m benchmarks.cmsis_nn_cycles``), no
published time is in them. Memory has no wait states there, so they are low; by how much is left
to the fit, which relates all libraries, cores and boards (``mcu_rates``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mapper.memory_plan.layers import Layer

#: A window of one pixel, of 3 x 3, and any larger one.
POINT, SMALL, LARGE = 1, 3, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Cycles per multiply-accumulate and per value made; by window where kernels differ.

    ``depthwise`` is per multiply-accumulate with everything that comes with a value.
    """

    conv2d: Mapping[int, tuple[float, float]]
    depthwise: Mapping[int, float]
    dense: tuple[float, float]

    def of(self, layer: Layer, made_cycles: float) -> tuple[float, float]:
        """Per multiply-accumulate and per value of a layer; a value of a depthwise layer is given
        ``made_cycles``."""
        taps = layer.rows.size * layer.columns.size
        if layer.kind == "conv2d":
            return self.conv2d[POINT if layer.is_pointwise else SMALL]
        if layer.kind == "depthwise":
            total = self.depthwise[SMALL if taps <= SMALL * SMALL else LARGE]
            return total - made_cycles / taps, made_cycles
        per_mac, per_value = self.dense
        return per_mac + per_value * layer.output.size_bytes / layer.macs, 0.0


#: As ``benchmarks.cmsis_nn_cycles`` prints them, with gcc 12.2.1.
BUILDS = {
    "2020, -Os": Build(
        conv2d={POINT: (2.164, 77.4), SMALL: (4.039, 131.1)},
        depthwise={SMALL: 28.833, LARGE: 22.467},
        dense=(2.812, 101.1),
    ),
    "2022, -O2": Build(
        conv2d={POINT: (1.688, 49.0), SMALL: (2.396, 102.9)},
        depthwise={SMALL: 11.379, LARGE: 13.934},
        dense=(2.500, 83.4),
    ),
}
#: Libraries of the published runs. The reference of MLPerf Tiny v0.5 is TensorFlow Lite Micro 2.3.1
#: with CMSIS-NN's kernels in mbed's default profile, which optimizes for size
#: (mlcommons/tiny_results_v0.5, closed/reference: setup_example.sh, system description); microTVM's
#: is compiled with -O2 (tiny_results_v1.0, closed/OctoML: prj.conf). Which release TinyEngine's
#: table compares with is not said.
BUILD_OF = {
    "cmsis-nn 2021": "2020, -Os",
    "microtvm cmsis-nn": "2022, -O2",
    "cmsis-nn": "2022, -O2",
}
