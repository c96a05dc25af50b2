"""legalize-long-chains: barriers in deep elementwise expressions, and none elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.legalize.long_chains import LegalizeLongChains

ARRAY = "tensor<64xf32>"


def chain(count: int, array: str = ARRAY) -> str:
    """x + y, times y, minus y, maximum of that and y, and so on."""
    kinds = ("add", "multiply", "subtract", "maximum")
    lines = [f"%v{n} = stablehlo.{kinds[n % 4]} %v{n - 1}, %y : {array}" for n in range(1, count + 1)]
    head = f"func.func @main(%v0: {array}, %y: {array}) -> {array} {{"
    return "\n".join([head, *lines, f"return %v{count} : {array}", "}"])


def barriers(text: str, longest: int = 512) -> list[str]:
    """The names of what barriers hold."""
    module = read(text).module
    LegalizeLongChains(longest).run(module)
    module.operation.verify()
    return [op.operands[0].get_name() for op in operations(module, {"stablehlo.optimization_barrier"})]


@pytest.mark.parametrize(("count", "expected"), [(512, 0), (513, 1), (1024, 1), (1025, 2), (2000, 3)])
def test_a_barrier_at_every_512th_operation(count: int, expected: int) -> None:
    assert len(barriers(chain(count))) == expected


def test_long_programs_that_are_not_deep_are_left_alone() -> None:
    lines = [f"%v{n} = stablehlo.add %x, %x : {ARRAY}" for n in range(2000)]
    assert not barriers("\n".join([f"func.func @main(%x: {ARRAY}) -> {ARRAY} {{", *lines, f"return %v0 : {ARRAY} }}"]))


def test_what_computes_rows_begins_anew() -> None:
    sort = f"""%v150 = "stablehlo.sort"(%v149) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }}) {{dimension = 0 : i64}} : ({ARRAY}) -> {ARRAY}"""
    text = chain(300).replace(f"%v150 = stablehlo.subtract %v149, %y : {ARRAY}", sort)
    assert sort in text
    assert not barriers(text, longest=160)


def test_a_value_that_many_pieces_read_is_held_once() -> None:
    text = chain(40).replace(", %y :", ", %s :").replace("{\n", f"{{\n%s = stablehlo.add %y, %y : {ARRAY}\n", 1)
    found = barriers(text, longest=10)
    assert "%0" in found
    assert len(found) == len(set(found)) == 5


def test_arrays_of_dynamic_sizes_have_none() -> None:
    assert not barriers(chain(40, "tensor<?xf32>"), longest=10)


def test_results() -> None:
    x, y = np.random.default_rng(0).uniform(0.5, 1, (2, 64)).astype(np.float32)
    expected = x
    for number in range(1, 1201):
        expected = (np.add, np.multiply, np.subtract, np.maximum)[number % 4](expected, y)
    np.testing.assert_array_equal(hloforge.compile(chain(1200), cache=False).load()(x, y), expected)
