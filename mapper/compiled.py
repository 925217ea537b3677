"""Compilation to machine code, kept from run to run."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

#: Modules of ours that a module imports from.
_IMPORTS = re.compile(rb"^from ((?:arch|mapper|sim)\.[\w.]+) import", re.MULTILINE)

Function = TypeVar("Function", bound=Callable[..., Any])


def _sources(package: str) -> list[Path]:
    """The package's modules that have compiled functions, and those that they import from:
    functions that they call elsewhere and constants become part of the compiled code."""
    root = Path(str(sys.modules[package].__file__)).parent
    compiled_ones = [p for p in root.rglob("*.py") if b"mapper.compiled" in p.read_bytes()]
    imported = {
        root.parent.joinpath(*name.decode().split(".")).with_suffix(".py")
        for source in compiled_ones
        for name in _IMPORTS.findall(source.read_bytes())
    }
    return sorted({*compiled_ones, *(path for path in imported if path.is_file())})


def _cache_directory(package: str) -> Path:
    """One directory per state of the sources.

    Numba notices a change of the file that a function stands in, but not of the functions
    that it calls elsewhere; compiled code would then outlive what it was made from.
    """
    digest = hashlib.sha256()
    for source in _sources(package):
        digest.update(source.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tilewright" / digest.hexdigest()[:16]


def _usable(directory: Path) -> Path | None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        return None


_SETTINGS: Any = numba.config


@cache
def _directory(package: str) -> Path | None:
    return _usable(_cache_directory(package))


def is_cold(package: str = "mapper", module: str = "") -> bool:
    """Will the next use of the package (or of a module of it) have to compile first, because no
    earlier run kept the result?"""
    directory = _directory(package)
    return directory is None or not any(directory.rglob(f"{module}*.nbc"))


def load_quickly() -> None:
    """For a process of our own that is about to run compiled functions.

    Numba looks for scipy's BLAS before the first one. Ours call none, and importing scipy's linear
    algebra takes longer than simulating a network, so that it is not found in this once.
    """
    blas = "scipy.linalg.cython_blas"
    if blas in sys.modules:
        return
    sys.modules[blas] = cast(Any, None)
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules[blas]


def compiled(function: Function) -> Function:
    """Compile on first use; later runs load the result, where the home directory is writable."""
    return _compiled(function)


def kernel(function: Function) -> Function:
    """As ``compiled``, for functions that make no arrays and divide by nothing that may be zero.

    They do without counting references to those that they are given, which is most of the time
    of a short function.
    """
    return _compiled(function, _nrt=False, error_model="numpy")


def _compiled(function: Function, **options: Any) -> Function:
    directory = _directory(function.__module__.split(".", maxsplit=1)[0])
    before = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = str(directory or before)
    try:
        njit = numba.njit(cache=directory is not None, nogil=True, **options)
        return cast(Function, njit(function))
    finally:
        _SETTINGS.CACHE_DIR = before
