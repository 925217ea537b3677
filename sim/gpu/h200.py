"""The GPU that was measured."""

from __future__ import annotations

from sim.gpu.chip import Chip

# SMs, clock and power limit as read from the device (kernels_ref/data/h200_library.md); L2: NVIDIA
# H100 Tensor Core GPU Architecture whitepaper (50 MB); multiply-adds per SM and cycle: the same, and
# 16 special functions; HBM: 6144 bits at two transfers per cycle of 3201 MHz; L2 bandwidth is an
# effective rate that fits the measured products (multicast of clusters included); link: NVLink 4, 18
# links of 25 GB/s in each direction; idle power as measured.
H200 = Chip(
    name="h200",
    sms=132,
    clock_mhz=1980,
    least_clock_mhz=1000,
    mma={"bf16": 2048, "fp16": 2048, "fp8": 4096, "int8": 4096},
    fma=128,
    sfu=16,
    hbm_bytes_per_us=4.917e6,
    l2_bytes=50 * 2**20,
    l2_bytes_per_us=8e6,
    link_bytes_per_us=450e3,
    power_limit_w=700,
    idle_w=121,
    tensor_path="wgmma",
)
