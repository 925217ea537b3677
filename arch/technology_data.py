"""Tables behind ``arch.technology``: published or tool-made points only, each with its source.

Values tagged *unverified* were taken from secondary copies of the publication; they are
starting values for a configuration, and no test relies on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SramPoint:
    """One SRAM macro: energies per 64-bit access."""

    size_bytes: int
    read_pj: float
    write_pj: float
    area_mm2: float
    leakage_w: float
    access_ps: float


#: CACTI 7 (HewlettPackard/cacti, commit 1ffd8df), low-standby-power cells and periphery, 300 K,
#: RAM with one read-write port of 64 bit, one bank, leakage as the design objective: the
#: settings of hwcomponents-cacti 1.0.40, so that numbers compare with tools that use it.
#: Made by ``benchmarks/sram_table.py``.
SRAM: Mapping[int, tuple[SramPoint, ...]] = {
    22: (
        SramPoint(512, 0.30736, 0.49958, 0.00051069, 1.4349e-07, 371),
        SramPoint(1024, 0.38016, 0.78455, 0.00085754, 2.6882e-07, 427),
        SramPoint(2048, 0.64828, 0.94291, 0.0017977, 5.1534e-07, 441),
        SramPoint(4096, 1.1709, 1.246, 0.0035093, 8.9237e-07, 468),
        SramPoint(8192, 1.5903, 1.7714, 0.0062654, 1.6166e-06, 602),
        SramPoint(16384, 2.6436, 2.2796, 0.015074, 2.8717e-06, 685),
        SramPoint(32768, 3.7865, 3.1042, 0.026695, 5.4562e-06, 845),
        SramPoint(65536, 5.6696, 4.4275, 0.058601, 9.7696e-06, 982),
        SramPoint(131072, 7.4023, 6.1602, 0.11884, 1.9539e-05, 1246),
        SramPoint(262144, 11.858, 8.8246, 0.22529, 3.5373e-05, 1508),
        SramPoint(524288, 15.319, 12.217, 0.44217, 7.056e-05, 1906),
        SramPoint(1048576, 23.467, 17.501, 0.77846, 0.00013789, 2447),
        SramPoint(2097152, 31.601, 25.634, 1.5427, 0.00027579, 3216),
        SramPoint(4194304, 43.855, 37.889, 3.0802, 0.00055158, 4311),
        SramPoint(8388608, 59.951, 53.985, 6.0989, 0.0011032, 5693),
        SramPoint(16777216, 83.11, 78.263, 11.621, 0.002369, 7743),
        SramPoint(33554432, 120.03, 108.33, 22.487, 0.0043583, 10159),
    ),
    32: (
        SramPoint(512, 0.74509, 1.2214, 0.0010879, 3.5213e-08, 550),
        SramPoint(1024, 0.8952, 1.895, 0.0018209, 6.5838e-08, 617),
        SramPoint(2048, 1.4943, 2.2874, 0.0038203, 1.3427e-07, 642),
        SramPoint(4096, 2.658, 3.0375, 0.0074536, 2.3869e-07, 678),
        SramPoint(8192, 3.4434, 4.2716, 0.013287, 4.5001e-07, 844),
        SramPoint(16384, 6.5475, 5.751, 0.025665, 8.0117e-07, 905),
        SramPoint(32768, 8.2571, 7.4606, 0.056605, 1.6023e-06, 1169),
        SramPoint(65536, 12.873, 10.772, 0.12442, 2.8897e-06, 1356),
        SramPoint(131072, 18.155, 14.11, 0.21728, 5.6453e-06, 1619),
        SramPoint(262144, 26.821, 21.326, 0.47827, 1.0657e-05, 1990),
        SramPoint(524288, 34.816, 29.149, 0.93877, 2.1262e-05, 2506),
        SramPoint(1048576, 52.028, 41.226, 1.6503, 4.1908e-05, 3170),
        SramPoint(2097152, 70.677, 59.875, 3.2704, 8.3816e-05, 4159),
        SramPoint(4194304, 98.735, 87.933, 6.53, 0.00016763, 5526),
        SramPoint(8388608, 135.51, 124.7, 12.929, 0.00033527, 7241),
        SramPoint(16777216, 195.81, 174.74, 23.976, 0.00066481, 9475),
        SramPoint(33554432, 269.84, 248.77, 47.628, 0.0013296, 12691),
    ),
    45: (
        SramPoint(512, 1.4137, 2.2808, 0.0021438, 1.8918e-08, 716),
        SramPoint(1024, 1.6697, 3.4916, 0.0035993, 3.5388e-08, 793),
        SramPoint(2048, 2.7557, 4.2391, 0.0075424, 7.4173e-08, 825),
        SramPoint(4096, 3.3855, 6.4536, 0.013503, 1.4043e-07, 1018),
        SramPoint(8192, 6.137, 7.8781, 0.026267, 2.5678e-07, 1064),
        SramPoint(16384, 11.61, 10.697, 0.050742, 4.6917e-07, 1139),
        SramPoint(32768, 17.042, 15.397, 0.09486, 9.2391e-07, 1409),
        SramPoint(65536, 25.869, 19.649, 0.20905, 1.6703e-06, 1663),
        SramPoint(131072, 32.286, 26.065, 0.42959, 3.3405e-06, 2113),
        SramPoint(262144, 44.716, 38.495, 0.87209, 6.6811e-06, 2732),
        SramPoint(524288, 68.349, 51.346, 1.6446, 1.2496e-05, 3070),
        SramPoint(1048576, 93.519, 76.183, 3.2628, 2.4963e-05, 4019),
        SramPoint(2097152, 127.53, 110.19, 6.466, 4.9925e-05, 5186),
        SramPoint(4194304, 188.73, 155.06, 11.989, 9.9182e-05, 6565),
        SramPoint(8388608, 254.91, 221.24, 23.763, 0.00019836, 8582),
        SramPoint(16777216, 351.27, 317.6, 47.407, 0.00039673, 11375),
        SramPoint(33554432, 484.88, 451.21, 94.176, 0.00079345, 15102),
    ),
    65: (
        SramPoint(512, 2.6722, 4.2747, 0.0044719, 1.5663e-07, 1090),
        SramPoint(1024, 3.12, 6.4866, 0.0075116, 2.8935e-07, 1196),
        SramPoint(2048, 3.622, 10.517, 0.014056, 4.7316e-07, 1462),
        SramPoint(4096, 6.1677, 11.953, 0.028163, 9.8686e-07, 1509),
        SramPoint(8192, 11.125, 14.693, 0.054811, 1.7775e-06, 1576),
        SramPoint(16384, 20.983, 20.115, 0.10589, 3.1478e-06, 1678),
        SramPoint(32768, 30.102, 28.691, 0.19793, 6.1155e-06, 2048),
        SramPoint(65536, 47.045, 37.304, 0.43622, 1.0803e-05, 2440),
        SramPoint(131072, 59.336, 49.595, 0.89644, 2.1605e-05, 3095),
        SramPoint(262144, 100.58, 73.096, 1.744, 3.9629e-05, 3556),
        SramPoint(524288, 126.21, 98.409, 3.4319, 7.8943e-05, 4397),
        SramPoint(1048576, 174.54, 146.11, 6.8087, 0.00015767, 5669),
        SramPoint(2097152, 239.82, 211.39, 13.493, 0.00031533, 7175),
        SramPoint(4194304, 351.88, 296.86, 25.016, 0.00062284, 8929),
        SramPoint(8388608, 478.67, 423.65, 49.584, 0.0012457, 11528),
        SramPoint(16777216, 663.25, 608.23, 98.919, 0.0024914, 15092),
        SramPoint(33554432, 919.07, 864.05, 196.51, 0.0049827, 19819),
    ),
}

#: Energy of a 256 KiB macro against the low-standby-power one above, by transistor flavour
#: (low operating power, high performance), and leakage likewise: CACTI as above with
#: ``itrs-lop`` and ``itrs-hp``.
SRAM_LOP_ENERGY: Mapping[int, float] = {22: 0.589, 32: 0.384, 45: 0.454, 65: 0.400}
SRAM_HP_ENERGY: Mapping[int, float] = {22: 0.838, 32: 0.712, 45: 0.909, 65: 0.704}
SRAM_HP_LEAKAGE: Mapping[int, float] = {22: 565.0, 32: 4626.0, 45: 18610.0, 65: 3611.0}

#: Energy per byte against a 64-bit port, by port width in bits: CACTI as above, 256 KiB at
#: 22 nm. At 32 KiB and 2 MiB the same ratios are within 35 %.
READ_BY_WIDTH = ((32, 1.243), (64, 1.0), (128, 0.749), (256, 0.633), (512, 0.535))
WRITE_BY_WIDTH = ((32, 1.318), (64, 1.0), (128, 0.866), (256, 0.773), (512, 0.763))

#: Smallest node that CACTI covers, and the smallest to which its values are scaled: energy and
#: leakage by the square root of the node, area and time by the node, leakage also by 0.79 for
#: fin transistors (the rules of hwcomponents-cacti 1.0.40).
CACTI_MIN_NM = 22
MIN_NODE_NM = 7
MAX_NODE_NM = 65
FIN_LEAKAGE = 0.79

#: Multiplications and additions, pJ. 45 nm, 0.9 V: Horowitz, ISSCC 2014 (unverified); 7 nm:
#: Jouppi et al., "Ten Lessons", ISCA 2021 (unverified). int16 is the geometric mean of int8 and
#: int32, int4 continues the same slope; bf16 at 45 nm is fp16 times the 7 nm ratio of the two;
#: fp8 multiplies significands of four bits, as int4 does.
MULTIPLY_PJ: Mapping[str, Mapping[int, float]] = {
    "int4": {7: 0.0152, 45: 0.0508},
    "int8": {7: 0.07, 45: 0.2},
    "int16": {7: 0.322, 45: 0.787},
    "int32": {7: 1.48, 45: 3.1},
    "fp8": {7: 0.0152, 45: 0.0508},
    "bf16": {7: 0.21, 45: 0.68},
    "fp16": {7: 0.34, 45: 1.1},
    "fp32": {7: 1.31, 45: 3.7},
}
ADD_PJ: Mapping[str, Mapping[int, float]] = {
    "int4": {7: 0.007, 45: 0.03},
    "int8": {7: 0.007, 45: 0.03},
    "int16": {7: 0.0145, 45: 0.0548},
    "int32": {7: 0.03, 45: 0.1},
    "fp8": {7: 0.11, 45: 0.275},
    "bf16": {7: 0.11, 45: 0.275},
    "fp16": {7: 0.16, 45: 0.4},
    "fp32": {7: 0.38, 45: 0.9},
}
#: Another source for int8 products summed in 32 bit: Aladdin, in hwcomponents-library 1.0.58.
ALADDIN_INT8_MAC_PJ: Mapping[int, float] = {7: 0.109, 22: 0.339, 45: 1.154}
#: fp8 against int8 multiply-accumulate with narrow sums: 1.5 to 2.8 (arXiv 2303.17951).
FP8_AGAINST_INT8 = 1.5
#: Energy of logic against 45 nm at 0.9 V: Stillmaker and Baas, Integration 2017, evaluated at
#: 28 nm 0.9 V and 7 nm 0.7 V. Lower than the 7 nm numbers above imply (0.23 to 0.48).
STILLMAKER_ENERGY: Mapping[int, float] = {7: 0.057, 28: 0.51, 45: 1.0}
#: Area of logic against 45 nm: the same paper.
STILLMAKER_AREA: Mapping[int, float] = {
    7: 0.059,
    10: 0.10,
    14: 0.17,
    16: 0.19,
    20: 0.21,
    32: 0.46,
    45: 1.0,
    65: 0.059 / 0.039,
}

#: Area of an int8 multiply-accumulate, um2: Aladdin, in hwcomponents-library 1.0.58.
ALADDIN_INT8_MAC_UM2: Mapping[int, float] = {7: 58.0, 22: 247.0, 45: 986.0}
#: Multiplier and adder areas at 45 nm, um2: Horowitz, ISSCC 2014 (unverified); derived types as
#: for energy.
MULTIPLY_UM2: Mapping[str, float] = {
    "int4": 80.0,
    "int8": 282.0,
    "int16": 993.0,
    "int32": 3495.0,
    "fp8": 80.0,
    "bf16": 867.0,
    "fp16": 1640.0,
    "fp32": 7700.0,
}
ADD_UM2: Mapping[str, float] = {
    "int4": 36.0,
    "int8": 36.0,
    "int16": 70.0,
    "int32": 137.0,
    "fp8": 1360.0,
    "bf16": 1360.0,
    "fp16": 1360.0,
    "fp32": 4184.0,
}
#: A multiply-accumulate made for 1.5 GHz against one for 1.0 GHz: 707 and 367 um2 at 28 nm
#: (arXiv 2503.06342).
FAST_MAC_AREA = 707 / 367

#: Leakage of logic, W per mm2: 32.5 uW for a multiply-accumulate of 1288 um2 (SAED 32 nm
#: synthesis reports published with arXiv 2503.06342), taken for every node (unverified).
LOGIC_LEAKAGE_W_PER_MM2 = 32.5e-6 / 1288e-6

#: Flip-flops, energy per byte and access: Aladdin's 8-bit register, hwcomponents-library 1.0.58.
REGISTER_PJ_PER_BYTE: Mapping[int, float] = {7: 0.0078, 22: 0.024, 45: 0.083}
#: Flip-flops, um2 per bit at 45 nm: Aladdin's register.
REGISTER_UM2_PER_BIT = 5.98

#: Off-chip access, pJ per bit: (nominal, lowest, highest of the sources).
DRAM_PJ_PER_BIT: Mapping[str, tuple[float, float, float]] = {
    # hwcomponents-cacti 1.0.40 says 8, the TPUv4i example of accelforge 7.03
    "lpddr4": (8.0, 7.03, 8.0),
    # Jouppi et al., ISCA 2021: 1300-2600 pJ per 64 bit (unverified); hwcomponents-cacti: 70
    "ddr3": (30.0, 20.3, 70.0),
    # Jouppi et al., ISCA 2021: 1300 pJ per 64 bit (unverified)
    "ddr4": (20.3, 20.3, 20.3),
    # O'Connor et al., MICRO 2017
    "gddr5": (14.0, 14.0, 14.0),
    # Jouppi et al., ISCA 2021: 350-480 pJ per 64 bit (unverified)
    "gddr6": (6.5, 5.5, 7.5),
    # O'Connor et al., MICRO 2017: 3.97; Jouppi et al., ISCA 2021: 250-450 pJ per 64 bit
    "hbm2": (3.97, 3.9, 7.03),
    # AttAcc simulator: 3.59; hwcomponents-cacti 1.0.40: 4.05
    "hbm3": (3.59, 3.59, 4.05),
}
