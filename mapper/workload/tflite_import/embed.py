"""Offsets of tensors written into a ``.tflite`` file, where TensorFlow Lite Micro looks for them.

The metadata ``OfflineMemoryAllocation`` points to a buffer of 32-bit integers: version, graph,
number of tensors, then an offset for each tensor of all graphs, -1 where the runtime plans itself.
Offsets in a flat buffer only point forward, so a new root is put in front of the old file, which
stays as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

NAME = b"OfflineMemoryAllocation"

#: Where the runtime plans a tensor itself.
ONLINE = -1

#: Fields of the root table that are kept, by their place in the schema: operator codes, graphs,
#: description, metadata buffer, signatures; buffers and metadata are made anew.
_VERSION, _BUFFERS, _METADATA = 0, 4, 6
_KEPT = (1, 2, 3, 5, 7)
_ALIGNMENT = 16


def with_offline_plan(data: bytes, offsets: Sequence[int]) -> bytes:
    """The file with the offsets of all tensors of all graphs; an earlier plan is replaced."""
    old = _Table(data, _u32(data, 0))
    buffers = [*old.entries(_BUFFERS)]
    plan = struct.pack(f"<3i{len(offsets)}i", 1, 0, len(offsets), *offsets)
    earlier = [at for at in old.entries(_METADATA) if _Table(data, at).text(0) != NAME]
    return _front(old, buffers, earlier, plan) + data


class _Table:
    """A table of the file at a position."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self._fields = position - struct.unpack_from("<i", data, position)[0]

    def field(self, number: int) -> int | None:
        """The position of a field, if it is there."""
        place = 4 + 2 * number
        if place >= struct.unpack_from("<H", self.data, self._fields)[0]:
            return None
        offset = struct.unpack_from("<H", self.data, self._fields + place)[0]
        return self.position + offset if offset else None

    def target(self, number: int) -> int | None:
        """What a field points to."""
        at = self.field(number)
        return None if at is None else at + _u32(self.data, at)

    def entries(self, number: int) -> list[int]:
        """Positions of the tables in a list."""
        start = self.target(number)
        if start is None:
            return []
        places = range(start + 4, start + 4 + 4 * _u32(self.data, start), 4)
        return [place + _u32(self.data, place) for place in places]

    def text(self, number: int) -> bytes:
        start = self.target(number)
        if start is None:
            return b""
        return self.data[start + 4 : start + 4 + _u32(self.data, start)]


def _u32(data: bytes, position: int) -> int:
    return int(struct.unpack_from("<I", data, position)[0])


def _front(old: _Table, buffers: Sequence[int], metadata: Sequence[int], plan: bytes) -> bytes:
    """Header, root and lists; its length is a multiple of what the file aligns to."""
    # The root: its field table, then an offset back to it, the version and the pointers.
    kept = {number: target for number in _KEPT if (target := old.target(number)) is not None}
    pointers = [*kept, _BUFFERS, _METADATA]
    table_at = 8 + 4 + 2 * 8
    places = {number: table_at + 8 + 4 * i for i, number in enumerate(pointers)}
    places[_VERSION] = table_at + 4
    buffers_at = table_at + 8 + 4 * len(pointers)
    metadata_at = buffers_at + 4 + 4 * (len(buffers) + 1)
    entry_at = metadata_at + 4 + 4 * (len(metadata) + 1)
    name_at = entry_at + 4 * 3 + 8
    buffer_at = name_at + 4 + len(NAME) + 1
    plan_at = -(-(buffer_at + 8 + 8 + 4) // _ALIGNMENT) * _ALIGNMENT
    size = -(-(plan_at + len(plan)) // _ALIGNMENT) * _ALIGNMENT
    front = bytearray(size)
    front[4:8] = old.data[4:8]
    struct.pack_into("<I", front, 0, table_at)
    _write_root(front, table_at, places)
    version = old.field(_VERSION)
    struct.pack_into(
        "<I", front, places[_VERSION], 3 if version is None else _u32(old.data, version)
    )
    for number, target in kept.items():
        _point(front, places[number], size + target)
    _point(front, places[_BUFFERS], buffers_at)
    _point(front, places[_METADATA], metadata_at)
    _write_list(front, buffers_at, [*(size + at for at in buffers), buffer_at + 8])
    _write_list(front, metadata_at, [*(size + at for at in metadata), entry_at + 8])
    _write_table(front, entry_at, {0: 4, 1: 8})
    _point(front, entry_at + 8 + 4, name_at)
    struct.pack_into("<I", front, entry_at + 8 + 8, len(buffers))
    struct.pack_into("<I", front, name_at, len(NAME))
    front[name_at + 4 : name_at + 4 + len(NAME)] = NAME
    _write_table(front, buffer_at, {0: 4})
    _point(front, buffer_at + 8 + 4, plan_at - 4)
    struct.pack_into("<I", front, plan_at - 4, len(plan))
    front[plan_at : plan_at + len(plan)] = plan
    return bytes(front)


def _write_root(front: bytearray, table_at: int, places: Mapping[int, int]) -> None:
    end = max(places.values()) + 4
    fields_at = 8
    struct.pack_into("<HH", front, fields_at, 4 + 2 * 8, end - table_at)
    for number, place in places.items():
        struct.pack_into("<H", front, fields_at + 4 + 2 * number, place - table_at)
    struct.pack_into("<i", front, table_at, table_at - fields_at)


def _write_table(front: bytearray, fields_at: int, fields: Mapping[int, int]) -> None:
    """A field table of at most two fields, and 8 bytes behind it the table."""
    table_at = fields_at + 8
    last = max(fields)
    struct.pack_into("<HH", front, fields_at, 4 + 2 * (last + 1), 4 + 4 * len(fields))
    for number, place in fields.items():
        struct.pack_into("<H", front, fields_at + 4 + 2 * number, place)
    struct.pack_into("<i", front, table_at, table_at - fields_at)


def _write_list(front: bytearray, at: int, targets: Sequence[int]) -> None:
    struct.pack_into("<I", front, at, len(targets))
    for number, target in enumerate(targets):
        _point(front, at + 4 + 4 * number, target)


def _point(front: bytearray, place: int, target: int) -> None:
    struct.pack_into("<I", front, place, target - place)
