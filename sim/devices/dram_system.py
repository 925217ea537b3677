"""Prices of the components of family ``dram_system``."""

from __future__ import annotations

from fractions import Fraction

from arch.dram_device import DramChannels
from arch.spec import PS_PER_S
from mapper.cost import Price
from sim.prices import prices


@prices(DramChannels)
def dram_channels(component: DramChannels) -> Price:
    """At the peak rate; what rows, refresh and turnaround add is the event model's business."""
    ps_per_bit = Fraction(PS_PER_S, 8 * component.device.peak_bytes_per_s)
    return Price(
        read_ps_per_bit=ps_per_bit,
        write_ps_per_bit=ps_per_bit,
        shared_port=component.shared_port,
        latency_ps=component.latency_ps,
        read_pj_per_bit=component.read_pj_per_byte / 8,
        write_pj_per_bit=component.write_pj_per_byte / 8,
    )
