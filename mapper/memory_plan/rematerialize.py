"""Computing results again instead of keeping them: training steps in less memory.

A schedule is a sequence of nodes (tensors, with all operators that write them) in which a node
may come more than once. A result is kept from its computation to its last use before it is
computed again; ``run`` finds that from the sequence alone, so that every method's claim is
checked by the same short simulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mapper.workload.graph import UPDATES, Workload
from mapper.workload.operators import Operator, Tensor
from mapper.workload.training.contribution import gradient_of

#: The gradients that come from outside are named so; who reads one begins the backward pass.
_SEED = gradient_of("loss.").removesuffix(".grad")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A tensor: its bytes, what its operators cost, the nodes they read (by number, earlier ones).

    ``kept``: a result of the network. ``latest``: no use after this node's number makes it right to
    compute it again (a parameter that it reads is overwritten then); its own: never again.
    """

    name: str
    size_bytes: int
    cost: int
    needs: tuple[int, ...]
    kept: bool
    latest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGraph:
    """Nodes in the order in which they are first computed.

    ``base_bytes`` are always there: inputs, parameters that are trained, what their optimizer
    keeps. ``forward`` is how many nodes come before the backward pass.
    """

    nodes: tuple[Node, ...]
    base_bytes: int
    forward: int

    @property
    def cost(self) -> int:
        """Of every node once."""
        return sum(node.cost for node in self.nodes)

    @property
    def least_bytes(self) -> int:
        """No schedule has less: each node with what it reads."""
        return self.base_bytes + max(
            node.size_bytes + sum(self.nodes[n].size_bytes for n in node.needs)
            for node in self.nodes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a sequence takes: the most bytes at once, and cost with all repetitions."""

    sequence: tuple[int, ...]
    peak_bytes: int
    cost: int

    def repeated(self, graph: StepGraph) -> tuple[str, ...]:
        """Names of what is computed again, once for each time."""
        seen: set[int] = set()
        again = []
        for node in self.sequence:
            if node in seen:
                again.append(graph.nodes[node].name)
            seen.add(node)
        return tuple(again)


def run(graph: StepGraph, sequence: Sequence[int]) -> Run:
    """Simulates the sequence; ``ValueError`` where something is read that is not there."""
    last_use = _last_uses(graph, sequence)
    live: dict[int, int] = {}  # node -> step until which it is kept
    peak = 0
    for step, number in enumerate(sequence):
        node = graph.nodes[number]
        missing = [graph.nodes[n].name for n in node.needs if n not in live]
        if missing:
            raise ValueError(f"{node.name} reads {missing[0]}, which is not there")
        live[number] = last_use[step]
        peak = max(peak, sum(graph.nodes[n].size_bytes for n in live))
        live = {n: until for n, until in live.items() if until > step}
    if set(range(len(graph.nodes))) != set(sequence):
        raise ValueError("not everything is computed")
    return Run(
        sequence=tuple(sequence),
        peak_bytes=graph.base_bytes + peak,
        cost=sum(graph.nodes[n].cost for n in sequence),
    )


def _last_uses(graph: StepGraph, sequence: Sequence[int]) -> list[int]:
    """For each step until which step its result is needed; results of the network to the end."""
    until: dict[int, int] = {n: len(sequence) for n, x in enumerate(graph.nodes) if x.kept}
    found = [0] * len(sequence)
    for step in reversed(range(len(sequence))):
        number = sequence[step]
        found[step] = until.pop(number, step)
        for read in graph.nodes[number].needs:
            until.setdefault(read, step)
    return found


def keep_everything(graph: StepGraph) -> Run:
    """Nothing is computed twice."""
    return run(graph, range(len(graph.nodes)))


def checkpoints(graph: StepGraph, segments: int) -> Run:
    """The forward pass in ``segments`` runs of equally many nodes: what another run reads is kept,
    the rest is computed again when the backward pass first needs any of it.

    With the square root of the number of nodes the memory of a chain grows with that root (Chen
    et al., "Training Deep Nets with Sublinear Memory Cost", 2016). The last run is kept.
    """
    segment_of = {v: v * segments // graph.forward for v in range(graph.forward)}
    dropped = _dropped(graph, segment_of, segments)
    sequence = list(range(graph.forward))
    again: set[int] = set()
    for number in range(graph.forward, len(graph.nodes)):
        for read in graph.nodes[number].needs:
            if read in dropped and read not in again:
                rest = _needed_again(graph, dropped, segment_of, segment_of[read])
                sequence += rest
                again.update(rest)
        sequence.append(number)
    return run(graph, sequence)


def _dropped(graph: StepGraph, segment_of: Mapping[int, int], segments: int) -> set[int]:
    """Nodes whose readers in the forward pass are all in their own run, but for the last one."""
    outside = {
        read
        for number in range(graph.forward)
        for read in graph.nodes[number].needs
        if segment_of[read] != segment_of[number]
    }
    return {
        v
        for v, segment in segment_of.items()
        if segment < segments - 1 and v not in outside and not graph.nodes[v].kept
    }


def _needed_again(
    graph: StepGraph, dropped: set[int], segment_of: Mapping[int, int], segment: int
) -> list[int]:
    """Of a run: what the backward pass reads, and what that is made of."""
    needed = {n for node in graph.nodes[graph.forward :] for n in node.needs}
    found = []
    for v in reversed([v for v, s in segment_of.items() if s == segment]):
        if v in needed and v in dropped:
            found.append(v)
            needed.update(graph.nodes[v].needs)
    return found[::-1]


def root_checkpoints(graph: StepGraph) -> Run:
    """With the square root of the number of forward nodes."""
    return checkpoints(graph, max(1, round(math.sqrt(graph.forward))))


def best_checkpoints(graph: StepGraph, limit_bytes: int) -> Run | None:
    """The cheapest number of runs that fits; ``None`` if none does."""
    tried = (checkpoints(graph, segments) for segments in range(1, graph.forward + 1))
    fitting = [found for found in tried if found.peak_bytes <= limit_bytes]
    return min(fitting, key=lambda r: (r.cost, r.peak_bytes), default=None)


def graph_of(workload: Workload, costs: Mapping[str, int] | None = None) -> StepGraph:
    """The nodes of a workload; ``costs`` by operator, else scalar operations.

    Updates of parameters come as soon as nobody reads the parameter any more, so that gradients
    need not wait for the end. What reads a parameter is not computed again after its update.
    """
    operators = _early_updates(workload)
    groups = _groups(workload, operators)
    number = {tensor: n for n, (tensor, _) in enumerate(groups)}
    updated = _updated(workload, groups)
    nodes = tuple(_node(workload, group, (number, updated), costs) for group in groups)
    begin = [n for n, (_, ops) in enumerate(groups) if any(map(_reads_seed, ops))]
    return StepGraph(
        nodes=tuple(replace(x, latest=max(n, x.latest)) for n, x in enumerate(nodes)),
        base_bytes=_base_bytes(workload, trained=bool(updated)),
        forward=begin[0] if begin else len(nodes),
    )


def _reads_seed(operator: Operator) -> bool:
    return any(access.tensor.startswith(_SEED) for access in operator.inputs)


def _early_updates(workload: Workload) -> list[Operator]:
    """Each update behind the last reader of its parameter and the last writer of its gradient."""
    order = [o for o in workload.operators if o.kind not in UPDATES]
    touched = {a.tensor: i for i, o in enumerate(order) for a in o.accesses}
    behind: dict[int, list[Operator]] = {}
    for operator in workload.operators:
        if operator.kind in UPDATES:
            parameter = operator.name.rpartition(".")[0]
            names = (parameter, *(a.tensor for a in operator.accesses))
            place = max(touched.get(name, 0) for name in names)
            behind.setdefault(place, []).append(operator)
    return [x for i, o in enumerate(order) for x in (o, *behind.get(i, []))]


Group = tuple[str, list[Operator]]


def _groups(workload: Workload, operators: Sequence[Operator]) -> list[Group]:
    """Writers of a tensor together, where the last of them stands; updates by themselves."""
    found: dict[str, list[Operator]] = {}
    for operator in operators:
        produced = workload.tensor(operator.output.tensor).kind in ("activation", "output")
        name = operator.output.tensor if produced else operator.name
        found[name] = [*found.pop(name, []), operator]
    return list(found.items())


def _updated(workload: Workload, groups: Sequence[Group]) -> dict[str, int]:
    """Parameter -> the node that overwrites it."""
    return {
        o.output.tensor: n
        for n, (_, operators) in enumerate(groups)
        for o in operators
        if workload.tensor(o.output.tensor).kind == "weight"
    }


def _node(
    workload: Workload,
    group: Group,
    places: tuple[Mapping[str, int], Mapping[str, int]],
    costs: Mapping[str, int] | None,
) -> Node:
    name, operators = group
    number, updated = places
    read = {a.tensor for o in operators for a in o.inputs}
    tensor = workload.tensor(operators[-1].output.tensor)
    produced = tensor.kind in ("activation", "output")
    limits = [updated[t] for t in read if t in updated]
    return Node(
        name=name,
        size_bytes=_bytes(tensor) if produced else 0,
        cost=sum(o.operations if costs is None else costs[o.name] for o in operators),
        needs=tuple(sorted({number[t] for t in read if t in number and t != name})),
        kept=tensor.kind == "output",
        latest=min(limits, default=len(number)) if produced and tensor.kind != "output" else -1,
    )


def _base_bytes(workload: Workload, *, trained: bool) -> int:
    kinds = ("input", "weight") if trained else ("input",)
    return sum(_bytes(t) for t in workload.tensors if t.kind in kinds)


def _bytes(tensor: Tensor) -> int:
    return math.ceil(tensor.elements * tensor.bits / 8)


def repeats(graph: StepGraph) -> Iterator[int]:
    """Nodes that may be worth computing again: somebody reads them after others came between."""
    for number, node in enumerate(graph.nodes):
        readers = [n for n, x in enumerate(graph.nodes) if number in x.needs]
        if readers and node.latest > number + 1:
            yield number
