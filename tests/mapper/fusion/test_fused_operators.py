"""Does every operator that can be named compute the right numbers inside a fused group?

Each stands between an operator that makes its first input and one that takes its result; of these
operators the longest groups that may be fused run as one program, with random tiles, tensors
resident or streamed, overlaps kept or computed again, and random inner mappings. Their result is
compared with the reference of the operator alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from mapper.fusion import why_not
from mapper.fusion_lower import lower_group, plan_group
from mapper.hierarchy import execution
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.models.config import Decoder, Run
from mapper.workload.models.decoder import build_decoder
from mapper.workload.nests import at
from mapper.workload.operators import Access, Operator, Tensor
from mapper.workload.parameters import split_spec
from mapper.workload.single import SINGLE_OPERATORS
from mapper.workload.writing.builder import Builder, Formats
from tests.mapper.fusion.cases import device, random_fused_group
from tests.mapper.fusion.interpreter import execute_group
from tests.mapper.program_interpreter import Array, define
from tests.mapper.test_operators_compute import CASES, random_values

#: Random ways to fuse each group.
WAYS = 2


def pointwise(kind: str, source: Tensor, result: Tensor) -> Operator:
    dims = [f"a{axis}" for axis in range(len(source.shape))]
    return Operator(
        name=f"{result.name}.{kind}",
        kind=kind,
        operation="activation",
        extents=dict(zip(dims, source.shape, strict=True)),
        inputs=(Access(source.name, at(*dims)),),
        output=Access(result.name, at(*dims)),
        accumulator_dtype=result.dtype,
    )


def surrounded(workload: Workload) -> Workload:
    """What a case computes of ``tanh`` of its first input, and ``tanh`` of the result."""
    given = workload.tensor(_first_input(workload))
    result = workload.tensor(workload.operators[-1].output.tensor)
    raw, after = replace(given, name="raw"), replace(result, name="after")
    kinds = {given.name: "activation", result.name: "activation"}
    tensors = tuple(replace(t, kind=kinds.get(t.name, t.kind)) for t in workload.tensors)
    return Workload(
        name=workload.name,
        tensors=(*tensors, raw, after),
        operators=(
            pointwise("tanh", raw, given),
            *workload.operators,
            pointwise("tanh", result, after),
        ),
    )


def _first_input(workload: Workload) -> str:
    """The first that is of numbers: neither indices nor a mask."""
    return next(t.name for t in workload.tensors if t.dtype == "int8" and t.kind != "activation")


def longest_groups(workload: Workload) -> Iterator[tuple[Operator, ...]]:
    """Operators in order, cut into groups, each as long as it can be."""
    rest = workload.operators
    while rest:
        counts = range(len(rest), 1, -1)
        count = next((n for n in counts if not why_not(workload, rest[:n])), 1)
        yield rest[:count]
        rest = rest[count:]


def definition(
    workload: Workload, operators: tuple[Operator, ...], values: dict[str, Array]
) -> None:
    for operator in operators:
        run = execution(workload, operator, device())
        define(operator, run, values, values[operator.output.tensor])


def run_fused(workload: Workload, given: Mapping[str, Array], rng: np.random.Generator) -> Array:
    """Every group as fused programs, beside its operators as defined; what the last one writes."""
    values = dict(given)
    for tensor in workload.tensors:
        values.setdefault(tensor.name, np.full(tensor.shape, np.nan))
    for operators in longest_groups(workload):
        before = dict(values)
        definition(workload, operators, values)
        result = operators[-1].output.tensor
        for _ in range(0 if why_not(workload, operators) else WAYS):
            fused = random_fused_group(workload, operators, device(), rng)
            group = lower_group(plan_group(workload, fused, device()), fused, device())
            runs = tuple(
                group.plan.execution(number, operator, device())
                for number, operator in enumerate(operators)
            )
            computed = execute_group(group, runs, before).outside[result]
            written = ~np.isnan(computed)
            assert written.sum() == runs[-1].counts.operands[runs[-1].output].elements
            expected = values[result][written]
            np.testing.assert_allclose(computed[written], expected, rtol=1e-9, atol=1e-9)
    return values[workload.operators[-1].output.tensor]


@pytest.mark.parametrize("name", SINGLE_OPERATORS)
def test_every_operator_that_can_be_named_has_a_numeric_test(name: str) -> None:
    """In every form: each choice that a parameter has is one of a case's values."""
    given = [split_spec(spec)[1] for spec in CASES if spec.startswith(f"{name}:")]
    assert given
    for parameter in SINGLE_OPERATORS[name].parameters:
        tested = {values.get(parameter.name, parameter.default) for values in given}
        assert set(parameter.choices or ()) <= tested, parameter.name


#: Operators whose results lie side by side in one tensor, which several write: none of a group.
SIDE_BY_SIDE = {
    "causal_attention",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "expert",
}


def test_what_is_never_part_of_a_group_is_known() -> None:
    fused, alone = set[str](), set[str]()
    for workload in (surrounded(load_workload(spec)) for spec in CASES):
        for operators in longest_groups(workload):
            (alone if why_not(workload, operators) else fused).update(o.kind for o in operators)
    assert alone - fused == SIDE_BY_SIDE


@pytest.mark.parametrize("spec", CASES)
def test_every_operator_computes_what_it_says_inside_a_group(spec: str) -> None:
    alone = load_workload(spec)
    workload = surrounded(alone)
    rng = np.random.default_rng(zlib.crc32(spec.encode()))
    given = random_values(alone, rng)
    first = _first_input(alone)
    raw = given.pop(first)
    computed = run_fused(workload, given | {"raw": raw}, rng)
    expected = np.tanh(CASES[spec](given | {first: np.tanh(raw)}))
    if spec.startswith("mla"):  # streaming contexts are padded to the size of keys
        computed = computed.reshape(*expected.shape[:-1], -1)[..., : expected.shape[-1]]
    np.testing.assert_allclose(computed.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


TINY = Decoder(layers=2, width=6, heads=4, kv_heads=2, head=4, hidden=5, vocabulary=7, positions=9)
BLOCKS = {
    "norms of mean squares": (TINY, "parts"),
    "streaming attention": (TINY, "streaming"),
    "layer norms, biases": (
        replace(TINY, norm="layer_norm", gated=False, rotary=False, kv_heads=4),
        "parts",
    ),
    "streaming attention, heads normalized": (replace(TINY, head_norms=True), "streaming"),
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("context", [3, 5])
def test_decoders_compute_their_definition_fused(name: str, context: int) -> None:
    """Chains as they come: from a core of attention over its output product, the sum and the
    norm to the end of the feed-forward. Three tokens, with and without earlier ones."""
    model, form = BLOCKS[name]
    builder = Builder(Formats.all_in("int8"))
    run = Run(batch=2, new=3, context=context, form=form, all_logits=True)
    workload = builder.workload(name, build_decoder(builder, model, run))
    groups = [[o.kind for o in operators] for operators in longest_groups(workload)]
    assert any({"matmul", model.norm, _core(form)} <= set(kinds) for kinds in groups)
    rng = np.random.default_rng(context)
    values = {
        t.name: rng.normal(size=t.shape) for t in workload.tensors if t.kind in ("input", "weight")
    }
    assert np.isfinite(run_fused(workload, values, rng)).all()


def _core(form: str) -> str:
    return {"parts": "attention_context", "streaming": "attention"}[form]
