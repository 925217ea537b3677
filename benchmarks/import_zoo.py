"""Which of the architectures of public libraries of models are imported, and whether counts agree.

Every model type of ``transformers`` (and, where these are installed, every model of torchvision
and timm) is built on the meta device from its default configuration, with few layers, and imported.
Multiply-accumulates are compared with those that torch's own counter finds while the same network
runs. Each model has a process of its own and a limit of time. Prints a row for each and a summary.

    OMP_NUM_THREADS=1 python benchmarks/import_zoo.py transformers
    OMP_NUM_THREADS=1 python benchmarks/import_zoo.py timm --only 'resnet.*' --limit 120
    OMP_NUM_THREADS=1 python benchmarks/import_zoo.py transformers --rows rows.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.hf_import.model import import_built_model
from mapper.workload.hf_import.packed import tracing
from mapper.workload.hf_import.spec import HfModel, find_hf
from mapper.workload.torch_import.export import Traced, trace
from mapper.workload.torch_import.importing import import_module

#: Layers of every part of a model, where its configuration says how many; else all.
LAYERS = 2

#: Tokens of each text; some models take no longer ones.
SEQ = 16

_LAYERS = re.compile(r"(num_|n_)?(\w+_)?(layers?|blocks)|depth")

#: Fields without which a configuration is not one.
_NEEDED: dict[str, dict[str, Any]] = {
    "autoformer": {"prediction_length": 24},
    "esm": {"vocab_size": 33},
    "informer": {"prediction_length": 24},
    "time_series_transformer": {"prediction_length": 24},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one model."""

    name: str
    outcome: str
    detail: str = ""
    operators: int = 0
    macs: int = 0
    counted: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A network that can be run, and its workload."""

    module: torch.nn.Module
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    workload: Workload
    device: str = "meta"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=sorted(LIBRARIES))
    parser.add_argument("--only", default="", help="a regular expression on names")
    parser.add_argument("--limit", type=float, default=180, help="seconds for each model")
    parser.add_argument("--rows", type=Path, help="a file that also gets all rows, as JSON")
    parser.add_argument("--whole", action="store_true", help="all layers")
    arguments = parser.parse_args()
    with torch.device("meta"):
        names, build = LIBRARIES[arguments.library](arguments.whole)
    print("| model | outcome | operators | MAC | counted by torch | s | |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for name in names:
        if re.fullmatch(arguments.only or ".*", name):
            rows.append(judged(name, build, arguments.limit))
            print(line(rows[-1]), flush=True)
            if arguments.rows:
                arguments.rows.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print()
    for outcome, count in Counter(row.outcome for row in rows).most_common():
        print(f"{count} of {len(rows)}: {outcome}")


def line(row: Row) -> str:
    counted = "-" if row.counted is None else f"{row.counted:,}"
    detail = " ".join(row.detail.split())[:300]
    return (
        f"| {row.name} | {row.outcome} | {row.operators:,} | {row.macs:,} | {counted} "
        f"| {row.seconds:.1f} | {detail} |"
    )


def judged(name: str, build: Callable[[str], Built], limit_s: float) -> Row:
    """The row of one model, made in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    start = time.perf_counter()
    process = context.Process(target=_send_row, args=(theirs, name, build))
    process.start()
    theirs.close()
    try:
        row = ours.recv() if ours.poll(limit_s) else Row(name=name, outcome="not in time")
    except EOFError:
        row = Row(name=name, outcome="crashed", detail="the process ended")
    process.kill()
    process.join()
    return replace(row, seconds=time.perf_counter() - start)


def _send_row(connection: Any, name: str, build: Callable[[str], Built]) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    connection.send(_row(name, build))


def _row(name: str, build: Callable[[str], Built]) -> Row:
    try:
        with torch.device("meta"):
            built = build(name)
            counts = [_counted(built, _as_it_is)]
            if counts[0] != built.workload.macs:
                counts.append(_counted(built, _as_traced))
    except InputError as error:
        return Row(name=name, outcome="refused", detail=str(error))
    except Exception as error:
        return Row(name=name, outcome="crashed", detail=f"{type(error).__name__}: {error}")
    counted = next((count for count in counts if count is not None), None)
    found = "differs"
    if built.workload.macs in counts:
        found = "equal" if built.workload.macs == counted else "equal to what torch traces"
    return Row(
        name=name,
        outcome=f"imported, {'not counted' if counted is None else found}",
        detail=next((note for note in built.workload.folded if "called with" in note), ""),
        operators=len(built.workload.operators),
        macs=built.workload.macs,
        counted=counted,
    )


def _counted(built: Built, prepared: Callable[[Built], Callable[[], object]]) -> int | None:
    """What torch's counter finds while the network runs, or the operators that torch has traced;
    none where it does not run without values. What torch traces lacks what no result needs."""
    try:
        with torch.no_grad(), torch.device(built.device), tracing(built.keywords):
            run = prepared(built)
            # The counter knows attention on the CPU only by its products.
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                run()
    except Exception:
        return None
    return counter.get_total_flops() // 2


def _as_it_is(built: Built) -> Callable[[], object]:
    return lambda: built.module(*built.arguments, **built.keywords)


def _as_traced(built: Built) -> Callable[[], object]:
    program = trace(built.module, built.arguments, built.keywords).program
    given = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]

    def run() -> object:
        with detect_fake_mode(given) or contextlib.nullcontext():
            return torch.fx.Interpreter(program.graph_module).run(*given)

    return run


Source = Callable[[bool], tuple[Iterator[str], Callable[[str], Built]]]


def _transformers(whole: bool) -> tuple[Iterator[str], Callable[[str], Built]]:
    import transformers
    from transformers.models.auto import modeling_auto

    # What every model needs, loaded once before the processes part.
    import_built_model(_hf("llama", {"num_hidden_layers": 1}))
    names = {
        name
        for table in dir(modeling_auto)
        if table.endswith("_MAPPING_NAMES") and table != "CONFIG_MAPPING_NAMES"
        for name in getattr(modeling_auto, table)
    } & set(transformers.CONFIG_MAPPING)
    return iter(sorted(names)), lambda name: _transformer(name, whole)


def _transformer(name: str, whole: bool) -> Built:
    import transformers

    model = _hf(name, _NEEDED.get(name, {}))
    kind = transformers.CONFIG_MAPPING[name]
    try:
        shortened = {} if whole else few_layers(kind(**model.fields).to_dict())
        fields = {**shortened, **model.fields}
        workload, built = import_built_model(replace(model, fields=fields))
    except InputError:
        # Numbers of layers that must agree with other fields.
        workload, built = import_built_model(model)
    return Built(
        module=built.module,
        arguments=(),
        keywords=dict(built.inputs),
        workload=workload,
        device=built.device,
    )


def _hf(name: str, fields: dict[str, Any]) -> HfModel:
    model = find_hf(f"hf:{name}:seq={SEQ}")
    assert model is not None
    return replace(model, fields=fields)


def few_layers(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that say how many layers there are, made small, in parts of the model too."""
    changed: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict) and name.endswith("_config"):
            changed[name] = value | few_layers(value)
        elif isinstance(value, int) and _LAYERS.fullmatch(name) and value > LAYERS:
            changed[name] = LAYERS
        elif isinstance(value, list) and name == "layer_types":
            changed[name] = value[:LAYERS]
    return changed


def _torchvision(whole: bool) -> tuple[Iterator[str], Callable[[str], Built]]:
    from torchvision import models

    def build(name: str) -> Built:
        model = (
            models.get_model(name, weights=None, weights_backbone=None)
            if any(
                part in name
                for part in ("rcnn", "retina", "ssd", "fcos", "lraspp", "fcn", "deeplab")
            )
            else models.get_model(name, weights=None)
        )
        return _image_network(name, model, _torchvision_input(name))

    return iter(models.list_models()), build


def _torchvision_input(name: str) -> torch.Tensor:
    sizes = {"inception_v3": (1, 3, 299, 299)}
    if any(part in name for part in ("r3d", "mc3", "r2plus1d", "s3d", "mvit", "swin3d")):
        return torch.zeros(1, 3, 16, 224, 224)
    return torch.zeros(sizes.get(name, (1, 3, 224, 224)))


def _timm(whole: bool) -> tuple[Iterator[str], Callable[[str], Built]]:
    import timm

    def build(name: str) -> Built:
        model = timm.create_model(name, pretrained=False)
        return _image_network(name, model, torch.zeros(1, *model.default_cfg["input_size"]))

    return iter(timm.list_models()), build


def _image_network(name: str, module: torch.nn.Module, image: torch.Tensor) -> Built:
    module.eval()

    def traced() -> Traced:
        try:
            return trace(module, (image,))
        except Exception as error:
            # Control flow by values: a user is told so, with the line of the network.
            raise InputError(Problem(f"cannot be traced: {error}", where=name)) from error

    workload = import_module(module, traced, name=name, dtype=None)
    return Built(module=module, arguments=(image,), keywords={}, workload=workload)


LIBRARIES: dict[str, Source] = {
    "transformers": _transformers,
    "torchvision": _torchvision,
    "timm": _timm,
}


if __name__ == "__main__":
    main()
