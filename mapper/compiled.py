"""Compilation to machine code, kept from run to run."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _cache_directory() -> Path:
    """One directory per state of the sources.

    Numba notices a change of the file that a function stands in, but not of the functions
    that it calls elsewhere; compiled code would then outlive what it was made from.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
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


_DIRECTORY = _usable(_cache_directory())
_SETTINGS: Any = numba.config


def is_cold() -> bool:
    """Will the next search have to compile first, because no earlier run kept the result?"""
    return _DIRECTORY is None or not any(_DIRECTORY.rglob("*.nbc"))


def compiled(function: Function) -> Function:
    """Compile on first use; later runs load the result, where the home directory is writable."""
    return _compiled(function)


def kernel(function: Function) -> Function:
    """As ``compiled``, for functions that make no arrays.

    They do without counting references to those that they are given, which is most of the time
    of a short function.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **options: Any) -> Function:
    before = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = str(_DIRECTORY or before)
    try:
        return cast(
            Function,
            numba.njit(cache=_DIRECTORY is not None, error_model="numpy", nogil=True, **options)(
                function
            ),
        )
    finally:
        _SETTINGS.CACHE_DIR = before
