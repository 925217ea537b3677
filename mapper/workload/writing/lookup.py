"""Rows of a table by index."""

from __future__ import annotations

from mapper.workload.writing.builder import Builder, pointwise


def lookup(builder: Builder, name: str, indices: str, table: str) -> str:
    """A row of the table per index. Which ones depends on the data; counted as all different.

    So row ``t`` of the result stands for row ``t`` of the table, as long as there are that many:
    the traffic is that of ``min(indices, rows)`` rows.
    """
    (tokens,) = builder.shape(indices)
    sizes = {"t": tokens, "d": builder.shape(table)[1]}
    return builder.emit(name, pointwise("lookup", "copy", "t, t d -> t d", sizes), [indices, table])
