"""Loops whose arrays nobody reads, and carries that only make themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

import hloforge
from tests.pipelines.codegen.whole_programs import check, compiled

_ROW = "tensor<3xi32>"


@st.composite
def _loops(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int]:
    """For each carry those that it is made of, which carries are returned, and how deep the loop stands in others."""
    count = draw(st.integers(1, 5))
    numbers = st.integers(0, count - 1)
    made_of = [draw(st.lists(numbers, max_size=3)) for _ in range(count)]
    return made_of, draw(st.lists(numbers, min_size=1, max_size=3)), draw(st.integers(1, 2))


@settings(max_examples=20)
@given(_loops())
def test_random_carries(loop: tuple[list[list[int]], list[int], int]) -> None:
    made_of, returned, depth = loop
    arguments = [np.arange(3, dtype=np.int32) + 10 * n for n in range(len(made_of))]
    check(_program(made_of, returned, depth), *arguments)


def _program(made_of: list[list[int]], returned: list[int], depth: int) -> str:
    count = len(made_of)
    parameters = ", ".join(f"%x{n}: {_ROW}" for n in range(count))
    results = ", ".join([_ROW] * len(returned))
    names = [f"%x{n}" for n in range(count)]
    lines, found = _loop(made_of, names, depth)
    body = "\n".join(lines)
    given_back = ", ".join(found[n] for n in returned)
    return f"""func.func @main({parameters}) -> ({results}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
{body}
  return {given_back} : {results} }}"""


def _loop(made_of: list[list[int]], before: list[str], depth: int) -> tuple[list[str], list[str]]:
    """Three turns of a loop, whose body is such a loop too while there is depth left."""
    count, level = len(made_of), f"d{depth}"
    arguments = [f"%{level}a{n}" for n in range(count)]
    starts = ", ".join(f"{name} = {value}" for name, value in zip(arguments, before, strict=True))
    types = ", ".join(["tensor<i32>", *[_ROW] * count])
    lines = [
        f"%{level}r:{count + 1} = stablehlo.while(%{level}i = %zero, {starts}) : {types} cond {{",
        f"  %{level}c = stablehlo.compare LT, %{level}i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        f"  stablehlo.return %{level}c : tensor<i1> }} do {{",
        f"  %{level}j = stablehlo.add %{level}i, %one : tensor<i32>",
    ]
    inside = arguments
    if depth > 1:
        more, inside = _loop(made_of, arguments, depth - 1)
        lines += more
    after = []
    for n, parts in enumerate(made_of):
        value = inside[n] if n in parts or not parts else inside[parts[0]]
        for number, part in enumerate(parts):
            lines.append(f"  %{level}s{n}_{number} = stablehlo.add {value}, {inside[part]} : {_ROW}")
            value = f"%{level}s{n}_{number}"
        after.append(value)
    lines.append(f"  stablehlo.return %{level}j, {', '.join(after)} : {types} }}")
    return lines, [f"%{level}r#{n + 1}" for n in range(count)]


def test_a_loop_that_nobody_reads_is_not_run() -> None:
    """It would never end; the array that it passes on is known before it."""
    session = compiled(
        hloforge.read(b"""func.func @main(%x: tensor<3xf32>, %p: tensor<i1>) -> tensor<3xf32> {
  %r:3 = stablehlo.while(%i = %p, %a = %x, %b = %x) : tensor<i1>, tensor<3xf32>, tensor<3xf32> cond {
    stablehlo.return %i : tensor<i1> } do {
    %d = stablehlo.sine %a : tensor<3xf32>
    stablehlo.return %i, %d, %b : tensor<i1>, tensor<3xf32>, tensor<3xf32> }
  return %r#2 : tensor<3xf32> }""")
    ).load(deadline=20)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(session(x, np.bool_(True)), x)
