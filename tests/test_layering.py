"""Does the code keep the shape that docs/design.md promises?

Everything is read from the syntax trees, so an import that never runs is checked as well.
"""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("arch", "mapper", "sim", "kernels_ref", "dse")

#: package -> module prefixes of ours that it may import
MAY_IMPORT = {
    "arch": ("arch",),
    "mapper": ("mapper", "arch"),
    "sim": (
        "sim",
        "arch",
        "mapper.workload",
        "mapper.core_tasks",
        "mapper.mapping",
        "mapper.fusion",
        "mapper.fusion_lower",
        "mapper.hierarchy",
        "mapper.program",
        "mapper.lower",
        "mapper.memory_plan",
        "mapper.order",
        "mapper.placement",
        "mapper.plan",
        "mapper.cost",
        "mapper.compiled",
    ),
    "kernels_ref": ("kernels_ref", "arch", "mapper.workload"),
    "dse": (*PACKAGES, "configs"),
}
#: Libraries for people and optimizers: only the outermost layer may know them.
ONLY_IN_DSE = {"optuna", "skopt", "matplotlib", "jinja2", "rich", "typer"}
#: Loading any of these costs more than the half second that ``dse --help`` may take.
HEAVY = {"torch", "scipy", "optuna", "skopt", "matplotlib", "numba", "jinja2", "networkx"}
#: Where results leave the program, clocks are read, or compiled code is kept.
MAY_WRITE = ("dse", "sim.trace", "kernels_ref.measure", "mapper.compiled")
CHECK = ["check", "configs/arch/edge_npu.yaml", "configs/search/resnet18_edge.yaml"]
#: What loads all modules of a package, or one by a name that a user gave or a table has.
REGISTRIES = {
    "arch.registry",
    "sim.prices",
    "dse.cli",
    "mapper.workload.torch_import.aten",
    "mapper.workload.onnx_import.operators",
    "mapper.workload.zoo.entries",
    "mapper.workload.zoo.entry",
    "kernels_ref.fused.record",
    "kernels_ref.kernel",
}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_BRANCHES = 3


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.split(".")[0]


@dataclass(frozen=True, slots=True)
class Import:
    target: str
    line: int
    in_function: bool
    #: ``import_module("...")``: loaded when it is first needed, since it loads much.
    by_name: bool = False


def load(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path, ast.parse(path.read_text(encoding="utf-8")))


MODULES = [load(p) for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
NAMES = {m.name for m in MODULES}
FAMILIES = {p.stem for p in (ROOT / "arch" / "families").glob("*.py")} - {"__init__"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def imports(module: Module) -> Iterator[Import]:
    """Every import of the module, ``from a import b`` as ``a.b`` where that is a module."""

    def walk(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            for target in targets(module, child):
                yield Import(target, child.lineno, in_function)
            if (name := named(child)) is not None:
                yield Import(name, child.lineno, in_function, by_name=True)
            yield from walk(child, in_function or isinstance(child, FUNCTION))

    return walk(module.tree, in_function=False)


def targets(module: Module, node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, f"{module.path}:{node.lineno}: write imports in full"
    base = node.module or ""
    full = [f"{base}.{alias.name}" for alias in node.names]
    return sorted({name if name in NAMES else base for name in full})


#: Functions of ours that hand their first argument to ``import_module``.
LATE = {"import_module", "_by_name", "_needed"}


def named(node: ast.AST) -> str | None:
    """What is loaded by its name; registries compute names of modules in their own package."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr=function) | ast.Name(id=function),
            args=[ast.Constant(value=str(name)), *_],
        ) if function in LATE:
            return name
    return None


def is_ours(target: str) -> bool:
    return target.split(".")[0] in (*PACKAGES, "configs", "tests", "benchmarks")


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith(p + ".") for p in prefixes)


def wrong_imports(is_wrong: Callable[[Module, Import], bool]) -> list[str]:
    return [
        f"{m.path.relative_to(ROOT)}:{i.line} imports {i.target}"
        for m in MODULES
        for i in imports(m)
        if is_wrong(m, i)
    ]


def test_packages_import_only_what_lies_below_them() -> None:
    assert not wrong_imports(
        lambda m, i: is_ours(i.target) and not within(i.target, MAY_IMPORT[m.package])
    )


def test_our_own_modules_are_imported_at_the_top() -> None:
    assert not wrong_imports(lambda m, i: is_ours(i.target) and i.in_function and not i.by_name)


def test_what_is_imported_by_name_exists() -> None:
    by_name = [i.target for m in MODULES for i in imports(m) if i.by_name and is_ours(i.target)]
    assert by_name
    assert set(by_name) <= NAMES


def test_only_registries_compute_what_they_import() -> None:
    """Other computed names would be edges that nobody checks."""
    computed = {
        m.name
        for m in MODULES
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "import_module"
        and isinstance(node.args[0], ast.JoinedStr)
    }
    assert computed == REGISTRIES


def test_no_cycle_between_modules() -> None:
    graph = {
        m.name: {i.target for i in imports(m) if i.target in NAMES} - {m.name} for m in MODULES
    }
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the cycle


def test_presentation_and_optimizer_libraries_only_in_dse() -> None:
    assert not wrong_imports(
        lambda m, i: i.target.split(".")[0] in ONLY_IN_DSE and m.package != "dse"
    )


@pytest.mark.parametrize("command", [["--help"], ["list", "archs"], ["list", "workloads"], CHECK])
def test_light_commands_load_no_heavy_library(command: list[str]) -> None:
    script = (
        "import sys\nfrom dse.cli import main\ncode = main(sys.argv[1:])\n"
        f"print(sorted(set(sys.modules) & {HEAVY!r}), "
        "file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"


def test_family_modules_are_reached_through_registries_only() -> None:
    """``arch/families/x.py`` may be imported by ``x.py`` of another floor and nobody else."""

    def is_wrong(module: Module, found: Import) -> bool:
        family = found.target.removeprefix("arch.families.")
        return (
            found.target.startswith("arch.families.")
            and module.name.split(".")[-1] != family
            and not module.name.startswith("arch.families.")
        )

    assert FAMILIES
    assert not wrong_imports(is_wrong)


def compared_strings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part


def test_no_code_asks_which_family_it_has() -> None:
    found = [
        f"{m.path.relative_to(ROOT)}:{text.lineno} compares with {text.value!r}"
        for m in MODULES
        for text in compared_strings(m.tree)
        if text.value in FAMILIES and m.name.split(".")[-1] != text.value
    ]
    assert not found


WRITES = {"write_text", "write_bytes", "mkdir", "unlink", "savefig"}
CLOCKS = {"time", "datetime"}


def side_effects(module: Module) -> Iterator[int]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id="open" | "print")):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in WRITES:
                yield node.lineno


def test_only_the_outer_layer_prints_writes_or_reads_clocks() -> None:
    inner = [m for m in MODULES if not within(m.name, MAY_WRITE)]
    effects = [f"{m.path.relative_to(ROOT)}:{line}" for m in inner for line in side_effects(m)]
    assert not effects
    assert not wrong_imports(
        lambda m, i: not within(m.name, MAY_WRITE) and i.target.split(".")[0] in CLOCKS
    )


def test_files_are_short() -> None:
    sources = [*(m.path for m in MODULES), *(ROOT / "tests").rglob("*.py")]
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in sources}
    assert not {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > MAX_FILE_LINES}


def test_functions_are_short() -> None:
    long = [
        f"{m.path.relative_to(ROOT)}:{f.lineno} {f.name}: {lines}"
        for m in MODULES
        for f in ast.walk(m.tree)
        if isinstance(f, FUNCTION)
        and (lines := (f.end_lineno or 0) - f.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not long


def branches(node: ast.If) -> int:
    """How many conditions one if/elif chain tests."""
    count = 1
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        count += 1
    return count


def test_branch_chains_are_short() -> None:
    long = [
        f"{m.path.relative_to(ROOT)}:{node.lineno}"
        for m in MODULES
        for node in ast.walk(m.tree)
        if isinstance(node, ast.If) and branches(node) > MAX_BRANCHES
    ]
    assert not long
