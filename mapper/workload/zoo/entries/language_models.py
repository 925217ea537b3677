"""Language models."""

from __future__ import annotations

from mapper.workload.parameters import Parameter, format_parameters, layers_parameter
from mapper.workload.zoo.entry import BATCH, ZooEntry, seq

#: Positions that Llama 3 was trained for; its 3.1 update reaches 131072.
LLAMA_POSITIONS = 131072
FORMATS = format_parameters("int8")

ENTRIES = (
    ZooEntry(
        name="gpt2",
        description="language model, 12 layers, 124 M parameters, logits at every position",
        family="gpt2",
        function="gpt2",
        parameters=(BATCH, seq(1024), layers_parameter(12), *FORMATS),
    ),
    ZooEntry(
        name="llama3-8b",
        description="32 layers, 8.0 B parameters, traced from torch (llama3.1-8b: written out)",
        family="llama",
        function="llama3_8b",
        parameters=(
            Parameter(
                name="phase",
                help="prefill: seq new tokens; decode: one token against ctx cached positions",
                default="prefill",
                choices=("prefill", "decode"),
            ),
            BATCH,
            seq(LLAMA_POSITIONS),
            Parameter(
                name="ctx",
                help="positions in the caches while decoding, the new token's included",
                default=2048,
                high=LLAMA_POSITIONS,
            ),
            layers_parameter(32),
            *FORMATS,
        ),
        dense=("head.weight",),
        aliases=("llama3_8b",),
    ),
)
