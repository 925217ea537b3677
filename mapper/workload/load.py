"""Workloads by name: a zoo network, a single operator, a user's function or a YAML file."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from arch import catalog
from arch.errors import InputError, Problem, unknown
from arch.schema import StrictModel
from arch.strict_yaml import read, validate
from mapper.workload import zoo
from mapper.workload.graph import Workload
from mapper.workload.hf_import.spec import find_hf
from mapper.workload.models import MODELS
from mapper.workload.names import ALIASES, by_spelling, spelling
from mapper.workload.onnx_import.file import find_onnx
from mapper.workload.parameters import Parameter, Value, parse_parameters, split_spec, usage
from mapper.workload.single import SINGLE_OPERATORS, SingleOperator, single_workload
from mapper.workload.tflite_import.file import find_tflite
from mapper.workload.torch_import.exported import exported_workload, find_exported
from mapper.workload.training.plan import TrainingPlan, split_plan
from mapper.workload.training.train import training_step
from mapper.workload.user_module import find_user_network, user_workload

#: What shipped workload files are listed under, and the group of single operators.
FILES, OPERATORS = "files", "operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One line for a person: a name that ``load_workload`` takes, and how to use it."""

    name: str
    group: str
    usage: str
    description: str
    parameters: tuple[Parameter, ...] = ()


class WorkloadFile(StrictModel):
    """A workload under a name of its own: one of the others with its parameters fixed."""

    name: str
    description: str
    workload: str


def load_workload(spec: str) -> Workload:
    """The workload that ``spec`` names; ``InputError`` if there is none."""
    return _loader(spec)()


def check_workload(spec: str) -> None:
    """``InputError`` if ``spec`` names nothing or has wrong parameters.

    Quick: neither torch nor a user's code is run.
    """
    _loader(spec)


def listings() -> tuple[Listing, ...]:
    """Everything that can be named, for people: networks, shipped files, single operators."""
    entries = (*map(zoo.describe, zoo.names()), *MODELS.values(), *SINGLE_OPERATORS.values())
    named = (
        Listing(
            name=entry.name,
            group=entry.group,
            usage=usage(entry.name, entry.parameters),
            description=entry.description,
            parameters=entry.parameters,
        )
        for entry in entries
    )
    files = (
        Listing(name=name, group=FILES, usage=name, description=_file(name).description)
        for name in catalog.names("workload")
    )
    return (*named, *files)


def public_name(name: str) -> str | None:
    """The name of what ``name`` is another name or spelling of, if it is of anything."""
    return _spellings().get(spelling(name))


def other_names(name: str) -> tuple[str, ...]:
    """What else the network of this name is called."""
    return tuple(alias for alias, meant in ALIASES.items() if meant == name)


@cache
def _spellings() -> dict[str, str]:
    return by_spelling((*zoo.names(), *MODELS, *SINGLE_OPERATORS))


def _by_name(module: str, function: str) -> Callable[..., Workload]:
    """The function of an importer, whose module is loaded when it is called: looking at names and
    networks of our own operators need none of them."""

    def call(*arguments: Any, **keywords: Any) -> Workload:
        found = importlib.import_module(module)
        workload: Workload = getattr(found, function)(*arguments, **keywords)
        return workload

    return call


_import_built = _by_name("mapper.workload.torch_import.importing", "import_built")
_import_hf = _by_name("mapper.workload.hf_import.model", "import_model")
_import_onnx = _by_name("mapper.workload.onnx_import.network", "import_model")
_load_tflite = _by_name("mapper.workload.tflite_import.network", "tflite_workload")

#: Ways to name a file: what recognizes a specification, and what loads the file that it finds.
_FROM_FILES: tuple[tuple[Callable[[str], Any], Callable[[Any], Workload]], ...] = (
    (find_hf, _import_hf),
    (find_user_network, user_workload),
    (find_onnx, _import_onnx),
    (find_tflite, _load_tflite),
    (find_exported, exported_workload),
)

_FORMS = (
    "file.py:function (a torch module), file.onnx, file.tflite, file.pt2 (saved by torch.export), "
    "hf:config.json (a model of transformers) or file.yaml"
)


def _loader(spec: str) -> Callable[[], Workload]:
    """What loads the workload, once its name and parameters have been checked."""
    for find, load in _FROM_FILES:
        found = find(spec)
        if found is not None:
            return partial(load, found)
    if spec in catalog.names("workload") or Path(spec).suffix in (".yaml", ".yml"):
        return _loader_of_file(spec)
    written = spec.partition(":")[0].strip()
    name = public_name(written)
    if name is None:
        _check_is_no_path(spec, written)
        names = [listing.name for listing in listings()]
        raise InputError(Problem(f"{unknown('workload', written, names)}; or {_FORMS}"))
    _, everything = split_spec(spec)
    given, plan, trained = split_plan(name, everything)
    if plan is not None:
        rest = ",".join(f"{key}={value}" for key, value in given.items())
        return partial(_trained, _loader(f"{name}:{rest}" if rest else name), plan, trained)
    if zoo.is_network(name):
        values = parse_parameters(name, zoo.describe(name).parameters, given)
        return partial(_network, name, tuple(values.items()))
    return partial(_written_workload, name, tuple(_written(name).parse(given).items()))


def _check_is_no_path(spec: str, name: str) -> None:
    """A file of a kind that is not known is not a misspelt name."""
    path = Path(name)
    if not (path.is_file() or path.suffix or "/" in name):
        return
    kind = f"files ending in {path.suffix!r}" if path.suffix else "files without an ending"
    hint = f"; did you mean hf:{spec}?" if path.suffix == ".json" else ""
    raise InputError(Problem(f"{kind} are no workloads; allowed {_FORMS}{hint}", file=path))


def _written(name: str) -> SingleOperator:
    """The operator or network of that name, one of those written by operators."""
    entry: SingleOperator = (SINGLE_OPERATORS | MODELS)[name]
    return entry


def _trained(forward: Callable[[], Workload], plan: TrainingPlan, title: str) -> Workload:
    workload = forward()
    return training_step(workload, plan, f"{workload.name},{title}")


@lru_cache(maxsize=32)
def _written_workload(name: str, values: tuple[tuple[str, Value], ...]) -> Workload:
    """Built once per process: workloads are immutable, so all callers may share one."""
    return single_workload(_written(name), dict(values))


def _loader_of_file(name_or_path: str) -> Callable[[], Workload]:
    inner = _file(name_or_path).workload
    if Path(inner).suffix in (".yaml", ".yml") or inner in catalog.names("workload"):
        message = f"{inner} is itself a workload file; write out what it names"
        raise InputError(
            Problem(message, where="workload", file=catalog.find("workload", name_or_path))
        )
    return _loader(inner)


def _file(name_or_path: str) -> WorkloadFile:
    file: WorkloadFile = validate(read(catalog.find("workload", name_or_path)), WorkloadFile)
    return file


@lru_cache(maxsize=32)
def _network(name: str, values: tuple[tuple[str, Value], ...]) -> Workload:
    """Imported once per process: workloads are immutable, so all callers may share one."""
    chosen = dict(values)
    title = f"{name}:{','.join(f'{key}={value}' for key, value in values)}"
    build = zoo.describe(name).builder(chosen)
    return _import_built(build, name=title, dtype=str(chosen["dtype"]))
