"""Do rings and fused stages need what the bars of vMCU's figures show?"""

from __future__ import annotations

import pytest

from benchmarks import vmcu_layers, vmcu_modules
from benchmarks.vmcu_layers import Pointwise
from benchmarks.vmcu_modules import Module


@pytest.mark.parametrize("shape", vmcu_layers.LAYERS, ids=lambda shape: shape.name)
def test_pointwise_layers_of_figure_7(shape: Pointwise) -> None:
    assert vmcu_layers.vmcu_kb(shape) == pytest.approx(shape.vmcu_kb, abs=0.2)
    assert vmcu_layers.tinyengine_kb(shape) == pytest.approx(shape.tinyengine_kb, abs=0.9)
    assert vmcu_layers.cut_percent(shape) == pytest.approx(shape.cut_percent, abs=0.5)


def test_a_pointwise_ring_is_the_larger_tensor() -> None:
    for shape in vmcu_layers.LAYERS:
        larger = shape.side**2 * max(shape.channels, shape.outputs)
        assert vmcu_layers.ring(shape).span_bytes == larger


@pytest.mark.parametrize("module", vmcu_modules.MODULES, ids=lambda module: module.name)
def test_fused_modules_of_figures_9_and_10(module: Module) -> None:
    assert vmcu_modules.ours_kb(module) == pytest.approx(module.vmcu_kb, rel=0.09)


def test_headline_cuts() -> None:
    for headline in vmcu_modules.headlines():
        assert headline.percent == pytest.approx(headline.paper_percent, abs=0.5)
    assert vmcu_modules.headlines()[1].before_kb == 247.808
