"""dispatch-attention: a dispatch has the numbers of softmax(q k^T) v, in every arrangement, and its special values."""

from __future__ import annotations

from typing import Any

import numpy as np

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.runtime.reference.correctness import judge
from tests.engines import shared_reference
from tests.pipelines.widths import WIDTHS, compiled_for

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def random(*dims: int) -> Array:
    return RANDOM.standard_normal(dims).astype(np.float32)


def product(lhs: Value, rhs: Value, summed: tuple[int, int]) -> Value:
    batch = list(range(lhs.rank - 2))
    return ops.dot_general(lhs, rhs, ops.DotDimensionNumbers([summed[0]], [summed[1]], batch, batch))


def softmax(scores: Value) -> Value:
    last, outer = scores.rank - 1, list(range(scores.rank - 1))
    greatest = ops.reduce(scores, ops.constant(-np.inf, "f32"), ops.max, [last])
    weights = ops.exp(scores - ops.broadcast_in_dim(greatest, scores.dims, outer))
    sums = ops.reduce(weights, ops.constant(0.0, "f32"), ops.add, [last])
    return weights / ops.broadcast_in_dim(sums, scores.dims, outer)


def scores_of(queries: Value, keys: Value) -> Value:
    return product(queries, keys, (queries.rank - 1, keys.rank - 1)) * 0.2


def causal(scores: Value) -> Value:
    rank = scores.rank
    late = ops.iota("s32", scores.dims, rank - 1) > ops.iota("s32", scores.dims, rank - 2)
    return ops.select(late, ops.broadcast(ops.constant(-1e9, "f32"), scores.dims), scores)


def attention(weights: Value, values: Value) -> Value:
    return product(weights, values, (weights.rank - 1, values.rank - 2))


def masked(scores: Value, mask: Value, dimensions: list[int]) -> Value:
    nothing = ops.broadcast(ops.constant(-np.inf, "f32"), scores.dims)
    return ops.select(ops.broadcast_in_dim(mask, scores.dims, dimensions), scores, nothing)


def parameters(builder: Builder, arrays: list[Array]) -> list[Value]:
    return [builder.parameter(n, hloforge.Shape.array(a.dtype, *a.shape), f"x{n}") for n, a in enumerate(arrays)]


def left(program: Program) -> tuple[int, int, int]:
    """How many dispatches, products and exponentials there are in what IREE gets."""
    copy = program.clone()
    lower(copy.module)
    names = [op.name for op in operations(copy.module)]
    return tuple(names.count(name) for name in ("flow.dispatch", "stablehlo.dot_general", "math.exp"))  # type: ignore[return-value]


def agrees(program: Program, arrays: list[Array]) -> None:
    for machine, device in zip(WIDTHS, ("local-sync", "local-task"), strict=True):
        found = compiled_for(program, machine).load(device=device)(*arrays)
        report = judge(shared_reference("xla"), program, arrays, found)
        assert report.agrees, report.text()


def test_attention_of_every_form_is_right() -> None:
    # 40 queries are no whole groups of 16, and 300 keys no whole blocks.
    arrays = [random(2, 3, 40, 24), random(2, 3, 300, 24), random(2, 3, 300, 10), random(300), random(2, 1, 40, 300)]
    arrays += [RANDOM.random((2, 300)) > 0.5, RANDOM.random((40, 300)) > 0.3, random()]
    # A batch with all keys of the first block masked, and a query that sees none.
    arrays[5][0, :200], arrays[6][7] = False, False
    with Builder("attention") as builder:
        q, k, v, along, bias, by_key, by_pair, factor = parameters(builder, arrays)
        plain = scores_of(q, k)
        scores = [
            plain,
            causal(scores_of(q, k)),
            masked(scores_of(q, k), by_key, [0, 3]),
            masked(scores_of(q, k), by_pair, [2, 3]) * ops.broadcast(factor, plain.dims),
            ops.max(scores_of(q, k), ops.broadcast_in_dim(along, plain.dims, [3]))
            + ops.broadcast_in_dim(bias, plain.dims, [0, 1, 2, 3]),
        ]
        results = [attention(softmax(array), v) for array in scores]
        # The values first: the result is transposed.
        results.append(product(v, softmax(scores_of(q, k) * 2.0), (2, 3)))
        program = builder.build(tuple(results))
    assert left(program) == (len(results), 0, 4 * len(results))
    agrees(program, arrays)


def test_infinities_and_nan_reach_their_queries_alone() -> None:
    arrays = [random(2, 32, 32), random(2, 160, 32), random(2, 160, 32)]
    arrays[0][0, 1, 2], arrays[1][1, 7, 3], arrays[2][0, 9, 9], arrays[2][1, 150, 4] = np.nan, np.inf, np.inf, -np.inf
    arrays[0][1, 5] *= 1e4
    with Builder("special") as builder:
        q, k, v = parameters(builder, arrays)
        program = builder.build((attention(softmax(causal(scores_of(q, k))), v),))
    agrees(program, arrays)


def test_attention_in_a_loop_is_right() -> None:
    arrays = [random(2, 24, 32), random(2, 24, 32)]
    with Builder("loop") as builder:
        x, k = parameters(builder, arrays)

        def turn(step: Value, state: Value) -> list[Value]:
            return [step + 1, attention(softmax(scores_of(state, k)), state) + x]

        program = builder.build(ops.while_(lambda step, _: step < 3, turn, [ops.constant(0, "s32"), x])[1])
    agrees(program, arrays)


def test_weights_that_others_read_and_few_queries_stay_as_they_are() -> None:
    arrays = [random(4, 64, 32), random(4, 64, 32), random(4, 1, 32)]
    with Builder("kept") as builder:
        q, k, one = parameters(builder, arrays)
        weights = softmax(scores_of(q, k))
        program = builder.build((attention(weights, k), weights, attention(softmax(scores_of(one, k)), k)))
    assert left(program)[1] == 4
