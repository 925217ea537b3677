"""The coefficients of the cost of volumes: the analytical model, summed over one operator.

These tables say what costs what; ``mapper.search.flows`` makes the compiled search's cost
function of them, ``mapper.batch_model`` that of batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Columns of the stage table.
PARENT, CHILD, IS_OUTPUT, IS_INNERMOST = 0, 1, 2, 3
COL_PARENT, COL_CHILD, COL_HELD, COL_VISITS, COL_REVISITS = 4, 5, 6, 7, 8
FINAL_BITS, PARTIAL_BITS, DOUBLE_BUFFERED, OUTPUTS = 9, 10, 11, 12
IS_SHARED, LATENCY_PS, COL_FRESH, COL_OWN_REVISITS = 13, 14, 15, 16
PARENT_FINAL_BITS, IS_HELD, VISIT_PS = 17, 18, 19
STAGE_FIELDS = 20
# Columns of the datapath table (one row per operand).
MEMORY, D_IS_OUTPUT, COL_MOVED, COL_LIFTED = 0, 1, 2, 3
D_FINAL_BITS, D_PARTIAL_BITS, D_OUTPUTS = 4, 5, 6
DATAPATH_FIELDS = 7
# Columns of the memory table; a bit takes READ_TICKS (or WRITE_TICKS) / TICKS_PER_PS.
READ_TICKS, WRITE_TICKS, TICKS_PER_PS, SHARED_PORT = 0, 1, 2, 3
READ_PJ, WRITE_PJ, CAPACITY_BITS = 4, 5, 6
MEMORY_FIELDS = 7
#: Objectives. ``ROOM`` looks for the mapping that comes closest to fitting.
LATENCY, ENERGY, EDP, ROOM = 0, 1, 2, 3


class Model(NamedTuple):
    """The cost function's coefficients for one order of stages (see the column names above).

    ``axis_columns`` and ``axis_sizes`` are those of the contended axes, ``lanes`` the product
    of these sizes. A lifted column is a volume times the axes used: divided by ``lanes`` it
    bounds the volume from below, and unlike the volume itself it stays tight in a box whose
    dimensions cannot all be unrolled at once. ``least_ps`` is what other units need meanwhile.
    """

    stages: IntArray
    datapaths: IntArray
    memories: FloatArray
    axis_columns: IntArray
    axis_sizes: FloatArray
    lanes: float
    steps_column: int
    lifted_steps_column: int
    unit_revisits_column: int
    step_ticks: float
    aside_ticks: float
    step_ticks_per_ps: float
    compute_pj: float
    least_ps: float
    leakage_w: float
    objective: int
    fold_column: int = 0
    fold_ticks: float = 0.0
