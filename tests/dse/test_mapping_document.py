"""Does a recorded mapping come back as it was, through JSON?"""

from __future__ import annotations

import json

from arch.load import load_architecture
from dse.mapping_document import mapping_document, mapping_of
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price


def test_mapping_survives_json_and_costs_the_same() -> None:
    workload = load_workload("gemm:M=32,N=32,K=32,dtype=int8")
    tiny = load_architecture("edge_npu", {"gbuf.size": "8 KiB"})
    mappings = {n: r.mapping for n, r in map_workload(workload, tiny, price).items()}
    read = {
        name: mapping_of(name, json.loads(json.dumps(mapping_document(mapping))))
        for name, mapping in mappings.items()
    }
    assert read == mappings
    model = cost_model("event")
    assert model.evaluate(workload, tiny, read) == model.evaluate(workload, tiny, mappings)
