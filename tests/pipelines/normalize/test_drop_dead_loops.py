"""drop-dead-loops: what is dropped, what stays, and that random loops give what they gave before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_dead_loops import DropDeadLoops
from tests.engines import interpret

ROW = "tensor<3xf32>"
X = np.arange(3, dtype=np.float32)


def loops_left(text: str) -> int:
    module = parse_module(text)
    PassManager([DropDeadLoops()]).run(module)
    assert module.operation.verify()
    return len(list(operations(module, {"stablehlo.while"})))


def endless(body: str, result: str, given: str = "%d") -> str:
    return f"""func.func @main(%p: tensor<i1>, %x: {ROW}) -> {ROW} {{
      %zero = stablehlo.constant dense<0.0> : {ROW}
      %r:3 = stablehlo.while(%i = %p, %a = %x, %b = %zero) : tensor<i1>, {ROW}, {ROW} cond {{
        stablehlo.return %i : tensor<i1> }} do {{
        {body}
        stablehlo.return %i, %a, {given} : tensor<i1>, {ROW}, {ROW} }}
      return {result} : {ROW} }}"""


@pytest.mark.parametrize(
    ("body", "result", "left"),
    [
        (f"%d = stablehlo.sine %a : {ROW}", "%r#1", 0),
        (f"%d = stablehlo.sine %a : {ROW}", "%r#2", 1),
        (f"%d = stablehlo.constant dense<0.0> : {ROW}", "%r#2", 0),
        (f"%d = stablehlo.constant dense<-0.0> : {ROW}", "%r#2", 1),
        (f"%d = stablehlo.custom_call @f(%a) {{has_side_effect = true}} : ({ROW}) -> {ROW}", "%r#1", 1),
        (f"%d = stablehlo.custom_call @f(%a) : ({ROW}) -> {ROW}", "%r#1", 0),
        (
            f"""%t = stablehlo.create_token : !stablehlo.token
            %d, %u = "stablehlo.infeed"(%t) <{{infeed_config = ""}}>
              : (!stablehlo.token) -> ({ROW}, !stablehlo.token)""",
            "%r#1",
            1,
        ),
        (
            f"""%d = "stablehlo.all_reduce"(%a) <{{replica_groups = dense<0> : tensor<1x1xi64>}}> ({{
            ^bb0(%m: tensor<f32>, %n: tensor<f32>):
              %s = stablehlo.add %m, %n : tensor<f32>
              stablehlo.return %s : tensor<f32> }}) : ({ROW}) -> {ROW}""",
            "%r#1",
            0,
        ),
    ],
)
def test_which_loops_go(body: str, result: str, left: int) -> None:
    assert loops_left(endless(body, result)) == left


@pytest.mark.parametrize(
    ("before", "given", "left"),
    [
        ("%x, %x, %y", "%a, %a, %c", 0),
        ("%x, %x, %y", "%b, %a, %c", 0),
        ("%x, %x, %x", "%b, %c, %a", 0),
        ("%x, %y, %y", "%b, %a, %c", 1),
        ("%x, %x, %y", "%a, %c, %c", 1),
        ("%x, %x, %x", "%b, %c, %s", 1),
    ],
)
def test_carries_that_change_places(before: str, given: str, left: int) -> None:
    first, second, third = before.split(", ")
    text = f"""func.func @main(%p: tensor<i1>, %x: {ROW}, %y: {ROW}) -> ({ROW}, {ROW}) {{
      %r:4 = stablehlo.while(%i = %p, %a = {first}, %b = {second}, %c = {third})
        : tensor<i1>, {ROW}, {ROW}, {ROW} cond {{
        stablehlo.return %i : tensor<i1> }} do {{
        %s = stablehlo.sine %c : {ROW}
        stablehlo.return %i, {given} : tensor<i1>, {ROW}, {ROW}, {ROW} }}
      return %r#1, %r#2 : {ROW}, {ROW} }}"""
    assert loops_left(text) == left


@pytest.mark.parametrize(
    ("kind", "zero", "terms", "given", "left"),
    [
        ("i32", "0", "%a, %b", "%a, %s", 0),
        ("i32", "0", "%b, %a", "%a, %s", 0),
        ("ui8", "0", "%b, %a", "%a, %s", 0),
        ("i1", "false", "%a, %b", "%a, %s", 0),
        ("i32", "1", "%a, %b", "%a, %s", 1),
        # The zero changes, or it does not matter because a constant is added.
        ("i32", "0", "%a, %b", "%b, %s", 1),
        ("i32", "0", "%b, %k", "%b, %s", 0),
        # -0.0 and 0.0 are 0.0.
        ("f32", "0.0", "%b, %a", "%a, %s", 1),
    ],
)
def test_a_carry_to_which_a_carried_zero_is_added(kind: str, zero: str, terms: str, given: str, left: int) -> None:
    text = f"""func.func @main(%p: tensor<i1>, %x: tensor<{kind}>) -> tensor<{kind}> {{
      %k = stablehlo.constant dense<{zero}> : tensor<{kind}>
      %r:3 = stablehlo.while(%i = %p, %a = %k, %b = %x) : tensor<i1>, tensor<{kind}>, tensor<{kind}> cond {{
        stablehlo.return %i : tensor<i1> }} do {{
        %s = stablehlo.add {terms} : tensor<{kind}>
        stablehlo.return %i, {given} : tensor<i1>, tensor<{kind}>, tensor<{kind}> }}
      return %r#2 : tensor<{kind}> }}"""
    assert loops_left(text) == left


def test_a_loop_that_only_a_dropped_loop_reads_goes_too() -> None:
    loop = f"""%NAME:2 = stablehlo.while(%iNAME = %p, %aNAME = FIRST) : tensor<i1>, {ROW} cond {{
        stablehlo.return %iNAME : tensor<i1> }} do {{
        %sNAME = stablehlo.add %aNAME, %OTHER : {ROW}
        stablehlo.return %iNAME, RETURNED : tensor<i1>, {ROW} }}"""
    first = loop.replace("NAME", "f").replace("FIRST", "%x").replace("OTHER", "x").replace("RETURNED", "%sf")
    second = loop.replace("NAME", "g").replace("FIRST", "%x").replace("OTHER", "f#1").replace("RETURNED", "%ag")
    text = f"func.func @main(%p: tensor<i1>, %x: {ROW}) -> {ROW} {{ {first} {second} return %g#1 : {ROW} }}"
    assert loops_left(text) == 0


def test_a_program_does_not_run_such_a_loop() -> None:
    text = endless(f"%d = stablehlo.sine %a : {ROW}", "%r#1")
    np.testing.assert_array_equal(hloforge.compile(text).load(deadline=20)(np.bool_(True), X), X)


@st.composite
def _carries(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """For each carry of two loops in each other what the body gives back: a carry's number, or itself and one."""
    count = draw(st.integers(1, 3))
    numbers = st.integers(0, 2 * count - 1)
    return draw(st.lists(numbers, min_size=count, max_size=count)), draw(
        st.lists(numbers, min_size=count, max_size=count)
    )


@settings(max_examples=25, deadline=None)
@given(_carries(), st.integers(0, 2), st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_random_loops_in_each_other(carries: tuple[list[int], list[int]], read: int, begins: list[int]) -> None:
    inner, outer = carries
    count = len(inner)
    text = _nested(inner, outer, min(read, count - 1), [min(begin, count - 1) for begin in begins[:count]])
    module, arguments = parse_module(text), [X + 10 * n for n in range(count)]
    expected = interpret(parse_module(text), *arguments)
    PassManager([DropDeadLoops()]).run(module)
    for one, other in zip(interpret(module, *arguments), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _nested(inner: list[int], outer: list[int], read: int, begins: list[int]) -> str:
    count = len(inner)
    types = ", ".join(["tensor<i32>", *[ROW] * count])

    def loop(name: str, before: list[str], rule: list[int], inside: str = "", values: list[str] | None = None) -> str:
        starts = ", ".join(f"%{name}{n} = {value}" for n, value in enumerate(before))
        values = values or [f"%{name}{n}" for n in range(count)]
        lines, given = [], []
        for n, number in enumerate(rule):
            given.append(values[number % count])
            if number >= count:
                lines.append(f"%{name}s{n} = stablehlo.add {given[-1]}, {given[-1]} : {ROW}")
                given[-1] = f"%{name}s{n}"
        return f"""%{name}:{count + 1} = stablehlo.while(%{name}i = %zero, {starts}) : {types} cond {{
          %{name}c = stablehlo.compare LT, %{name}i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %{name}c : tensor<i1> }} do {{
          %{name}j = stablehlo.add %{name}i, %one : tensor<i32>
          {inside}
          {chr(10).join(lines)}
          stablehlo.return %{name}j, {", ".join(given)} : {types} }}"""

    body = loop("f", [f"%g{n}" for n in range(count)], inner)
    # Results are numbered from 1, after the counter.
    text = loop("g", [f"%x{n}" for n in begins], outer, body, [f"%f#{n + 1}" for n in range(count)])
    parameters = ", ".join(f"%x{n}: {ROW}" for n in range(count))
    return f"""func.func @main({parameters}) -> {ROW} {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      {text}
      return %g#{read + 1} : {ROW} }}"""
