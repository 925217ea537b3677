"""Search configurations from YAML files, checked against their architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from arch import catalog
from arch.errors import InputError, Problem, unknown
from arch.load import load_architecture
from arch.registry import family_named
from arch.schema import Finding, findings
from arch.spec import Architecture
from arch.strict_yaml import Document, KeyPath, read
from dse import domains
from dse.config import (
    WORKLOAD,
    Constraint,
    MappingSettings,
    SamplerSettings,
    SearchConfig,
    WeightedWorkload,
)
from dse.quantities import QUANTITIES
from dse.samplers import SAMPLERS
from dse.search_schema import FORMS, SearchModel
from dse.space import Parameter, Space
from dse.stream_workload import check_no_stream
from mapper.memory_plan.mcu import is_planned
from mapper.search.method import EXACT
from mapper.workload.load import check_workload

#: Points drawn to see whether values that are allowed one by one are allowed together.
PROBES = 32


def load_search(name_or_path: str | Path) -> SearchConfig:
    """The search of a shipped name or a file; ``InputError`` with all of its problems."""
    path = catalog.find("search", name_or_path)
    document = read(path)
    checked, wrong = findings(document.data, SearchModel)
    draft = _Draft(document=document)
    if isinstance(document.data, Mapping):
        draft.check(document.data)
    problems = [document.problem(f.path, f.message) for f in (*wrong, *draft.wrong)]
    if problems or checked is None or draft.architecture is None:
        unique = dict.fromkeys(problems)
        raise InputError(sorted(unique, key=lambda problem: problem.line or 0))
    return _config(checked, draft, path.read_text(encoding="utf-8"))


@dataclass(kw_only=True)
class _Draft:
    """What is collected while a document is checked, whatever else is wrong with it."""

    document: Document
    architecture: Architecture | None = None
    parameters: list[Parameter] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    sampler: SamplerSettings | None = None
    specs: list[str] = field(default_factory=list)
    wrong: list[Finding] = field(default_factory=list)

    def check(self, data: Mapping[str, Any]) -> None:
        self._attempt(("arch",), partial(self._load, data.get("arch")))
        self._workloads(data.get("workloads"))
        if self.architecture is not None and isinstance(data.get("parameters"), Mapping):
            self._parameters(self.architecture, data["parameters"])
        self._constraints(data.get("constraints", {}))
        self._sampler(data.get("sampler", "bayes"))
        self._flat(data)
        self._mapped(data)
        self._placed_exactly(data)
        self._fused_alike(data)

    def _attempt(self, path: KeyPath, action: Callable[[], object]) -> bool:
        """Runs ``action``; its input errors become findings at ``path``."""
        try:
            action()
        except InputError as error:
            for problem in error.problems:
                said = problem.where in path
                self.wrong.append(Finding(path, problem.message if said else str(problem)))
            return False
        return True

    def _load(self, name: object) -> None:
        if isinstance(name, str):
            architecture = load_architecture(self._beside(name))
            if not architecture.computes:
                message = f"'{name}' computes nothing: a memory is the 'timing' of another's dram"
                raise InputError(Problem(message))
            self.architecture = architecture

    def _beside(self, name: str) -> str:
        """A path is meant from where the configuration stands, like any reference in a file."""
        folder = Path() if self.document.file is None else self.document.file.parent
        near = folder / name
        return str(near) if name not in catalog.names("arch") and near.is_file() else name

    def _workloads(self, workloads: object) -> None:
        for i, item in enumerate(workloads if isinstance(workloads, list) else ()):
            path: KeyPath = ("workloads", i)
            if isinstance(item, Mapping):
                path, item = (*path, "workload"), item.get("workload")
            if isinstance(item, str):
                self.specs.append(item)
                self._attempt(path, partial(_check_network, item))

    def _parameters(self, architecture: Architecture, forms: Mapping[str, Any]) -> None:
        sound = {p: f for p, f in forms.items() if self._form_sound(architecture, p, f)}
        free: dict[str, tuple[tuple[Any, ...], bool]] = {}
        for path in (p for p, form in sound.items() if "tie" not in form):
            self._attempt(("parameters", path), partial(_expand_into, free, path, sound[path]))
        roots = self._roots({p: str(f["tie"]) for p, f in sound.items() if "tie" in f}, forms)
        for path, (values, ordered) in free.items():
            tied = tuple(t for t, root in roots.items() if root == path)
            parameter = Parameter(path=path, values=values, ordered=ordered, ties=tied)
            if self._values_allowed(architecture, parameter):
                self.parameters.append(parameter)

    def _form_sound(self, architecture: Architecture, path: str, form: object) -> bool:
        """Whether the path exists and its values are declared in one of the known forms."""
        at: KeyPath = ("parameters", path)
        if path == WORKLOAD:
            return self._workload_form_sound(form)
        if path not in family_named(architecture.family).paths(architecture.document):
            return self._attempt(at, partial(architecture.with_overrides, {path: None}))
        message = _form_problem(form) if isinstance(form, Mapping) else None
        if message is not None:
            self.wrong.append(Finding(at, message))
        return isinstance(form, Mapping) and message is None

    def _workload_form_sound(self, form: object) -> bool:
        """Its choices are some of the workloads, as they are written there."""
        at: KeyPath = ("parameters", WORKLOAD)
        choices = form.get("choices") if isinstance(form, Mapping) and len(form) == 1 else None
        if not isinstance(choices, list):
            self.wrong.append(Finding(at, "must be a list of choices among the workloads"))
            return False
        for choice in choices:
            if choice not in self.specs:
                self.wrong.append(Finding(at, unknown("workload", str(choice), self.specs)))
        return all(choice in self.specs for choice in choices)

    def _roots(self, ties: Mapping[str, str], forms: Mapping[str, Any]) -> dict[str, str]:
        """The free parameter that each tied one follows in the end."""
        roots: dict[str, str] = {}
        circling: set[str] = set()
        for path, target in ties.items():
            seen = [path]
            while target in ties and target not in seen:
                seen.append(target)
                target = ties[target]
            at: KeyPath = ("parameters", path, "tie")
            if target in circling:
                continue  # that circle is known
            if target in seen:
                circling.update(seen)
                self.wrong.append(Finding(at, f"is a circle: {' -> '.join([*seen, target])}"))
            elif target not in forms:
                free = [p for p in forms if p not in ties]
                self.wrong.append(Finding(at, unknown("parameter of this search", target, free)))
            else:
                roots[path] = target
        return roots

    def _values_allowed(self, architecture: Architecture, parameter: Parameter) -> bool:
        """Each value must be one that the architecture takes, for the tied paths too."""
        sound = True
        if parameter.path == WORKLOAD:
            return True
        paths = (parameter.path, *parameter.ties)
        for value in parameter.values:
            builds = (partial(architecture.with_overrides, {path: value}) for path in paths)
            at: Iterator[KeyPath] = (("parameters", path) for path in paths)
            sound &= all(map(self._attempt, at, builds))  # a value is wrong once
        return sound

    def _constraints(self, limits: object) -> None:
        for name, text in limits.items() if isinstance(limits, Mapping) else ():
            if name in QUANTITIES:
                self._attempt(("constraints", name), partial(self._limit, name, text))

    def _limit(self, name: str, text: object) -> None:
        if not isinstance(text, str):
            return
        quantity = QUANTITIES[name]
        if not text.startswith("<="):
            raise InputError(Problem(f"expected an upper limit such as '<= 5', got {text!r}"))
        limit = quantity.parse(text.removeprefix("<=").strip())
        if limit <= 0:
            raise InputError(Problem(f"the limit {text!r} must be above zero"))
        self.constraints.append(Constraint(quantity=quantity, limit=limit, text=text))

    def _sampler(self, sampler: object) -> None:
        options = dict(sampler) if isinstance(sampler, Mapping) else {"name": sampler}
        name = options.pop("name", None)
        if not isinstance(name, str):
            self.wrong.append(Finding(("sampler",), "has no name; allowed " + ", ".join(SAMPLERS)))
            return
        if name not in SAMPLERS:
            self.wrong.append(Finding(("sampler",), unknown("sampler", name, list(SAMPLERS))))
            return
        checked, wrong = findings(options, SAMPLERS[name].options)
        self.wrong.extend(Finding(("sampler", *f.path), f.message) for f in wrong)
        if checked is not None:
            self.sampler = SamplerSettings(name=name, options=checked.model_dump())

    def _flat(self, data: Mapping[str, Any]) -> None:
        """An area that is zero for lack of a technology can be neither minimised nor limited; nor
        can SRAM that nobody plans."""
        area = None if self.architecture is None else self.architecture.area_mm2
        objectives = data.get("objectives")
        if area == 0 and isinstance(objectives, list) and "area" in objectives:
            message = "'area' is zero for every design: the architecture gives no areas"
            self.wrong.append(Finding(("objectives",), message))
        if "size" in (data.get("objectives") or ()) and WORKLOAD not in (
            data.get("parameters") or {}
        ):
            message = "'size' is the same for every design unless 'workload' is a parameter"
            self.wrong.append(Finding(("objectives",), message))
        if self.architecture is None or is_planned(self.architecture):
            return
        for key in ("objectives", "constraints"):
            named = data.get(key)
            if isinstance(named, list | Mapping) and "ram" in named:
                self.wrong.append(Finding((key,), "'ram' is known of microcontrollers only"))

    def _mapped(self, data: Mapping[str, Any]) -> None:
        """Nothing is mapped where a library's kernels run."""
        if self.architecture is None or "mapping" not in data:
            return
        if family_named(self.architecture.family).brings_kernels:
            reason = "runs kernels of a library, which nothing maps: leave it out"
            self.wrong.append(Finding(("mapping",), f"{self.architecture.name} {reason}"))

    def _placed_exactly(self, data: Mapping[str, Any]) -> None:
        """Where units are put on several cores, no other search of mappings has a say."""
        mapping = data.get("mapping")
        method = mapping.get("method", EXACT.name) if isinstance(mapping, Mapping) else EXACT.name
        if method != EXACT.name and max(self._core_counts(), default=1) > 1:
            reason = f"on several cores mappings are exact; leave out '{method}'"
            self.wrong.append(Finding(("mapping", "method"), reason))

    def _core_counts(self) -> set[int]:
        """Of the designs of this search: those that a parameter has, and the architecture's own,
        which the search starts from."""
        if self.architecture is None:
            return set()
        paths = ((p, (p.path, *p.ties)) for p in self.parameters)
        chosen = {value for p, named in paths if "cores" in named for value in p.values}
        return {self.architecture.cores, *chosen}

    def _fused_alike(self, data: Mapping[str, Any]) -> None:
        """On several cores operators are fused; designs of one core (the one to start from is one
        of them) must be as well, or the comparison is of schedules and not of cores."""
        mapping = data.get("mapping")
        fused = isinstance(mapping, Mapping) and mapping.get("fusion") is True
        counts = self._core_counts()
        if 1 in counts and len(counts) > 1 and not fused:
            message = (
                "operators are fused on several cores, and on one with mapping: {fusion: true}"
            )
            self.wrong.append(Finding(("parameters", "cores"), f"{message}; add that"))


def _check_network(spec: str) -> None:
    check_no_stream(spec)
    check_workload(spec)


def _expand_into(
    free: dict[str, tuple[tuple[Any, ...], bool]], path: str, form: Mapping[str, Any]
) -> None:
    free[path] = domains.expand(form)


def _form_problem(form: Mapping[str, Any]) -> str | None:
    """What is wrong with the keys of a parameter, if anything."""
    strange = [key for key in form if key not in (*FORMS, "step")]
    if strange:
        return unknown("key", strange[0], (*FORMS, "step"))
    if sum(key in form for key in FORMS) != 1:
        return f"must have exactly one of {', '.join(FORMS)}"
    if "step" in form and "range" not in form:
        return "'step' goes with 'range'"
    wrong = [k for k in ("choices", "pow2", "range") if not isinstance(form.get(k, []), list)]
    return f"'{wrong[0]}' must be a list, as in [1, 2]" if wrong else None


def _config(checked: SearchModel, draft: _Draft, text: str) -> SearchConfig:
    architecture, sampler = draft.architecture, draft.sampler
    if architecture is None or sampler is None:
        raise ValueError("a document without problems has an architecture and a sampler")
    config = SearchConfig(
        name=checked.name,
        description=checked.description,
        workloads=tuple(
            WeightedWorkload(spec=w.workload, weight=w.weight) for w in checked.workloads
        ),
        arch=checked.arch,
        base=architecture.document,
        space=Space(parameters=tuple(draft.parameters)),
        mapping=MappingSettings(
            objective=checked.mapping.objective,
            method=checked.mapping.method,
            budget=checked.mapping.budget,
            fusion=checked.mapping.fusion,
        ),
        objectives=tuple(QUANTITIES[name] for name in checked.objectives),
        constraints=tuple(draft.constraints),
        fidelity=checked.fidelity,
        sampler=sampler,
        trials=checked.trials,
        batch=checked.batch,
        seed=checked.seed,
        text=text,
    )
    _probe(config, draft.document)
    return config


def _probe(config: SearchConfig, document: Document) -> None:
    """Values may be allowed one by one but not together: try some points of the space."""
    generator = np.random.default_rng(0)
    for _ in range(PROBES):
        overrides = config.space.overrides(config.space.sample(generator))
        try:
            config.architecture(overrides)
        except InputError as error:
            shown = ", ".join(f"{k}={v}" for k, v in overrides.items())
            raise InputError(
                document.problem(("parameters",), f"no architecture with {shown}: {error}")
            ) from error
