"""How kernels are written: the arrays that they bind, and which of LLVM's passes they ask for."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.kernel_program import FEW_PASSES, KernelProgram
from hloforge.pipelines.codegen.kernel_writer import MOST_BINDINGS
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.runtime.compile.targets import parse_targets
from tests.pipelines.codegen.whole_programs import check

_PARTS = MOST_BINDINGS + 2


def kernels_of(text: str) -> KernelProgram:
    module = hloforge.read(text.encode()).module
    lower(module)
    return generate(module, parse_targets("cpu")[0].machine)


def sums_beside_each_other() -> str:
    """More sums in memory than a dispatch can bind, all of which one loop reads."""
    types = ", ".join(["tensor<7xf32>"] * _PARTS)
    lines = []
    for number in range(_PARTS):
        lines.append(
            f"""%s{number} = stablehlo.slice %x [{number}:{number + 2}, 0:7]
              : (tensor<{_PARTS + 1}x7xf32>) -> tensor<2x7xf32>
            %r{number} = stablehlo.reduce(%s{number} init: %zero) applies stablehlo.add across dimensions = [0]
              : (tensor<2x7xf32>, tensor<f32>) -> tensor<7xf32>"""
        )
    names = ", ".join(f"%r{number}" for number in range(_PARTS))
    return f"""func.func @main(%x: tensor<{_PARTS + 1}x7xf32>) -> tensor<{_PARTS * 7}xf32> {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      {"".join(line + chr(10) for line in lines)}
      %all = stablehlo.concatenate {names}, dim = 0 : ({types}) -> tensor<{_PARTS * 7}xf32>
      return %all : tensor<{_PARTS * 7}xf32>
    }}"""


def test_names_say_what_kernels_compute() -> None:
    made = kernels_of("""func.func @main(%x: tensor<60x50xf32>, %y: tensor<50x40xf32>) -> tensor<60xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<60x50xf32>, tensor<50x40xf32>) -> tensor<60x40xf32>
      %s = "stablehlo.sort"(%p) <{dimension = 1 : i64}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      }) : (tensor<60x40xf32>) -> tensor<60x40xf32>
      %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<60x40xf32>, tensor<f32>) -> tensor<60xf32>
      return %r : tensor<60xf32>
    }""")
    assert made.names == ("kernel_0_dot_general_sort_reduce",)
    assert [made.name(one.kernel) for one in made.dispatches] == list(made.names)


def test_more_arrays_than_bindings() -> None:
    text = sums_beside_each_other()
    made = kernels_of(text)
    assert all(len(dispatch.bindings) <= MOST_BINDINGS for dispatch in made.dispatches)
    assert max(kernel.count("%binding") for kernel in made.kernels) > MOST_BINDINGS
    check(text, np.arange((_PARTS + 1) * 7, dtype=np.float32).reshape(-1, 7))


@pytest.mark.parametrize("count", [MOST_BINDINGS // 2, MOST_BINDINGS, 2 * MOST_BINDINGS + 5])
def test_more_arguments_and_results_than_bindings(count: int) -> None:
    """A loop is one kernel: what it cannot bind is copied to and from one buffer, different sizes each to its place."""
    kinds = [f"tensor<{number % 5 + 1}xf32>" for number in range(count)]
    names, carried = ([f"%{letter}{number}" for number in range(count)] for letter in "xc")
    given = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    starts = ", ".join(f"{new} = {old}" for new, old in zip(carried, names, strict=True))
    sums = "\n".join(f"%n{number} = stablehlo.add %c{number}, %c{number} : {kinds[number]}" for number in range(count))
    results, all_kinds = ", ".join(f"%n{number}" for number in range(count)), ", ".join(kinds)
    text = f"""func.func @main({given}) -> ({all_kinds}) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %w:{count + 1} = stablehlo.while(%i = %zero, {starts}) : tensor<i32>, {all_kinds}
      cond {{
        %three = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        {sums}
        stablehlo.return %next, {results} : tensor<i32>, {all_kinds}
      }}
      return {", ".join(f"%w#{number + 1}" for number in range(count))} : {all_kinds}
    }}"""
    assert all(len(dispatch.bindings) <= MOST_BINDINGS for dispatch in kernels_of(text).dispatches)
    check(text, *(np.arange(number % 5 + 1, dtype=np.float32) + number for number in range(count)))


@pytest.mark.parametrize(
    ("operation", "has_few"),
    [
        ("stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({0}, {0}) -> {0}", True),
        ("stablehlo.add %a, %b : {0}", False),
    ],
)
def test_passes_of_llvm(operation: str, *, has_few: bool) -> None:
    """Loops of vectors of our own need no loop passes; others become vectors by them."""
    kind = "tensor<64x64xf32>"
    text = f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{ %r = {operation.format(kind)}\n return %r : {kind} }}"
    (kernel,) = kernels_of(text).kernels
    assert kernel.startswith(FEW_PASSES) == has_few


def test_a_long_body_is_not_written_out() -> None:
    """LLVM's time grows with it: seven logarithms stay a loop, seven products do not."""
    for name, is_loop in (("log_plus_one", True), ("negate", False)):
        text = f"""func.func @main(%x: tensor<30x7xf32>) -> tensor<30xf32> {{
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %y = stablehlo.{name} %x : tensor<30x7xf32>
          %r = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<30x7xf32>, tensor<f32>) -> tensor<30xf32>
          return %r : tensor<30xf32>
        }}"""
        (kernel,) = kernels_of(text).kernels
        assert ("llvm.loop.unroll.full" not in kernel) == is_loop


@pytest.mark.parametrize(("columns", "is_shared"), [(20, False), (2048, True)])
def test_rows_are_not_cut_into_less_than_lines_of_the_cache(columns: int, is_shared: bool) -> None:
    """Each workgroup would read all of them for two or three numbers."""
    # Products are not cut into parts of rows, which workgroups would share.
    rows = (1 << 21) // columns
    text = f"""func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{columns}xf32> {{
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %y = stablehlo.multiply %x, %x : tensor<{rows}x{columns}xf32>
      %r = stablehlo.reduce(%y init: %one) applies stablehlo.multiply across dimensions = [0]
        : (tensor<{rows}x{columns}xf32>, tensor<f32>) -> tensor<{columns}xf32>
      return %r : tensor<{columns}xf32> }}"""
    (dispatch,) = kernels_of(text).dispatches
    assert (dispatch.workgroups > 1) == is_shared


def test_an_operation_without_a_result_is_refused() -> None:
    """It would have no step, and its effect would be lost without a word."""
    module = hloforge.read(b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      stablehlo.custom_call @effect(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
      return %x : tensor<4xf32> }""").module
    with pytest.raises(RefusedError, match="which has no result"):
        generate(module, parse_targets("cpu")[0].machine)


def test_an_operation_with_several_results_that_has_no_code_is_refused() -> None:
    module = hloforge.read(b"""func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
      %0:2 = "stablehlo.all_gather"(%x, %x) <{all_gather_dim = 0 : i64,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
        : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
      return %0#1 : tensor<8xf32> }""").module
    with pytest.raises(RefusedError, match="all_gather"):
        generate(module, parse_targets("cpu")[0].machine)
