"""How long the import of whole networks takes.

Prints a table: operators, distinct ones (each is mapped once), parameters, and the seconds of this
process from the name to the checked workload, after torch and transformers have been loaded.

    OMP_NUM_THREADS=1 python benchmarks/import_speed.py
    OMP_NUM_THREADS=1 python benchmarks/import_speed.py resnet50 net.onnx:batch=1
"""

from __future__ import annotations

import argparse
import time

from mapper.workload.load import load_workload
from mapper.workload.same_work import same_work

_LLAMA_405B = (
    "hf:llama:hidden_size=16384,num_hidden_layers=126,num_attention_heads=128,"
    "num_key_value_heads=8,intermediate_size=53248,vocab_size=128256,dtype=int8"
)

NETWORKS = (
    "resnet18",
    "resnet152",
    "efficientnet_b7",
    "densenet201",
    "efficientvit_b3",
    "mcunet_in4",
    f"{_LLAMA_405B},seq=2048",
    f"{_LLAMA_405B},phase=decode,ctx=8192",
)

#: Imported beforehand, so that the time to load libraries is not counted.
_WARM_UP = ("mcunet_vww0", "hf:llama:num_hidden_layers=1,hidden_size=64,num_attention_heads=4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=NETWORKS)
    chosen = parser.parse_args().workloads
    for spec in _WARM_UP:
        load_workload(spec)
    print("| workload | operators | distinct | parameters | CPU s | wall s |")
    print("|---|---|---|---|---|---|")
    for spec in chosen:
        print(row(spec), flush=True)


def row(spec: str) -> str:
    wall, cpu = time.perf_counter(), time.process_time()
    workload = load_workload(spec)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    distinct = len({same_work(workload, operator) for operator in workload.operators})
    name = spec if len(spec) <= 40 else f"{spec[:12]}...{spec.rpartition('dtype=int8,')[2]}"
    return (
        f"| {name} | {len(workload.operators):,} | {distinct} | {workload.parameters:,} "
        f"| {cpu:.1f} | {wall:.1f} |"
    )


if __name__ == "__main__":
    main()
