"""Of mappings that cost the same, does the search take the one whose transfers are hidden?"""

from __future__ import annotations

import pytest

from arch.load import load_architecture
from mapper.hierarchy import execution
from mapper.legality import staged_tiles
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price

#: Layers that fit into the buffer whole: loaded in one piece, nothing would overlap.
LAYERS = ("gemm:M=64,N=1024,K=256,dtype=int8", "conv2d:C=128,H=14,K=256,R=1,dtype=int8")


@pytest.mark.parametrize("layer", LAYERS)
def test_tiles_of_double_buffered_memories_are_loaded_in_parts(layer: str) -> None:
    """So that the event model is within 10 % of the analytical one (13 % and 28 % above it with
    whole tensors)."""
    workload, device = load_workload(layer), load_architecture("edge_npu")
    operator = workload.operators[0]
    found = map_workload(workload, device, price)
    mappings = {name: result.mapping for name, result in found.items()}
    staged = staged_tiles(execution(workload, operator, device), mappings[operator.name])
    shared = [t for t in staged if not t.memory.replicated_over and t.memory.double_buffered]
    assert any(tile.slots == 2 for tile in shared)
    quick, events = (
        cost_model(fidelity).evaluate(workload, device, mappings).latency_ps
        for fidelity in ("analytical", "event")
    )
    assert quick <= events < 1.1 * quick
