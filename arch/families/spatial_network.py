"""Networks of family ``spatial``, and what their links have in common with memories."""

from __future__ import annotations

from collections.abc import Iterator

from arch.families.spatial_schema import Arbitrated, NocConfig
from arch.noc import TOPOLOGIES, loads
from arch.spec import PS_PER_S, Arbiter, NocLink


def arbiter(config: Arbitrated) -> Arbiter:
    return Arbiter(
        policy=config.arbitration,
        order=tuple(config.priority),
        queue=None if isinstance(config.queue, str) else config.queue,
    )


def bandwidth_of(value: float | str, instances: int) -> int | None:
    """Of all instances together; ``unlimited`` is never the bottleneck."""
    return None if isinstance(value, str) else round(value) * instances


def network(name: str, config: NocConfig) -> Iterator[NocLink]:
    """Its links; the first one, which all traffic passes, has the time on the way."""
    links = TOPOLOGIES[config.topology](config.rows, config.cols)
    bytes_per_s = bandwidth_of(config.link_bandwidth, 1)
    assert bytes_per_s is not None
    transit_ps = links.hops * config.hop_latency
    if config.switching == "store_and_forward":
        packet_ps = -(-config.packet * PS_PER_S // bytes_per_s)
        transit_ps += (links.hops - 1) * packet_ps
    known = not isinstance(config.area, str)
    area_mm2 = config.rows * config.cols * float(config.area) if known else 0.0
    for number, branch in enumerate(links.branches):
        yield NocLink(
            network=name,
            area_mm2=0.0 if number else area_mm2,
            area_known=known,
            name=f"{name}_{branch.name}",
            count=branch.count,
            source=config.source,
            loads=loads(branch, config.rows, config.cols, multicast=config.multicast),
            bytes_per_s=bytes_per_s,
            pj_per_byte=float(config.energy),
            transit_ps=0 if number else transit_ps,
            arbiter=arbiter(config),
        )
