"""in_place_audit: reads that a write may precede are found in IREE's text, and others are not blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.errors import CompileError
from hloforge.runtime.compile import in_place_audit
from hloforge.runtime.compile.in_place_audit import Clash, OverwrittenError, check, clashes

_R = "!stream.resource<transient>"


def written(value: str, result: str, line: int, *, reads: str = "") -> str:
    """A dispatch that writes into a value, and reads another one."""
    operands, count = (f"{value}, {reads}", 2) if reads else (value, 1)
    types = ", ".join([_R] * count)
    sizes = f"operandSegmentSizes = array<i32: 0, {count}, 0, 0, 0, 0, 0>"
    return (
        f'{result} = "stream.async.dispatch"({operands}) <{{{sizes}, tied_operands = [0 : index]}}>'
        f' : ({types}) -> {_R} loc("p":{line}:1)'
    )


def read(value: str, result: str, line: int) -> str:
    sizes = "operandSegmentSizes = array<i32: 0, 1, 0, 0, 0, 0, 0>"
    return (
        f'{result} = "stream.async.dispatch"({value}) <{{{sizes}, tied_operands = [-1 : index]}}>'
        f' : ({_R}) -> {_R} loc("p":{line}:1)'
    )


def number(result: str, value: int) -> str:
    return f'{result} = "arith.constant"() <{{value = {value} : index}}> : () -> index'


def made(result: str) -> str:
    return f'{result} = "stream.async.splat"() : () -> {_R}'


def filled(result: str, value: int, bits: int) -> str:
    constant = f'{result}v = "arith.constant"() <{{value = {value} : i{bits}}}> : () -> i{bits}'
    return f'{constant}\n{result} = "stream.async.splat"({result}v) : (i{bits}) -> {_R}'


def both_filled(*fills: tuple[int, int]) -> list[str]:
    """Two filled arrays that are overwritten, and read."""
    fill, other = fills
    return [
        filled("%x", *fill),
        written("%x", "%y", 2),
        filled("%o", *other),
        written("%o", "%p", 2),
        returned("%y", "%p"),
    ]


def returned(*values: str) -> str:
    return f'"util.return"({", ".join(values)}) : ({", ".join([_R] * len(values))}) -> () loc("p":99:1)'


def executed(kind: str, taken: str, inner: str, given: str, result: str, *lines: str) -> str:
    body = "\n".join(lines)
    yielded = f'"stream.yield"({given}) : ({_R}) -> ()'
    return f'{result} = "stream.async.{kind}"({taken}) ({{ ^bb0({inner}: {_R}):\n{body}\n{yielded} }}) : ({_R}) -> {_R}'


def function(*lines: str) -> str:
    body = "\n".join(lines)
    return f'"util.func"() ({{ ^bb0(%given: {_R}):\n{body} }}) {{sym_name = "main"}} : () -> () loc("p":1:1)'


def loop(first: str, inner: str, given: str, result: str, *lines: str) -> str:
    bounds = f"{number('%c', 0)}\n"
    body = "\n".join(lines)
    return (
        f'{bounds}{result} = "scf.for"(%c, %c, %c, {first}) ({{ ^bb0(%i: index, {inner}: {_R}):\n{body}\n'
        f'"scf.yield"({given}) : ({_R}) -> () loc("p":90:1) }}) : (index, index, index, {_R}) -> {_R}'
    )


_BARRIER = f'%b = "util.optimization_barrier"(%x) : ({_R}) -> {_R}'

_WRONG = {
    "read after it was written": [made("%x"), written("%x", "%y", 2), read("%x", "%z", 3), returned("%y", "%z")],
    "returned after it was written": [made("%x"), written("%x", "%y", 2), returned("%x", "%y")],
    "by the name of a barrier": [made("%x"), _BARRIER, written("%b", "%y", 2), returned("%x", "%y")],
    "read beside it": [
        made("%x"),
        executed(
            "execute", "%x", "%a", "%both", "%r",
            executed("concurrent", "%a", "%e", "%w", "%both", read("%e", "%z", 3), written("%e", "%w", 2)),
        ),
        returned("%r"),
    ],
    "read by what nobody waits for": [
        made("%x"),
        executed("execute", "%x", "%a", "%z", "%r", read("%a", "%z", 3)),
        executed("execute", "%x", "%e", "%w", "%s", written("%e", "%w", 2)),
        returned("%r", "%s"),
    ],
    "an argument": [written("%given", "%y", 2), returned("%y")],
    "in each iteration": [
        made("%x"), made("%o"),
        loop("%o", "%a", "%w", "%r", written("%x", "%w", 2)),
        returned("%r"),
    ],
    "carried on as it was": [made("%x"), loop("%x", "%a", "%a", "%r", written("%a", "%w", 2)), returned("%r")],
    "equal fills of 64 bits, which IREE merges": both_filled((7, 64), (7, 64)),
    "read by the operation that writes it": [made("%x"), written("%x", "%y", 2, reads="%x"), returned("%y")],
}  # fmt: skip
_RIGHT = {
    "read before it is written": [made("%x"), executed("execute", "%x", "%a", "%w", "%r",
                                  read("%a", "%z", 3), written("%a", "%w", 2)), returned("%r")],
    "read by what the writer waits for": [
        made("%x"),
        executed("execute", "%x", "%a", "%z", "%r", read("%a", "%z", 3)),
        executed("execute", "%x", "%e", "%w", "%s", written("%e", "%w", 2, reads="%r")),
        returned("%s"),
    ],
    "equal fills of 32 bits": both_filled((7, 32), (7, 32)),
    "other fills of 64 bits": both_filled((7, 64), (8, 64)),
    "written again and again": [made("%x"), written("%x", "%y", 2), written("%y", "%z", 3), returned("%z")],
    "carried": [made("%x"), loop("%x", "%a", "%w", "%r", written("%a", "%w", 2)), returned("%r")],
    "a copy in each iteration": [
        made("%x"),
        loop("%x", "%a", "%w", "%r", read("%a", "%copy", 3), written("%copy", "%w", 2), read("%a", "%z", 4)),
        returned("%r"),
    ],
    "another array": [made("%x"), made("%o"), written("%x", "%y", 2), read("%o", "%z", 3), returned("%y", "%z")],
}  # fmt: skip


@pytest.mark.parametrize("name", _WRONG)
def test_what_cannot_be_proved_is_named(name: str) -> None:
    found = clashes(function(*_WRONG[name]))
    assert found
    assert all(clash.write == "p:2:1" for clash in found)


@pytest.mark.parametrize("name", _RIGHT)
def test_what_is_right_is_proved(name: str) -> None:
    assert clashes(function(*_RIGHT[name])) == []


def test_a_donated_argument_may_be_overwritten() -> None:
    text = function(*_WRONG["an argument"])
    assert clashes(text) == [Clash("p:1:1", "p:2:1")]
    assert clashes(text, frozenset({0})) == []


def test_other_parts_of_one_buffer_are_apart() -> None:
    def copied(start: int, end: int) -> str:
        numbers = "".join(f"{number(f'%c{n}', n)}\n" for n in (0, 4, 8))
        return function(
            numbers + made("%x"),
            f'%y = "stream.async.copy"(%x, %c8, %c0, %c4, %x, %c8, %c{start}, %c{end}, %c4)'
            f" : ({_R}, index, index, index, {_R}, index, index, index, index) -> {_R}",
            returned("%y"),
        )

    assert clashes(copied(4, 8)) == []
    assert len(clashes(copied(0, 4))) == 1


def test_a_folder_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "main" / f"0_{in_place_audit.PASS}.mlir"
    path.parent.mkdir()
    path.write_text(function(*_WRONG["read after it was written"]))
    with pytest.raises(OverwrittenError, match="p:2:1 what is read at p:3:1"):
        check(tmp_path, frozenset())


def test_nothing_to_read_is_no_proof(tmp_path: Path) -> None:
    with pytest.raises(OverwrittenError, match="printed no text that shows its updates in place"):
        check(tmp_path, frozenset())
    (tmp_path / f"0_{in_place_audit.PASS}.mlir").write_text('"util.func"() ({ tied_operands = [0 : index]')
    with pytest.raises(OverwrittenError, match="cannot be parsed"):
        check(tmp_path, frozenset())


@pytest.mark.usefixtures("iree_codegen")
def test_a_program_that_stays_wrong_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are tried first; what the audit does not accept then is no vmfb."""
    asked: list[Path] = []

    def refuse(folder: Path, donated: frozenset[int]) -> None:
        asked.append(folder)
        raise OverwrittenError("IREE would overwrite at p:2:1 what is read at p:3:1")

    monkeypatch.setattr(in_place_audit, "check", refuse)
    with hloforge.Builder("refused") as builder:
        x = builder.parameter(0, "f32[4]", "x")
        program = builder.build(ops.add(x, x))
    with pytest.raises(CompileError, match="overwrite"):
        hloforge.compile(program, cache=False)
    assert len(asked) > 1
