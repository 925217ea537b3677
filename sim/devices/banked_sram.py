"""An on-chip memory of several banks, compiled: who meets whom in which bank.

Consecutive chunks of bytes are in consecutive banks. An access occupies each bank that it touches
for the bytes that lie there, at the bank's share of the memory's rate; a bank serves one access at
a time, in the order in which they come. So an access that touches few banks takes longer than its
bytes at the full rate, two in different banks run side by side, and two in one bank wait.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from arch.spec import Banks
from mapper.compiled import kernel

Vector = NDArray[np.int64]

# Constants of a port: how many banks, bytes in a chunk, and the picoseconds that a bank takes for
# a byte, as a fraction.
COUNT, CHUNK, NUMERATOR, DENOMINATOR = range(4)
# What changes: when all banks are free, for how long not all have been, and when each bank is free.
QUIET, WORKING, FREE = range(3)


def port_constants(banks: Banks, ps_per_bit: Fraction) -> Vector:
    per_byte = 8 * ps_per_bit * banks.count
    return np.array(
        [banks.count, banks.interleave_bytes, per_byte.numerator, per_byte.denominator], np.int64
    )


def new_banks(constants: Vector) -> Vector:
    return np.zeros(FREE + int(constants[COUNT]), np.int64)


@kernel
def touch(state: Vector, constants: Vector, address: int, size: int, ready: int) -> int:
    """An access of ``size`` bytes; when the last bank has served it."""
    count, chunk = constants[COUNT], constants[CHUNK]
    stripe, last, quiet = chunk * count, ready, state[QUIET]
    for bank in range(count):
        moved = bytes_before(address + size, stripe, bank * chunk, chunk)
        moved -= bytes_before(address, stripe, bank * chunk, chunk)
        if moved > 0:
            busy = -(-moved * constants[NUMERATOR] // constants[DENOMINATOR])
            state[FREE + bank] = max(state[FREE + bank], ready) + busy
            last = max(last, state[FREE + bank])
    if last > quiet:
        state[WORKING] += last - max(quiet, ready)
        state[QUIET] = last
    return int(last)


@kernel
def bytes_before(address: int, stripe: int, offset: int, chunk: int) -> int:
    """How many of the bytes before ``address`` lie in the bank at ``offset`` of each stripe."""
    whole = address // stripe
    return int(whole * chunk + min(max(address - whole * stripe - offset, 0), chunk))
