"""Steps over the same rows that run block by block, for a second-level cache so small that short programs have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.dialect.program import Program
from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.fused_rows import FusedRows, Rows, with_fused_rows
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.reading import function_of
from hloforge.pipelines.codegen.steps import Planner
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal

# Bytes of a second-level cache, which scores of some hundred rows and columns fill.
_SMALL = 1 << 16


@pytest.fixture(autouse=True, scope="module")
def _small_cache() -> Iterator[None]:
    """Programs are compiled for a processor with such a cache, which no option of the compiler has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "with_settings", lambda machine, _: replace(machine, l2_bytes=_SMALL))
        yield


def _program(function: Callable[..., Any], *arguments: Any) -> Program:
    with jax.enable_x64(True):
        return hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments))


def _fused(function: Callable[..., Any], *arguments: Any, l2_bytes: int = _SMALL) -> list[FusedRows]:
    """The fused steps of a function's program."""
    program = _program(function, *arguments).clone()
    lower(program.module)
    block = function_of(program.module)
    stored = {*block.arguments, *(op.result for op in block.ops if op.name == "constant" and not op.is_splat)}
    planner = Planner(block, stored.__contains__)
    machine = replace(Machine(), l2_bytes=l2_bytes)
    steps = with_fused_rows(planner.steps(), block, planner.in_memory, machine)
    return [step for step in steps if isinstance(step, FusedRows)]


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) * 0.3
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(scores, -1), v)


def _masked(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhid,bhjd->bhij", q, k)
    rows, columns = scores.shape[-2:]
    seen = jnp.tril(jnp.ones((rows, columns), bool))
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(jnp.where(seen, scores, -1e9), -1), v)


def _heads_last(q: Any, k: Any, v: Any) -> Any:
    """Queries, keys and values as ``[batch, place, head, number]``."""
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    scores = jnp.einsum("bihd,bjhd->bhij", q, k)
    return jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(scores, -1), v)


def _biased(q: Any, k: Any, v: Any) -> Any:
    """A bias that the first product's epilogue adds, and scores that are a result as well."""
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) + jnp.float32(0.5) * q[..., :1]
    weights = jax.nn.softmax(scores, -1)
    return jnp.einsum("bhij,bhjd->bhid", weights, v), scores


def _divided_last(q: Any, k: Any, v: Any) -> Any:
    """Sums of exponentials divide the second product's, whose rows are stored before its heads."""
    scores = jnp.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=jnp.float32)
    powers = jnp.exp(scores - scores.max(-1, keepdims=True))
    bf16 = jax.lax.DotAlgorithmPreset.BF16_BF16_F32 if q.dtype == jnp.bfloat16 else None
    product = "bhij,bhjd->bhid"
    sums = jnp.einsum(product, powers.astype(q.dtype), v, precision=bf16, preferred_element_type=jnp.float32)
    return jnp.swapaxes(sums / powers.sum(-1, keepdims=True), 1, 2).astype(q.dtype)


def _norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _loss(x: Any, y: Any) -> Any:
    return -(jax.nn.log_softmax(x) * y).sum(-1).mean()


def _in_a_loop(x: Any) -> Any:
    """The last of fused steps makes what the loop carries."""

    def step(_: Any, state: Any) -> Any:
        return state + jax.nn.softmax(jnp.cumsum(state, 0), -1)

    return jax.lax.fori_loop(0, 3, step, x)


def _flat(x: Any, w: Any) -> Any:
    """Rows of two dimensions that a reshape makes one."""
    weights = jax.nn.softmax(x, -1).reshape(-1, x.shape[-1])
    return (weights @ w).reshape(*x.shape[:-1], -1)


def _of_integers(q: Any, k: Any) -> Any:
    """Sums of integers, and floats of the same size that must not take their memory."""
    sums = jnp.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=jnp.int32)
    return jax.nn.softmax((sums - 7).astype(jnp.float32) * 1e-3, -1)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "attention": (_attention, (normal(2, 3, 70, 16), normal(2, 3, 90, 16), normal(2, 3, 90, 33))),
    "causal attention": (_masked, (normal(1, 4, 96, 16), normal(1, 4, 96, 16), normal(1, 4, 96, 32))),
    "attention, heads last": (_heads_last, (normal(2, 2, 80, 16), normal(2, 2, 80, 16), normal(2, 2, 80, 40))),
    "attention, biased": (_biased, (normal(1, 2, 101, 8), normal(1, 2, 101, 8), normal(1, 2, 101, 32))),
    "attention, divided last": (_divided_last, (normal(2, 3, 70, 16), normal(2, 3, 90, 16), normal(2, 3, 90, 33))),
    "attention of bf16, divided last": (
        _divided_last,
        tuple(normal(1, 2, 97, 64, dtype=jnp.bfloat16) for _ in range(3)),
    ),
    "attention of bf16": (_attention, tuple(normal(1, 2, 97, 32, dtype=jnp.bfloat16) for _ in range(3))),
    "attention of f16": (_attention, tuple(normal(1, 2, 97, 32, dtype=np.float16) for _ in range(3))),
    "attention of f64": (_attention, tuple(normal(1, 2, 65, 32, dtype=np.float64) for _ in range(3))),
    "scores of integers": (
        _of_integers,
        tuple((normal(1, 2, 101, 8) * 30).astype(np.int8) for _ in range(2)),
    ),
    "layer norm": (_norm, (normal(3, 67, 130), normal(130), normal(130))),
    "softmax of middle dimensions": (lambda x: jax.nn.softmax(x, 1), (normal(90, 50, 7),)),
    "loss and its gradient": (jax.value_and_grad(_loss), (normal(101, 300), normal(101, 300))),
    "gradient of attention": (
        jax.grad(lambda *given: (_attention(*given) ** 2).sum(), (0, 1, 2)),
        (normal(1, 2, 77, 16), normal(1, 2, 77, 16), normal(1, 2, 77, 32)),
    ),
    "complex rows": (
        lambda x: (x - x.mean(-1, keepdims=True)) * jnp.abs(x).sum(-1, keepdims=True),
        (normal(70, 130, dtype=np.complex64),),
    ),
    "a loop's carry": (_in_a_loop, (normal(50, 200),)),
    "rows of two dimensions": (_flat, (normal(3, 64, 150), normal(150, 40))),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name: str) -> None:
    function, arguments = PROGRAMS[name]
    check(function, *arguments)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "a loop's carry"])
def test_these_programs_have_fused_steps(name: str) -> None:
    function, arguments = PROGRAMS[name]
    assert _fused(function, *arguments)


def test_scores_have_memory_for_a_block_of_rows() -> None:
    (fused,) = _fused(_attention, *PROGRAMS["attention"][1])
    assert [type(step).__name__ for step in fused.steps] == ["Single", "Nest", "Nest", "Single"]
    assert fused.rows == Rows(6, 70)
    scores = [array for array in fused.local if array.shape == (2, 3, 70, 90)]
    assert len(scores) == 2
    assert len({fused.local[array] for array in scores}) == 1
    assert fused.block < 70


@pytest.mark.parametrize("name", ["attention, divided last", "attention of bf16, divided last"])
def test_a_product_whose_sums_are_divided_and_moved_is_fused(name: str) -> None:
    (fused,) = _fused(*_flattened(name))
    assert [type(step).__name__ for step in fused.steps] == ["Single", "Nest", "Nest", "Single"]
    assert [array.rank for array in fused.makes] == [4]


def _flattened(name: str) -> tuple[Any, ...]:
    function, arguments = PROGRAMS[name]
    return function, *arguments


@pytest.mark.parametrize("length", [72, 77, 100, 136, 197, 200, 300, 512])
def test_blocks_compute_few_rows_again(length: int) -> None:
    """A last block that begins earlier, so that blocks have whole tiles, was nearly all of the rows of one before."""
    factors = [normal(2, 4, length, 64) for _ in range(3)]
    (fused,) = _fused(_attention, *factors, l2_bytes=1 << 19)
    assert fused.blocks * fused.block <= 8 * length * 1.05


def test_what_is_moved_is_not_read_by_rows() -> None:
    """Though rows and heads are as many, so that a row of heads has the number of another one."""

    def function(q: Any, k: Any, v: Any) -> Any:
        moved = _divided_last(q, k, v)
        return jax.nn.softmax(moved * 3, -1), moved

    for sizes in ((1, 64, 64, 16), (2, 40, 40, 32)):
        arrays = (normal(*sizes), normal(*sizes), normal(*sizes[:3], 40))
        check(function, *arrays)


def test_what_others_read_keeps_its_memory() -> None:
    (fused,) = _fused(_biased, *PROGRAMS["attention, biased"][1])
    assert [array for array in fused.makes if array.shape == (1, 2, 101, 101)]


def test_rows_that_see_others_are_not_fused() -> None:
    """The second sum goes over rows, and reads what the first one makes of all of them."""

    def across(x: Any) -> Any:
        weights = jnp.exp(x - x.max(-1, keepdims=True))
        return weights / weights.sum(0)

    for fused in _fused(across, normal(70, 300)):
        assert all(step.dims != (0,) for step in fused.steps if hasattr(step, "dims"))
    check(across, normal(70, 300))


_ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "logarithms of it": lambda x: jax.nn.log_softmax(x, -1),
    "their sums": lambda x: jax.nn.logsumexp(x, -1),
    "layer norm": lambda x: _norm(x, 1.0, 0.0),
    "RMS norm": lambda x: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5),
}


@pytest.mark.wide(4)
@pytest.mark.parametrize("shape", [(64, 1000), (300, 257), (1000, 40), (7, 2000)])
@pytest.mark.parametrize("name", list(_ROWS))
def test_rows_without_products_fill_the_first_level_cache(name: str, shape: tuple[int, int]) -> None:
    """Though the second-level cache holds all of them."""
    (fused,) = _fused(_ROWS[name], normal(*shape), l2_bytes=1 << 21)
    assert 0 < fused.block * shape[1] * 4 <= Machine().l1_bytes
    check(_ROWS[name], normal(*shape))


def test_steps_between_those_of_other_rows_are_fused_as_well() -> None:
    x, y = normal(64, 1000), normal(80, 900)
    both = lambda x, y: (jax.nn.softmax(x, -1), jax.nn.softmax(y, -1))  # noqa: E731
    assert sorted(fused.rows.count for fused in _fused(both, x, y, l2_bytes=1 << 21)) == [64, 80]
    check(both, x, y)


def test_few_rows_across_an_array_are_not_taken_at_a_time() -> None:
    """Each would read a number of each line."""
    across = lambda x, y: jax.nn.softmax(x + y.T, -1)  # noqa: E731
    x, y = normal(64, 1000), normal(1000, 64)
    for fused in _fused(across, x, y, l2_bytes=1 << 21):
        assert all(y.shape != array.shape for array in fused.reads)
    check(across, x, y)


def test_softmax_of_scores_that_a_cache_holds() -> None:
    """Without the products beside it, which pay for larger ones only."""
    (fused,) = _fused(_attention, *PROGRAMS["attention"][1], l2_bytes=1 << 22)
    assert [type(step).__name__ for step in fused.steps] == ["Nest", "Nest"]


def test_all_steps_of_rows_are_shared_out_together() -> None:
    """None of them would be alone."""
    program = _program(_ROWS["softmax"], normal(64, 1000)).clone()
    lower(program.module)
    made = generate(program.module, Machine())
    assert [dispatch.workgroups > 1 for dispatch in made.dispatches] == [True]


@pytest.mark.parametrize("batch", [(600,), (4, 150), (4, 160, 1)])
def test_single_rows_of_a_batch_have_factors_of_their_own(batch: tuple[int, ...]) -> None:
    """One query for each head, and scores of sampled words: what follows each other is no rows of one matrix."""
    queries = normal(*batch, 9)
    keys = normal(*(size for size in batch if size > 1), 40, 9)

    def probabilities(queries: Any, keys: Any) -> Any:
        scores = jnp.einsum("abqd,abkd->abqk" if len(batch) > 2 else "...d,...kd->...k", queries, keys)
        return jax.nn.softmax(scores), jnp.tanh(scores).sum(-1)

    check(probabilities, queries, keys)


def test_small_arrays_are_not_fused() -> None:
    assert not _fused(lambda x: jax.nn.softmax(x, -1), normal(8, 64))


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((6, 70), 2), ((420,), 1), ((2, 3, 70, 5), 3), ((1, 6, 1, 70, 1, 4), 4), ((70, 6), None), ((), None)],
)
def test_the_rows_of_a_shape(shape: tuple[int, ...], dims: int | None) -> None:
    assert Rows(6, 70).dims(shape) == dims


def test_a_place_in_flat_rows_has_no_quotient() -> None:
    start = places.counter(6) * 70 + places.counter(50)
    assert all(symbol.quotient is None for index in places.delinear(start, (6, 70)) for symbol, _ in index.terms)


_STEPS: list[Callable[[Any, Any], Any]] = [
    lambda x, w: x - x.max(-1, keepdims=True),
    lambda x, w: jnp.exp(-jnp.abs(x)),
    lambda x, w: x / (1 + jnp.abs(x).sum(-1, keepdims=True)),
    lambda x, w: x * jax.lax.rsqrt(1 + (x * x).mean(-1, keepdims=True)),
    lambda x, w: x @ w,
    lambda x, w: x + x[:, ::-1],
    lambda x, w: jnp.cumsum(x, -1) / 50,
    # The mean, because a sum leaves differences of large numbers, of which few digits are right.
    lambda x, w: x - x.mean(-1).mean(),
    # Not 0, which the largest element less itself misses by a rounding if a product is contracted with the difference.
    lambda x, w: jnp.where(x > 0.0137, x, x.min(-1, keepdims=True)),
    lambda x, w: x + jnp.roll(x, 1, 0),
    lambda x, w: x + jnp.arange(x.shape[0], dtype=x.dtype)[:, None] / 50,
]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(0, len(_STEPS) - 1), min_size=3, max_size=7),
    st.integers(33, 90),
    st.integers(32, 150),
    st.booleans(),
    st.booleans(),
)
def test_random_steps(numbers: list[int], rows: int, columns: int, batched: bool, keeps: bool) -> None:
    """Steps of rows, and some that are none, one after the other; results between them are returned as well."""

    def function(x: Any, w: Any) -> Any:
        kept = []
        for number in numbers:
            x = _STEPS[number](x, w)
            kept.append(x)
        return kept if keeps else kept[-1]

    shape = (3, rows, columns) if batched else (rows, columns)
    weights = (3, columns, columns) if batched else (columns, columns)
    function_of_all = jax.vmap(function) if batched else function
    check(function_of_all, normal(*shape), normal(*weights) / columns, tolerance=1e-4)


def test_reductions_over_no_dimension_begin_no_rows() -> None:
    """As `jnp.unique` asks whether neighbours differ in any of no further dimensions."""
    check(lambda x: jnp.unique(x, size=7, return_counts=True), np.arange(40_000, dtype=np.int32) % 11)


def test_a_long_row_alone() -> None:
    """Two arrays of a row are held at once, of three that the steps touch."""
    x = normal(40, _SMALL // 10)
    (fused,) = _fused(lambda x: jax.nn.softmax(x, -1), x)
    assert fused.block == 1 and 3 * 4 * x.shape[1] > _SMALL
