"""decompose-scatter: any dimension numbers, computations and element types, judged by a scatter in numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hloforge
from hloforge import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.marks import IN_BOUNDS
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import is_made_by, operations
from hloforge.pipelines.decompose.scatter import DecomposeScatter
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret, shared_reference

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": lambda a, b: max(a, b),
    "minimum": lambda a, b: min(a, b),
    "overwrite": lambda a, b: b,
}


@dataclass
class Case:
    """One scatter; dimension numbers as in StableHLO."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    updates: tuple[int, ...]
    window_dims: list[int] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)
    batching: list[int] = field(default_factory=list)
    indices_batching: list[int] = field(default_factory=list)
    scattered: list[int] = field(default_factory=list)
    vector_dim: int = 0
    computation: str = "add"
    element: str = "i32"
    index_element: str = "i32"
    unique: bool = False

    def text(self, indices: str = "%i") -> str:
        o, i, u = (
            f"tensor<{'x'.join(map(str, [*dims, element]))}>"
            for dims, element in [
                (self.operand, self.element),
                (self.indices, self.index_element),
                (self.updates, self.element),
            ]
        )
        scalar = f"tensor<{self.element}>"
        body = f"%c = stablehlo.{self.computation} %a, %b : {scalar} stablehlo.return %c : {scalar}"
        if self.computation == "overwrite":
            body = f"stablehlo.return %b : {scalar}"
        return f"""func.func @main(%o: {o}, %i: {i}, %u: {u}) -> {o} {{
          %r = "stablehlo.scatter"(%o, {indices}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
            update_window_dims = {self.window_dims}, inserted_window_dims = {self.inserted},
            input_batching_dims = {self.batching}, scatter_indices_batching_dims = {self.indices_batching},
            scatter_dims_to_operand_dims = {self.scattered}, index_vector_dim = {self.vector_dim}>,
            unique_indices = {str(self.unique).lower()}}}> ({{
            ^bb0(%a: {scalar}, %b: {scalar}): {body} }}) : ({o}, {i}, {u}) -> {o}
          return %r : {o} }}"""

    def expected(self, operand: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        """By the text of the specification, with XLA's rule that a window partly out of bounds is skipped."""
        result = operand.copy()
        batch = [d for d in range(len(self.indices)) if d != self.vector_dim]
        update_scatter_dims = [d for d in range(len(self.updates)) if d not in self.window_dims]
        single = {*self.inserted, *self.batching}
        windowed = [d for d in range(len(self.operand)) if d not in single]
        sizes = dict(zip(windowed, [self.updates[d] for d in self.window_dims], strict=True))
        window = [sizes.get(d, 1) for d in range(len(self.operand))]
        for place in np.ndindex(*[self.indices[d] for d in batch]):
            at = dict(zip(batch, place, strict=True))
            start = [0] * len(self.operand)
            for component, d in enumerate(self.scattered):
                at[self.vector_dim] = component
                start[d] = int(indices[tuple(at[e] for e in range(len(self.indices)))])
            for d, e in zip(self.batching, self.indices_batching, strict=True):
                start[d] = at[e]
            if any(not 0 <= s <= n - w for s, n, w in zip(start, self.operand, window, strict=True)):
                continue
            for offset in product(*map(range, window)):
                source = [0] * len(self.updates)
                for d, value in zip(update_scatter_dims, place, strict=True):
                    source[d] = value
                for d, e in zip(self.window_dims, windowed, strict=True):
                    source[d] = offset[e]
                target = tuple(s + f for s, f in zip(start, offset, strict=True))
                with np.errstate(all="ignore"):
                    result[target] = BINARY[self.computation](result[target], updates[tuple(source)])
        return result


def lowered(text: str) -> Any:
    module = parse_module(text)
    PassManager([DecomposeScatter()]).run(module)
    for op in operations(module, {"stablehlo.scatter"}):
        assert IN_BOUNDS in op.attributes
    return module


def check(case: Case, operand: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    (result,) = interpret(lowered(case.text()), operand, indices, updates)
    np.testing.assert_array_equal(result, case.expected(operand, indices, updates))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Random dimension numbers: batching, inserted and windowed dimensions in every mixture."""
    rank = draw(st.integers(1, 4))
    operand = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    kinds = [draw(st.sampled_from(["window", "window", "inserted", "batching"])) for _ in range(rank)]
    batching = draw(st.permutations([d for d in range(rank) if kinds[d] == "batching"]))
    inserted = [d for d in range(rank) if kinds[d] == "inserted"]
    windowed = [d for d in range(rank) if kinds[d] == "window"]
    free = [d for d in range(rank) if d not in batching]
    scattered = draw(st.permutations(free))[: draw(st.integers(0, len(free)))]
    # Dimensions of the index array: batching ones, free ones and the vector dimension, shuffled.
    labels: list[Any] = [("batch", d) for d in batching] + [("free", i) for i in range(draw(st.integers(0, 2)))]
    labels = draw(st.permutations(labels))
    scalars = len(scattered) == 1 and draw(st.booleans())
    vector_dim = len(labels) if scalars else draw(st.integers(0, len(labels)))
    sizes = [operand[label[1]] if label[0] == "batch" else draw(st.integers(1, 6)) for label in labels]
    batch_positions = [d if d < vector_dim else d + 1 for d in range(len(labels))]
    indices = list(sizes)
    if not scalars:
        indices.insert(vector_dim, len(scattered))
    places = dict(zip(labels, batch_positions, strict=True))
    window = [draw(st.sampled_from([operand[d], draw(st.integers(1, operand[d]))])) for d in windowed]
    rank_updates = len(labels) + len(window)
    window_dims = sorted(draw(st.permutations(range(rank_updates)))[: len(window)])
    updates = [0] * rank_updates
    for d, size in zip(window_dims, window, strict=True):
        updates[d] = size
    for d, size in zip([d for d in range(rank_updates) if d not in window_dims], sizes, strict=True):
        updates[d] = size
    return Case(
        operand,
        tuple(indices),
        tuple(updates),
        window_dims,
        inserted,
        sorted(batching),
        [places[("batch", d)] for d in sorted(batching)],
        list(scattered),
        vector_dim,
        draw(st.sampled_from(sorted(BINARY))),
    )


@settings(max_examples=250, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), st.randoms(use_true_random=False))
def test_any_dimension_numbers(case: Case, random: Any) -> None:
    numbers = np.random.default_rng(random.randrange(1 << 30))
    indices = numbers.integers(-1, 4, case.indices).astype(np.int32)
    operand, updates = (numbers.integers(-9, 9, dims).astype(np.int32) for dims in (case.operand, case.updates))
    check(case, operand, indices, updates)


ROWS = Case((6, 3), (7, 1), (7, 3), [1], [0], scattered=[0], vector_dim=1)
ORDERS = {
    "mixed": [2, 6, 2, -1, 0, 2, 9],
    "none inside": [-1, 6, 100, -7, 6, 6, 6],
    "first outside": [9, -4, 5, 9, 5, 1, -1],
    "all inside": [0, 5, 5, 4, 0, 0, 1],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("computation", BINARY)
@pytest.mark.parametrize("element", ["f32", "i8", "ui8", "i64", "ui32", "f64", "f16"])
def test_element_types_and_computations(element: str, computation: str, order: str) -> None:
    case = Case(**{**vars(ROWS), "element": element, "computation": computation})
    random = np.random.default_rng(0)
    dtype = element_type(element).dtype
    operand, updates = (random.integers(0, 100, dims).astype(dtype) for dims in (case.operand, case.updates))
    check(case, operand, np.array(ORDERS[order], np.int32)[:, None], updates)


@pytest.mark.parametrize(
    ("element", "values"),
    [
        ("i64", [0, 1 << 32, -(1 << 32), 5, 1 << 62, -(1 << 63), 1]),
        ("ui32", [0, 1 << 31, (1 << 32) - 1, 5, 6, 1, 2]),
        ("ui64", [0, 1 << 32, (1 << 64) - 1, 5, 1 << 63, 1, 2]),
        ("ui8", [0, 255, 128, 5, 6, 1, 2]),
    ],
)
def test_an_index_out_of_range_stays_so_in_every_index_type(element: str, values: list[int]) -> None:
    case = Case(**{**vars(ROWS), "index_element": element})
    indices = np.array(values, element_type(element).dtype)[:, None]
    check(case, np.zeros((6, 3), np.int32), indices, np.arange(21, dtype=np.int32).reshape(7, 3))


def test_an_update_out_of_bounds_leaves_special_values_as_they_are() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    for computation in ("add", "multiply", "maximum", "minimum", "overwrite", "subtract"):
        case = Case((6,), (8, 1), (8,), [], [0], scattered=[0], vector_dim=1, element="f32", computation=computation)
        indices = np.full((8, 1), -1, np.int32)
        (result,) = interpret(lowered(case.text()), special, indices, np.full(8, np.nan, np.float32))
        np.testing.assert_array_equal(result.view(np.int32), special.view(np.int32))


PAIR = """func.func @main(
    %v: tensor<5xf32>, %k: tensor<5xi32>, %i: tensor<6x1xi32>, %x: tensor<6xf32>, %n: tensor<6xi32>) ->
    (tensor<5xf32>, tensor<5xi32>) {
  %r:2 = "stablehlo.scatter"(%v, %k, %i, %x, %n) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
      %0 = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %1 = stablehlo.select %0, %a, %c : tensor<i1>, tensor<f32>
      %2 = stablehlo.select %0, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<5xf32>, tensor<5xi32>, tensor<6x1xi32>, tensor<6xf32>, tensor<6xi32>)
     -> (tensor<5xf32>, tensor<5xi32>)
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xi32> }"""


@pytest.mark.parametrize("wide", [False, True])
def test_operands_that_the_computation_mixes(wide: bool) -> None:
    text = PAIR.replace("f32", "f64") if wide else PAIR
    values = np.array([1, 2, 3, 4, 5], np.float64 if wide else np.float32)
    updates = np.array([9, 8, 7, -1, 0, np.inf], values.dtype)
    positions, numbers = np.arange(5, dtype=np.int32), np.arange(10, 16, dtype=np.int32)
    indices = np.array([1, 1, 5, 0, -1, 4], np.int32)[:, None]
    first, second = interpret(lowered(text), values, positions, indices, updates, numbers)
    np.testing.assert_array_equal(first, [1, 9, 3, 4, np.inf])
    np.testing.assert_array_equal(second, [0, 10, 2, 3, 15])


def test_operands_that_the_computation_keeps_apart_are_scattered_one_by_one() -> None:
    text = PAIR.replace("stablehlo.return %1, %2", "%s = stablehlo.add %b, %d : tensor<i32> stablehlo.return %c, %s")
    module = lowered(text)
    assert [len(op.operands) for op in operations(module, {"stablehlo.scatter"})] == [3, 3]


def test_a_computation_with_a_branch_runs_element_by_element() -> None:
    text = ROWS.text().replace(
        "%c = stablehlo.add %a, %b : tensor<i32>",
        """%p = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
           %c = "stablehlo.if"(%p) ({ stablehlo.return %b : tensor<i32> }, { stablehlo.return %a : tensor<i32> })
             : (tensor<i1>) -> tensor<i32>""",
    )
    case = Case(**{**vars(ROWS), "computation": "maximum"})
    random = np.random.default_rng(0)
    operand, updates = (random.integers(-9, 9, dims).astype(np.int32) for dims in (case.operand, case.updates))
    indices = np.array(ORDERS["mixed"], np.int32)[:, None]
    (result,) = interpret(lowered(text), operand, indices, updates)
    np.testing.assert_array_equal(result, case.expected(operand, indices, updates))


def test_indices_known_to_be_inside_are_not_checked() -> None:
    constant = ROWS.text("%k").replace("{\n", "{ %k = stablehlo.constant dense<3> : tensor<7x1xi32>\n", 1)
    assert not operations(lowered(constant), {"stablehlo.compare"})
    outside = constant.replace("dense<3>", "dense<6>")
    assert operations(lowered(outside), {"stablehlo.compare"})


APPLIED = """
func.func @main(%x: tensor<4x3xf32>, %i: tensor<2x1xi32>, %n: tensor<4xi32>) -> (tensor<4x3xf32>, tensor<4xi32>) {
  %u = stablehlo.constant dense<0.0> : tensor<2x3xf32>
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.sine %a : tensor<f32>
      %t = stablehlo.round_nearest_afz %a : tensor<f32>
      %v = stablehlo.add %s, %t : tensor<f32>
      stablehlo.return %v : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %w = stablehlo.constant dense<3> : tensor<2xi32>
  %m = "stablehlo.scatter"(%n, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %p = stablehlo.popcnt %a : tensor<i32>
      %q = stablehlo.count_leading_zeros %b : tensor<i32>
      %v = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %v : tensor<i32>
  }) : (tensor<4xi32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<4xi32>
  return %r, %m : tensor<4x3xf32>, tensor<4xi32>
}"""


def test_computations_that_iree_takes_on_arrays_alone() -> None:
    x = np.linspace(-4, 5, 12, dtype=np.float32).reshape(4, 3)
    applied, counted = hloforge.compile(APPLIED)(x, np.array([[2], [7]], np.int32), np.arange(4, dtype=np.int32) + 4)
    expected = x.copy()
    expected[2] = np.sin(x[2]) + np.round(x[2])
    np.testing.assert_allclose(applied, expected, rtol=1e-6)
    np.testing.assert_array_equal(counted, [4, 5, 2 + 30, 7])


def test_complex_numbers_by_elements() -> None:
    """As CUDA gets it, where IREE crashes on any scatter of complex numbers; an index is out of bounds."""
    case = Case((6, 3), (4, 1), (4, 3), [1], [0], scattered=[0], vector_dim=1, element="complex<f32>")
    module = parse_module(case.text())
    PassManager([DecomposeScatter(complex_by_elements=True)]).run(module)
    assert not operations(module, {"stablehlo.scatter"})
    random = np.random.default_rng(0)
    operand, updates = (random.integers(-9, 9, (rows, 3)) + 1j * random.integers(-9, 9, (rows, 3)) for rows in (6, 4))
    expected = operand.copy()
    np.add.at(expected, [2, 5, 2], updates[:3])
    # StableHLO's interpreter crashes on it.
    run = shared_reference("xla").prepare(hloforge.read(str(module)))
    indices = np.array([[2], [5], [2], [6]], np.int32)
    result = run(operand.astype(np.complex64), indices, updates.astype(np.complex64))
    np.testing.assert_array_equal(result, expected)
    assert b".target sm_80" in hloforge.compile(case.text(), "cuda:sm_80").vmfb


@pytest.mark.wide(2)
@pytest.mark.parametrize("combine", ["return %v", "maximum", "add"])
def test_unsigned_integers_in_loops_for_gpus(combine: str) -> None:
    """IREE refuses them ("unresolved materialization"); the last index is out of bounds."""
    made = "" if combine == "return %v" else f"%w = stablehlo.{combine} %o, %v : tensor<ui8>\n"
    text = f"""func.func @main(%x: tensor<4x3xui8>, %u: tensor<3xui8>) -> tensor<4x3xui8> {{
      %zero = stablehlo.constant dense<2> : tensor<i32>
      %r:2 = stablehlo.while(%n = %zero, %c = %x) : tensor<i32>, tensor<4x3xui8>
      cond {{
        %last = stablehlo.constant dense<5> : tensor<i32>
        %b = stablehlo.compare LT, %n, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %b : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %at = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %s = "stablehlo.scatter"(%c, %at, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
        ^bb0(%o: tensor<ui8>, %v: tensor<ui8>):
          {made}stablehlo.return {"%w" if made else "%v"} : tensor<ui8>
        }}) : (tensor<4x3xui8>, tensor<1xi32>, tensor<3xui8>) -> tensor<4x3xui8>
        %m = stablehlo.add %n, %one : tensor<i32>
        stablehlo.return %m, %s : tensor<i32>, tensor<4x3xui8>
      }}
      return %r#1 : tensor<4x3xui8> }}"""
    x, u = np.arange(100, 244, 12, dtype=np.uint8).reshape(4, 3), np.array([250, 0, 130], np.uint8)
    expected = x.copy()
    expected[2:] = {"maximum": np.maximum(x[2:], u), "add": x[2:] + u}.get(combine, u)
    module = parse_module(text)
    PassManager([DecomposeScatter(unsigned_as_signed=True)]).run(module)
    (scatter,) = operations(module, {"stablehlo.scatter"})
    assert str(scatter.results[0].type) == "tensor<4x3xi8>"
    if made:  # where the computation reads what is around it, XLA does not take it
        np.testing.assert_array_equal(shared_reference("xla").prepare(hloforge.read(str(module)))(x, u), expected)
    for target in ("vulkan", "cuda:sm_80"):
        assert hloforge.compile(text, target).vmfb


@pytest.mark.wide(2)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("made", ["constant", "gathered"])
def test_updates_are_made_apart_for_cuda(made: str, bits: int) -> None:
    """IREE does not end with dispatches that compute and scatter them: ``habits`` 920012, ``jax`` 995128."""
    integer = np.dtype(f"int{bits}")
    with hloforge.Builder(made) as builder:
        x, i, u = (builder.parameter(n, shape) for n, shape in enumerate((f"s{bits}[4]", "s32[3,1]", f"s{bits}[3]")))
        numbers = ops.ScatterDimensionNumbers([], [0], [0], 1)
        updates = ops.constant(np.ones(3, integer)) if made == "constant" else u
        combine = ops.add if made == "constant" else lambda _, new: new
        program = builder.build(ops.scatter(x, i, updates, combine, numbers))
    copy = program.clone()
    PassManager([DecomposeScatter(updates_apart=True)]).run(copy.module)
    (scatter,) = operations(copy.module, {"stablehlo.scatter"})
    assert is_made_by(scatter.operands[2], "stablehlo.optimization_barrier")
    arguments = np.arange(4, dtype=integer), np.array([[1], [7], [1]], np.int32), np.array([5, 6, 7], integer)
    (got,), (want,) = interpret(copy.module, *arguments), interpret(program.module, *arguments)
    np.testing.assert_array_equal(got, want)
    assert program.compile("cuda:sm_80").vmfb


def test_computations_may_leave_the_updates_unread() -> None:
    """The array itself is returned too: it came out changed."""
    x, updates = (np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32) for seed in range(2))
    with hloforge.Builder("unread") as builder:
        array, update = builder.parameter(0, "f32[3,4]"), builder.parameter(1, "f32[3,4]")
        scattered = [
            ops.scatter(
                array,
                ops.constant([[2], [0], [1]], "s32"),
                update,
                computation,
                update_window_dims=[1],
                inserted_window_dims=[0],
                scatter_dims_to_operand_dims=[0],
                unique_indices=True,
            )
            for computation in (lambda *_: ops.constant(7, "f32"), lambda old, _: ops.neg(old))
        ]
        program = builder.build((*scattered, array))
    sevens, negated, same = program.compile("cpu")(x, updates)
    np.testing.assert_array_equal(sevens, np.full_like(x, 7))
    np.testing.assert_array_equal(negated, -x)
    np.testing.assert_array_equal(same, x)
