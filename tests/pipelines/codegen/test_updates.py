"""Loops whose carries are written in place, and updates that read what they change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.kernel_program import KernelProgram
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.framework.machine import AVX2
from tests.pipelines.codegen.whole_programs import check

VECTOR = "tensor<6xf32>"
NUMBERS = np.arange(6, dtype=np.float32)


def loop(body: str, results: Sequence[str], types: Sequence[str], times: int = 3) -> str:
    """A loop that counts in ``%i`` and carries the program's parameters as ``%c0``, ``%c1`` …"""
    names = [f"%c{number}" for number in range(len(types))]
    parameters = ", ".join(f"%p{number}: {type_}" for number, type_ in enumerate(types))
    carries = ", ".join(f"{name} = %p{number}" for number, name in enumerate(names))
    return f"""func.func @main({parameters}) -> ({", ".join(types)}) {{
      %start = stablehlo.constant dense<0> : tensor<i32>
      %times = stablehlo.constant dense<{times}> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:{len(types) + 1} = stablehlo.while(%i = %start, {carries}) : tensor<i32>, {", ".join(types)}
        cond {{
          %more = stablehlo.compare LT, %i, %times : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %more : tensor<i1>
        }} do {{
          %next = stablehlo.add %i, %one : tensor<i32>
          {body}
          stablehlo.return %next, {", ".join(results)} : tensor<i32>, {", ".join(types)}
        }}
      return {", ".join(f"%r#{number + 1}" for number in range(len(types)))} : {", ".join(types)}
    }}"""


def scatter(operand: str, indices: str, updates: str, element: str) -> str:
    """Elements added to six ones."""
    return f""""stablehlo.scatter"({operand}, {indices}, {updates}) ({{
      ^bb0(%old: tensor<{element}>, %new: tensor<{element}>):
        %sum = stablehlo.add %old, %new : tensor<{element}>
        stablehlo.return %sum : tensor<{element}>
      }}) {{
        scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
      }} : (tensor<6x{element}>, tensor<6x1xi32>, tensor<6x{element}>) -> tensor<6x{element}>"""


@pytest.mark.parametrize(
    ("body", "results"),
    [
        (f"%a = stablehlo.add %c1, %c1 : {VECTOR}\n%b = stablehlo.negate %c0 : {VECTOR}", ("%a", "%b")),
        (
            f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
            %a = stablehlo.add %c1, %c1 : {VECTOR}
            %sum = stablehlo.reduce(%c0 init: %zero) applies stablehlo.add across dimensions = [0]
              : ({VECTOR}, tensor<f32>) -> tensor<f32>
            %sums = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<f32>) -> {VECTOR}
            %b = stablehlo.add %sums, %c1 : {VECTOR}""",
            ("%a", "%b"),
        ),
        (
            f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
            %part = stablehlo.slice %c0 [0:5] : ({VECTOR}) -> tensor<5xf32>
            %a = stablehlo.pad %part, %zero, low = [0], high = [1], interior = [0]
              : (tensor<5xf32>, tensor<f32>) -> {VECTOR}
            %b = stablehlo.add %c0, %c1 : {VECTOR}""",
            ("%a", "%b"),
        ),
        ("", ("%c1", "%c0")),
    ],
)
def test_carries_are_read_before_any_is_written(body: str, results: Sequence[str]) -> None:
    check(loop(body, results, (VECTOR, VECTOR)), NUMBERS, NUMBERS * 10)


def test_scatter_adds_an_array_to_itself() -> None:
    """Once in memory of its own, and once in that of a carry."""
    places = np.array([[1], [2], [3], [4], [5], [0]], np.int32)
    program = f"""func.func @main(%x: {VECTOR}, %places: tensor<6x1xi32>) -> {VECTOR} {{
      %a = stablehlo.add %x, %x : {VECTOR}
      %r = {scatter("%a", "%places", "%a", "f32")}
      return %r : {VECTOR}
    }}"""
    check(program, NUMBERS, places)
    body = f"%a = {scatter('%c0', '%c1', '%c0', 'f32')}"
    check(loop(body, ("%a", "%c1"), (VECTOR, "tensor<6x1xi32>")), NUMBERS, places)


def test_scatter_changes_its_own_indices() -> None:
    program = f"""func.func @main(%x: tensor<6xi32>, %u: tensor<6xi32>) -> tensor<6xi32> {{
      %a = stablehlo.add %x, %x : tensor<6xi32>
      %places = stablehlo.reshape %a : (tensor<6xi32>) -> tensor<6x1xi32>
      %r = {scatter("%a", "%places", "%u", "i32")}
      return %r : tensor<6xi32>
    }}"""
    check(program, np.array([1, 0, 2, 1, 0, 2], np.int32), np.ones(6, np.int32))


def test_arrays_of_nothing() -> None:
    program = """func.func @main(%x: tensor<2x0x3xf32>, %y: tensor<0xf32>, %z: tensor<f32>)
        -> (tensor<0xf32>, tensor<3x0xf32>, tensor<6xf32>) {
      %a = stablehlo.reshape %x : (tensor<2x0x3xf32>) -> tensor<0xf32>
      %b = stablehlo.reshape %x : (tensor<2x0x3xf32>) -> tensor<3x0xf32>
      %c = stablehlo.pad %y, %z, low = [3], high = [3], interior = [1] : (tensor<0xf32>, tensor<f32>) -> tensor<6xf32>
      return %a, %b, %c : tensor<0xf32>, tensor<3x0xf32>, tensor<6xf32>
    }"""
    check(program, np.zeros((2, 0, 3), np.float32), np.zeros(0, np.float32), np.float32(3))


def test_algorithms_in_loops_read_repeated_numbers() -> None:
    """The number is a constant outside of the loop, where common subexpressions go."""
    body = f"""%two = stablehlo.constant dense<2.0> : {VECTOR}
      %a = {scatter("%c0", "%c1", "%two", "f32")}"""
    places = np.array([[1], [2], [3], [4], [5], [0]], np.int32)
    check(loop(body, ("%a", "%c1"), (VECTOR, "tensor<6x1xi32>")), NUMBERS, places)


def test_reductions_along_nothing_stay_apart() -> None:
    program = """func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %same = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = []
        : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      return %same, %sum : tensor<3xf32>, tensor<f32>
    }"""
    check(program, np.array([1, 2, 3], np.float32))


def test_a_loop_reads_no_more_arrays_than_a_kernel_has() -> None:
    """Sums of many arrays that are in memory, which would all be one loop."""
    count, lines = 30, []
    parameters = ", ".join(f"%p{number}: {VECTOR}" for number in range(count))
    for number in range(0, count, 6):
        one, *others = (f"%p{number + place}" for place in range(6))
        for place, other in enumerate(others):
            lines.append(f"%s{number}_{place} = stablehlo.add {one}, {other} : {VECTOR}")
            one = f"%s{number}_{place}"
    names = [f"%s{number}_4" for number in range(0, count, 6)]
    check(
        f"""func.func @main({parameters}) -> ({", ".join([VECTOR] * len(names))}) {{
          {chr(10).join(lines)}
          return {", ".join(names)} : {", ".join([VECTOR] * len(names))}
        }}""",
        *(NUMBERS + number for number in range(count)),
    )


def test_what_reads_an_array_before_its_update_runs_in_the_order_of_the_program() -> None:
    """Several readers have to run before one update. Compilations of one program gave different kernels."""
    cube, sums = "tensor<6x7x8xf32>", ("tensor<6x7xf32>", "tensor<6x8xf32>", "tensor<7x8xf32>", "tensor<6xf32>")
    body = f"""%zero = stablehlo.constant dense<0> : tensor<i32>
        %none = stablehlo.constant dense<0.0> : tensor<f32>
        %part = stablehlo.constant dense<2.0> : tensor<1x7x8xf32>
        %new = stablehlo.dynamic_update_slice %c0, %part, %i, %zero, %zero
          : ({cube}, tensor<1x7x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {cube}
    """
    for number, (type_, dims) in enumerate(zip(sums, ("2", "1", "0", "1, 2"), strict=True)):
        body += f"""%s{number} = stablehlo.reduce(%c0 init: %none) applies stablehlo.add across dimensions = [{dims}]
          : ({cube}, tensor<f32>) -> {type_}\n"""
    program = hloforge.as_program(loop(body, ["%new", "%s0", "%s1", "%s2", "%s3"], [cube, *sums]))

    def kernels() -> KernelProgram:
        copy = program.clone()
        lower(copy.module)
        return generate(copy.module, AVX2)

    made = [kernels() for _ in range(8)]
    assert all(one == made[0] for one in made)
