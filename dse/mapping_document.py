"""A mapping as plain JSON data, so that a study keeps the designs it found whole."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from typing import Any

from mapper.mapping import Loop, Mapping, Spatial, Stage


def mapping_document(mapping: Mapping) -> dict[str, Any]:
    """``mapping_of`` is its inverse; the operator's name is kept beside it, not in it."""
    return {
        "compute": mapping.compute,
        "intrinsic": mapping.intrinsic,
        "nest": [_level_document(level) for level in mapping.nest],
        "spatial": [{"dim": s.dim, "axis": s.axis, "factor": s.factor} for s in mapping.spatial],
        "made_by": mapping.made_by,
    }


def _level_document(level: Loop | Stage) -> dict[str, Any]:
    match level:
        case Loop(dim, tile):
            return {"dim": dim, "tile": tile}
        case Stage(operand, memory):
            return {"operand": operand, "memory": memory}


def mapping_of(operator: str, document: MappingABC[str, Any]) -> Mapping:
    """The mapping of the operator of that name."""
    return Mapping(
        operator=operator,
        compute=document["compute"],
        intrinsic=document["intrinsic"],
        nest=tuple(
            Loop(level["dim"], level["tile"])
            if "dim" in level
            else Stage(level["operand"], level["memory"])
            for level in document["nest"]
        ),
        spatial=tuple(Spatial(s["dim"], s["axis"], s["factor"]) for s in document["spatial"]),
        made_by=document["made_by"],
    )
