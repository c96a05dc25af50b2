"""merge-branches: equal branches are one, and each index takes what it took, judged by StableHLO's interpreter."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.merge_branches import MergeBranches
from tests.engines import interpret

X = np.array([1, -2, 3, 0.5], np.float32)
# Branches that all differ: in an operation, an operand, the order of operands, an attribute, a number, an inner loop.
BRANCHES = (
    "%0 = stablehlo.add %x, %x : tensor<4xf32>",
    "%0 = stablehlo.multiply %x, %x : tensor<4xf32>",
    "%0 = stablehlo.subtract %x, %y : tensor<4xf32>",
    "%0 = stablehlo.subtract %y, %x : tensor<4xf32>",
    "%0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>",
    "%0 = stablehlo.reverse %x, dims = [] : tensor<4xf32>",
    "%1 = stablehlo.constant dense<2.0> : tensor<4xf32>\n%0 = stablehlo.add %x, %1 : tensor<4xf32>",
    "%1 = stablehlo.constant dense<3.0> : tensor<4xf32>\n%0 = stablehlo.add %x, %1 : tensor<4xf32>",
    """%1 = stablehlo.constant dense<2.0> : tensor<4xf32>
      %2 = stablehlo.negate %1 : tensor<4xf32>
      %0 = stablehlo.add %x, %2 : tensor<4xf32>""",
    """%1 = stablehlo.constant dense<(2.0,1.0)> : tensor<4xcomplex<f32>>
      %2 = stablehlo.real %1 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
      %0 = stablehlo.add %x, %2 : tensor<4xf32>""",
    """%1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.constant dense<LESS> : tensor<i32>
      %3:2 = stablehlo.while(%k = %1, %0 = %x) : tensor<i32>, tensor<4xf32>
      cond { %4 = stablehlo.compare GT, %k, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %4 : tensor<i1> }
      do { %4 = stablehlo.constant dense<1> : tensor<i32>
        %5 = stablehlo.subtract %k, %4 : tensor<i32>
        %6 = stablehlo.add %0, %y : tensor<4xf32>
        stablehlo.return %5, %6 : tensor<i32>, tensor<4xf32> }
      %7 = stablehlo.negate %3#1 : tensor<4xf32>""",
)


def _branch(kind: int, less: int) -> str:
    body = BRANCHES[kind].replace("LESS", str(less))
    result = "%7" if "while" in body else "%0"
    return f"{{\n      {body}\n      stablehlo.return {result} : tensor<4xf32>\n    }}"


def _case(branches: list[str]) -> str:
    return f"""func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {{
    %r = "stablehlo.case"(%i) ({", ".join(branches)}) : (tensor<i32>) -> tensor<4xf32>
    return %r : tensor<4xf32> }}"""


def test_constants_of_real_and_complex_numbers_are_not_compared() -> None:
    """The bindings hand out no attribute of complex numbers."""
    real, compound = _branch(8, 0), _branch(9, 0)
    for branches in ([real, compound], [compound, real]):
        module = parse_module(_case(branches))
        PassManager([MergeBranches()]).run(module)
        (case,) = operations(module, {"stablehlo.case"})
        assert len(case.regions) == 2


@pytest.mark.parametrize("seed", range(12))
def test_each_index_takes_the_branch_that_it_took(seed: int) -> None:
    draw = random.Random(seed)
    kinds = [(draw.randrange(len(BRANCHES)), draw.randrange(2)) for _ in range(3)]
    chosen = [draw.choice(kinds) for _ in range(draw.randrange(2, 8))]
    different = {(kind, less if kind == len(BRANCHES) - 1 else 0) for kind, less in chosen}
    module = parse_module(_case([_branch(*one) for one in chosen]))
    indices = [np.array(number, np.int32) for number in (*range(len(chosen)), -1, len(chosen), 2**31 - 1, -(2**31))]
    expected = [interpret(module, X, X[::-1].copy(), index)[0] for index in indices]
    PassManager([MergeBranches()]).run(module)
    left = operations(module, {"stablehlo.case"})
    assert [len(op.regions) for op in left] == ([len(different)] if len(different) > 1 else [])
    for index, result in zip(indices, expected, strict=True):
        np.testing.assert_array_equal(interpret(module, X, X[::-1].copy(), index)[0], result)


def test_different_branches_stay() -> None:
    module = parse_module(_case([_branch(kind, less) for kind in range(len(BRANCHES)) for less in (0, 1)]))
    PassManager([MergeBranches()]).run(module)
    (op,) = operations(module, {"stablehlo.case"})
    # All kinds once, and the loop with each of its bounds.
    assert len(op.regions) == len(BRANCHES) + 1


def test_branches_are_equal_once_theirs_are_merged_and_complex_numbers_are_compared() -> None:
    module = parse_module("""func.func @main(%x: tensor<2xcomplex<f32>>, %p: tensor<i1>, %q: tensor<i1>)
      -> (tensor<2xf32>, tensor<2xf32>) {
  %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
  %d = stablehlo.constant dense<(1.0, 3.0)> : tensor<2xcomplex<f32>>
  %e = stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
  %r = "stablehlo.if"(%p) ({
    %s = "stablehlo.if"(%q) ({
      %a = stablehlo.add %x, %c : tensor<2xcomplex<f32>>
      stablehlo.return %a : tensor<2xcomplex<f32>>
    }, {
      %a = stablehlo.add %x, %e : tensor<2xcomplex<f32>>
      stablehlo.return %a : tensor<2xcomplex<f32>>
    }) : (tensor<i1>) -> tensor<2xcomplex<f32>>
    stablehlo.return %s : tensor<2xcomplex<f32>>
  }, {
    %a = stablehlo.add %x, %c : tensor<2xcomplex<f32>>
    stablehlo.return %a : tensor<2xcomplex<f32>>
  }) : (tensor<i1>) -> tensor<2xcomplex<f32>>
  %t = "stablehlo.if"(%q) ({
    %a = stablehlo.add %x, %c : tensor<2xcomplex<f32>>
    stablehlo.return %a : tensor<2xcomplex<f32>>
  }, {
    %a = stablehlo.add %x, %d : tensor<2xcomplex<f32>>
    stablehlo.return %a : tensor<2xcomplex<f32>>
  }) : (tensor<i1>) -> tensor<2xcomplex<f32>>
  %u = stablehlo.imag %r : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  %v = stablehlo.imag %t : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  return %u, %v : tensor<2xf32>, tensor<2xf32> }""")
    x, flags = np.array([1 + 2j, 3j], np.complex64), [np.array(flag) for flag in (False, True)]
    expected = [interpret(module, x, p, q) for p in flags for q in flags]
    PassManager([MergeBranches()]).run(module)
    assert len(operations(module, {"stablehlo.if"})) == 1
    found = [interpret(module, x, p, q) for p in flags for q in flags]
    np.testing.assert_array_equal(np.array(found), np.array(expected))
