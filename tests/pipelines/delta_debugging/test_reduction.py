"""Parts of programs, smaller sizes, simpler operations: what bisect searches with, judged by an interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import Error
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.delta_debugging.edits import Resize, edits, resizes
from hloforge.pipelines.delta_debugging.outline import body, computing, outline, places
from hloforge.pipelines.delta_debugging.search import minimized
from hloforge.runtime.reference.engines import reference

CHAIN = """
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<4xf32>, tensor<4x6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.add %x, %y : tensor<4x6xf32>
  %b = stablehlo.abs %a : tensor<4x6xf32>
  %c = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>)
    -> tensor<4xf32>
  %d = stablehlo.multiply %b, %y : tensor<4x6xf32>
  return %c, %d : tensor<4xf32>, tensor<4x6xf32>
}
"""

LOOP = """
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<3xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.cosine %v : tensor<3xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<3xf32>
    }
  return %r#1 : tensor<3xf32>
}
"""

X, Y = (np.random.default_rng(seed).standard_normal((4, 6)).astype(np.float32) for seed in (0, 1))


def run(program: Program, *arguments: Any) -> Any:
    return reference("interpreter", isolated=False).prepare(program)(*arguments)


def named(program: Program, name: str) -> int:
    return next(number for number, op in enumerate(body(program)) if op.name == f"stablehlo.{name}")


def test_a_part_takes_what_it_lacks_as_parameters() -> None:
    program = read(CHAIN)
    add, multiply = named(program, "add"), named(program, "multiply")
    part = outline(program, {multiply})
    assert [op.name for op in body(part.program)] == ["stablehlo.multiply"]
    assert part.parameters == ((-1, 1), (named(program, "abs"), 0))
    np.testing.assert_array_equal(run(part.program, Y, np.abs(X + Y)), np.abs(X + Y) * Y)
    # A sum that nothing in the part uses is returned; the program is left as it was.
    both = outline(program, {add, multiply})
    assert both.results == ((add, 0), (multiply, 0))
    assert len(body(program)) == 5


def test_a_part_keeps_its_constants_and_its_regions() -> None:
    program = read(CHAIN)
    part = outline(program, {named(program, "reduce")})
    assert [op.name for op in body(part.program)] == ["stablehlo.constant", "stablehlo.reduce"]
    np.testing.assert_allclose(run(part.program, X), X.sum(1), rtol=1e-5)


def test_all_inner_values_can_be_returned() -> None:
    program = read(CHAIN)
    part = outline(program, computing(program), results=places(program))
    total, positive, rows, product = run(part.program, X, Y)
    np.testing.assert_array_equal(total, X + Y)
    np.testing.assert_array_equal(positive, np.abs(X + Y))
    np.testing.assert_allclose(rows, np.abs(X + Y).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(product, np.abs(X + Y) * Y)


def test_values_that_a_region_takes_from_outside_become_parameters() -> None:
    program = read(LOOP)
    part = outline(program, {named(program, "while")})
    assert part.parameters == ((-1, 0), (-1, 1))
    np.testing.assert_allclose(run(part.program, X[0, :3], np.int32(2)), np.cos(np.cos(X[0, :3])), rtol=1e-5)


def test_a_part_that_returns_nothing_is_an_error() -> None:
    program = read(CHAIN)
    with pytest.raises(Error, match="returns nothing"):
        outline(program, set())


def test_a_loop_becomes_one_iteration() -> None:
    program = read(LOOP)
    iteration = next(edit for edit in edits(program) if edit.what.startswith("one iteration"))
    changed = iteration(program)
    assert changed is not None
    assert "stablehlo.while" not in {op.name for op in operations(changed.module)}
    np.testing.assert_allclose(run(changed, X[0, :3], np.int32(5)), np.cos(X[0, :3]), rtol=1e-5)


def test_every_edit_gives_a_valid_program_or_none() -> None:
    for text, arguments in ((CHAIN, (X, Y)), (LOOP, (X[0, :3], np.int32(0)))):
        program = read(text)
        made = [changed for edit in edits(program) if (changed := edit(program)) is not None]
        assert made
        for changed in made:
            changed.module.operation.verify()
        assert run(made[-1], *arguments) is not None


def test_sizes_shrink_where_the_operations_allow_it() -> None:
    program = read(CHAIN)
    smaller = Resize(6, 2, False)(program)
    assert smaller is not None
    rows, product = run(smaller, X[:, :2], Y[:, :2])
    np.testing.assert_allclose(rows, np.abs((X + Y)[:, :2]).sum(1), rtol=1e-5)
    assert product.shape == (4, 2)
    assert {edit.size for edit in resizes(program)} == {4, 6}


def test_sizes_in_attributes_shrink_along() -> None:
    text = """
func.func @main(%x: tensor<8xf32>) -> tensor<16xf32> {
  %s = stablehlo.slice %x [0:8] : (tensor<8xf32>) -> tensor<8xf32>
  %r = stablehlo.concatenate %s, %x, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %r : tensor<16xf32>
}
"""
    program = read(text)
    # Half of one size alone fits no other operation.
    assert Resize(8, 4, False)(program) is None
    alone = outline(program, {0}).program
    smaller = Resize(8, 4, True)(alone)
    assert smaller is not None
    np.testing.assert_array_equal(run(smaller, X[0, :4]), X[0, :4])


def test_delta_debugging_finds_the_items_that_matter() -> None:
    asked: list[list[int]] = []

    def holds(part: list[int]) -> bool:
        asked.append(part)
        return {3, 11, 12} <= set(part)

    assert minimized(list(range(40)), holds) == [3, 11, 12]
    assert all(asked), "an empty part is never asked about"
    assert minimized([7], lambda part: False) == [7]
