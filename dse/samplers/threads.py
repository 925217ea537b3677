"""One thread for linear algebra, so that suggestions do not depend on the machine's cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def one_thread() -> Iterator[None]:
    """Limits BLAS, OpenMP and torch; also faster, for the models here are small.

    A limit reaches only libraries that are loaded already: hence the imports.
    """
    import torch
    from threadpoolctl import threadpool_limits

    for library in ("scipy.linalg", "sklearn.gaussian_process"):
        import_module(library)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)
