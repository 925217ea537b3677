"""vMCU's single pointwise layers: our rings beside the bars of figure 7, and the cuts in RAM.

    python -m benchmarks.vmcu_layers

Shapes and RAM of figure 7 of Zheng et al., "vMCU" (MLSys 2024), read off the vector graphics
(+- 0.3 KB), and the cut that it prints. The bars contain more than activations: the layer's
weights, a bias, a multiplier and a shift per output channel, and about 2.8 kB beside the network.
So the weights lay in RAM here, although the text has them in flash; without them the smallest cut
would be -33 % and not the -12.0 % of the abstract. Ours is the ring of the least offset with
segments of ``min(C, K)`` bytes, plus those three, whose sizes are fitted to the nine bars.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.offsets import Overlap, default_segment_bytes, overlap

#: Least squares over the nine bars of vMCU: bytes per weight, per output channel, and the rest.
WEIGHT_BYTES, CHANNEL_BYTES, FIXED_BYTES = 1.006, 9.56, 2832
#: The same for TinyEngine, whose input and output lie apart (least squares of relative errors).
TINYENGINE_WEIGHT_BYTES, TINYENGINE_FIXED_BYTES = 1.127, 3164


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Side of the map, input and output channels; bars in KB of 1000 bytes, the printed cut."""

    side: int
    channels: int
    outputs: int
    tinyengine_kb: float
    vmcu_kb: float
    cut_percent: float

    @property
    def name(self) -> str:
        return f"{self.side}, {self.channels}, {self.outputs}"


LAYERS = (
    Pointwise(80, 16, 16, 209.0, 105.7, 49.45),
    Pointwise(56, 32, 32, 205.2, 104.5, 49.10),
    Pointwise(28, 64, 64, 109.0, 57.7, 46.99),
    Pointwise(80, 16, 8, 157.5, 105.4, 33.08),
    Pointwise(40, 32, 16, 80.2, 54.8, 31.93),
    Pointwise(20, 48, 24, 33.2, 23.4, 29.26),
    Pointwise(24, 16, 32, 31.4, 21.9, 29.46),
    Pointwise(12, 32, 64, 19.3, 14.8, 23.86),
    Pointwise(6, 64, 128, 19.3, 16.9, 12.01),
)


def layer(shape: Pointwise) -> Layer:
    source = FeatureMap(name="in", height=shape.side, width=shape.side, channels=shape.channels)
    target = FeatureMap(name="out", height=shape.side, width=shape.side, channels=shape.outputs)
    macs = source.size_bytes * shape.outputs
    return Layer(
        name="pointwise",
        kind="conv2d",
        inputs=(source,),
        output=target,
        rows=Window(),
        columns=Window(),
        macs=macs,
        operations=macs,
        weight_bytes=shape.channels * shape.outputs,
    )


def ring(shape: Pointwise) -> Overlap:
    one = layer(shape)
    return overlap(one, default_segment_bytes(one))


def vmcu_kb(shape: Pointwise) -> float:
    """The ring, and what else the bars contain."""
    weights = WEIGHT_BYTES * shape.channels * shape.outputs
    return (ring(shape).span_bytes + weights + CHANNEL_BYTES * shape.outputs + FIXED_BYTES) / 1000


def tinyengine_kb(shape: Pointwise) -> float:
    one = layer(shape)
    weights = TINYENGINE_WEIGHT_BYTES * one.weight_bytes
    return (
        one.inputs[0].size_bytes + one.output.size_bytes + weights + TINYENGINE_FIXED_BYTES
    ) / 1000


def cut_percent(shape: Pointwise) -> float:
    return 100 * (1 - vmcu_kb(shape) / tinyengine_kb(shape))


def table() -> Table:
    columns = (
        "H = W, C, K",
        "ring B",
        "vMCU KB",
        "ours KB",
        "off by B",
        "TinyEngine KB",
        "ours KB",
    )
    found = Table(*columns, "printed cut", "ours", title="figure 7: RAM of one pointwise layer")
    for shape in LAYERS:
        ours = vmcu_kb(shape)
        found.add_row(
            shape.name,
            f"{ring(shape).span_bytes:,}",
            f"{shape.vmcu_kb:.1f}",
            f"{ours:.1f}",
            f"{1000 * (ours - shape.vmcu_kb):+.0f}",
            f"{shape.tinyengine_kb:.1f}",
            f"{tinyengine_kb(shape):.1f}",
            f"-{shape.cut_percent:.2f} %",
            f"-{cut_percent(shape):.1f} %",
        )
    worst = max(abs(vmcu_kb(s) - s.vmcu_kb) for s in LAYERS)
    cuts = sorted(map(cut_percent, LAYERS))
    found.caption = (
        f"worst difference {1000 * worst:.0f} B\n"
        f"cuts -{cuts[0]:.1f} ... -{cuts[-1]:.1f} %; the paper -12.0 ... -49.5 %"
    )
    return found


def main() -> None:
    Console(width=120).print(table())


if __name__ == "__main__":
    main()
