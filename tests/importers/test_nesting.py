"""Programs that nest without end are one located error; those up to the limit compile."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.nesting import LIMIT
from hloforge.dialect.operations import file_location, operations
from hloforge.pipelines.named import lower
from tests.engines import interpret

F, FLAG = "tensor<f32>", "tensor<i1>"
IDENTITY = f"func.func @main(%x: {F}) -> {F} {{ return %x : {F} LOC }}"


def branches(depth: int, opened: str = '"stablehlo.if"(%p) ({', closed: str | None = None) -> str:
    closed = closed or f"}}, {{ stablehlo.return %x : {F} }}) : ({FLAG}) -> {F}"
    lines = [f"func.func @main(%p: {FLAG}, %x: {F}) -> {F} {{"]
    lines += [f"%r{n} = {opened.replace('$n', str(n))}" for n in range(depth)]
    lines += [f"%v = stablehlo.negate %x : {F}", f"stablehlo.return %v : {F}"]
    for n in reversed(range(depth)):
        lines += [closed, f"{'stablehlo.' if n else ''}return %r{n} : {F}"]
    return "\n".join([*lines, "}"])


def loops(depth: int) -> str:
    """Each runs no turn when ``%p`` is false."""
    condition = f"{{ ^c(%c$n: {F}): stablehlo.return %p : {FLAG} }}"
    opened = f'"stablehlo.while"(%x) ({condition}, {{ ^b(%b$n: {F}):'
    return branches(depth, opened, f"}}) : ({F}) -> {F}")


def calls(depth: int) -> str:
    functions = [f"func.func @main(%x: {F}) -> {F} {{ %r = call @f0(%x) : ({F}) -> {F} return %r : {F} }}"]
    for n in range(depth - 1):
        body = f"%r = call @f{n + 1}(%x) : ({F}) -> {F} return %r : {F}"
        functions.append(f"func.func private @f{n}(%x: {F}) -> {F} {{ {body} }}")
    functions.append(f"func.func private @f{depth - 1}(%x: {F}) -> {F} {{ return %x : {F} }}")
    return "\n".join(functions)


def calls_in_branches(depth: int) -> str:
    """Half of the depth are calls."""
    functions = []
    for n in range(depth // 2):
        name, visible = ("main", "") if n == 0 else (f"f{n}", "private ")
        called = f"%v = func.call @f{n + 1}(%p, %x) : ({FLAG}, {F}) -> {F} stablehlo.return %v : {F}"
        body = f'%r = "stablehlo.if"(%p) ({{ {called} }}, {{ stablehlo.return %x : {F} }}) : ({FLAG}) -> {F}'
        functions.append(f"func.func {visible}@{name}(%p: {FLAG}, %x: {F}) -> {F} {{ {body} return %r : {F} }}")
    last = f"func.func private @f{depth // 2}(%p: {FLAG}, %x: {F}) -> {F} {{ return %x : {F} }}"
    return "\n".join([*functions, last])


def tuples(depth: int) -> str:
    type_ = "tuple<" * depth + F + ">" * depth
    return f"func.func @main(%x: {type_}) -> {type_} {{ return %x : {type_} }}"


def hlo_loops(depth: int) -> str:
    text = ["HloModule m", "leaf { p = f32[] parameter(0)\n ROOT r = f32[] negate(p) }"]
    text.append("stop { p = f32[] parameter(0)\n ROOT r = pred[] constant(false) }")
    for n in range(depth - 1):
        body = "leaf" if n == 0 else f"b{n - 1}"
        loop = f"while(p), condition=stop, body={body}"
        text.append(f"b{n} {{ p = f32[] parameter(0)\n ROOT r = f32[] {loop} }}")
    last = "leaf" if depth == 1 else f"b{depth - 2}"
    text.append(f"ENTRY e {{ p = f32[] parameter(0)\n ROOT r = f32[] while(p), condition=stop, body={last} }}")
    return "\n".join(text)


@pytest.mark.parametrize("depth", [LIMIT + 1, 2_000])
@pytest.mark.parametrize("program", [branches, loops, calls, calls_in_branches, tuples, hlo_loops])
def test_what_nests_too_deep_is_refused_at_its_line(program: object, depth: int) -> None:
    with pytest.raises(hloforge.ImporterError, match=f"nested more than {LIMIT} deep") as caught:
        hloforge.read(program(depth + depth % 2))  # type: ignore[operator]
    assert caught.value.location is not None and caught.value.location.line
    assert caught.value.hint


def test_more_brackets_than_a_parser_survives_are_refused_before_it_reads_them() -> None:
    with pytest.raises(hloforge.ImporterError, match="brackets are nested more than 4096 deep") as caught:
        hloforge.read(branches(20_000))
    assert caught.value.location is not None and caught.value.location.line == 2049


def test_brackets_in_strings_and_arrows_do_not_nest() -> None:
    unbalanced = "".join(f'%y{n} = stablehlo.negate %x : {F} loc("({{[<"("a.py":1:1))\n' for n in range(3_000))
    assert hloforge.read(IDENTITY.replace("return", unbalanced + "return").replace("LOC", "")).signature


@pytest.mark.wide(2)
@pytest.mark.parametrize("program", [branches, loops, calls, calls_in_branches, tuples, hlo_loops])
def test_what_nests_as_deep_as_the_limit_is_lowered(program: object) -> None:
    lower(hloforge.read(program(LIMIT)).module)  # type: ignore[operator]


def test_branches_as_deep_as_the_limit_compute() -> None:
    text = branches(LIMIT)
    flag, x = np.array(True), np.array(3.0, np.float32)
    session = hloforge.load(hloforge.compile(text))
    assert session(flag, x) == interpret(text, flag, x)[0] == -3.0


def test_types_that_double_at_each_level() -> None:
    types = [f"!t0 = tuple<{F}, {F}>", *(f"!t{n} = tuple<!t{n - 1}, !t{n - 1}>" for n in range(1, 40))]
    with pytest.raises(hloforge.ImporterError, match="a tuple has more than 65,536 elements"):
        hloforge.read("\n".join([*types, "func.func @main(%x: !t39) -> !t39 { return %x : !t39 }"]))


def _locations(program: hloforge.Program) -> list[object]:
    return [op.location for op in operations(program.module)]


@pytest.mark.parametrize(
    "location",
    [
        "callsite(" * 1_500 + '"a.py":1:1' + ' at "b.py":2:2)' * 1_500,
        "fused[unknown, " * 1_500 + '"a.py":1:1' + "]" * 1_500,
        '"name"(' * 1_500 + '"a.py":1:1' + ")" * 1_500,
    ],
    ids=["calls", "fused", "names"],
)
def test_a_deep_location_becomes_its_first_position(location: str) -> None:
    program = hloforge.read(IDENTITY.replace("LOC", f"loc({location})"))
    found = [file_location(one) for one in _locations(program)]
    assert any(place is not None and (place.file, place.line) == ("a.py", 1) for place in found)
    assert all(len(str(one)) < 200 for one in _locations(program))


def test_locations_that_double_at_each_level() -> None:
    places = ["#l0 = loc(unknown)", *(f"#l{n} = loc(callsite(#l{n - 1} at #l{n - 1}))" for n in range(1, 40))]
    program = hloforge.read("\n".join([*places, IDENTITY.replace("LOC", "loc(#l39)")]))
    assert all(len(str(one)) < 200 for one in _locations(program))
