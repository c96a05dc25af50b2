"""The barriers of CUDA's kernels: where they are missing in IREE's text; the tests on an emulated GPU have values."""

from __future__ import annotations

import itertools

import pytest

from hloforge.runtime.codegen_fixes.block_barriers import with_block_barriers

_POINTER = "!llvm.ptr<1>"
_ARRAY = "llvm.align = 16 : i32, llvm.noalias, llvm.nonnull, llvm.noundef"
_HEAD = [
    f"llvm.func @main_0(%arg0: {_POINTER} {{{_ARRAY}, llvm.readonly}}, %arg1: {_POINTER} {{{_ARRAY}}},"
    f" %arg2: {_POINTER} {{{_ARRAY}}}, %arg3: i32 {{llvm.noundef}}) attributes"
    " {gpu.known_block_size = array<i32: 32, 2, 1>} {",
    "%zero = llvm.mlir.constant(0 : i32) : i32",
    "%two = llvm.mlir.constant(2 : i32) : i32",
    "%eight = llvm.mlir.constant(8 : i32) : i32",
    "%all = llvm.mlir.constant(64 : i32) : i32",
    "%wide = llvm.mlir.constant(32 : i32) : i32",
    "%one = llvm.mlir.constant(1.0 : f32) : f32",
    "%x = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32",
    "%y = nvvm.read.ptx.sreg.tid.y range <i32, 0, 2> : i32",
    "%block = nvvm.read.ptx.sreg.ctaid.x : i32",
    "%row = llvm.mul %y, %wide : i32",
    "%id = llvm.add %row, %x : i32",
    "%half = llvm.udiv %id, %two : i32",
    '%first = llvm.icmp "slt" %id, %two : i32',
    '%given = llvm.icmp "slt" %arg3, %two : i32',
]
_CONDITIONS = {"apart": "%first", "together": "%given"}


def _at(index: str, name: str = "%arg1", to: str = "") -> str:
    return f"%{to or 'p' + index[1:]} = llvm.getelementptr {name}[{index}] : ({_POINTER}, i32) -> {_POINTER}, f32"


def _store(address: str) -> str:
    return f"llvm.store %one, {address} : f32, {_POINTER}"


def _load(address: str) -> str:
    return f"%l{address[1:]} = llvm.load {address} : {_POINTER} -> f32"


_ADDRESSES = [
    _at("%id"),
    _at("%half"),
    _at("%zero"),
    _at("%id", "%arg2", "other"),
    f"%next = llvm.getelementptr %pid[1] : ({_POINTER}) -> {_POINTER}, f32",
]


def _amended(lines: list[str], *, indent: str = "  ") -> list[str]:
    body = [*_HEAD[1:], *_ADDRESSES, *lines, "llvm.return"]
    text = [_HEAD[0], *(indent + line for line in body), "}"]
    return [line.strip() for line in with_block_barriers("\n".join(text).encode()).decode().splitlines()]


def _behind(lines: list[str]) -> list[str]:
    """What follows each barrier."""
    return [after for line, after in itertools.pairwise(_amended(lines)) if line == "nvvm.barrier"]


def _choice(condition: str, *lines: str, number: int = 1) -> list[str]:
    here, there = f"^bb{number}", f"^bb{number + 1}"
    return [f"llvm.cond_br {condition}, {here}, {there}", f"{here}:", *lines, f"llvm.br {there}", f"{there}:"]


def _loop(begin: str, bound: str, step: str, *lines: str) -> list[str]:
    return [
        f"llvm.br ^bb1({begin} : i32)",
        "^bb1(%turn: i32):  // 2 preds: ^bb0, ^bb2",
        f'%goes = llvm.icmp "slt" %turn, {bound} : i32',
        "llvm.cond_br %goes, ^bb2, ^bb3",
        "^bb2:",
        *lines,
        f"%step = llvm.add %turn, {step} : i32",
        "llvm.br ^bb1(%step : i32)",
        "^bb3:",
    ]


_OF_TURN = _at("%turn", to="there")


@pytest.mark.parametrize(
    ("lines", "behind"),
    [
        pytest.param([_store("%pid"), _load("%pzero")], [_load("%pzero")], id="of another thread"),
        pytest.param([_load("%pzero"), _store("%pid")], [_store("%pid")], id="overwritten"),
        pytest.param([_store("%pid"), _load("%next")], [_load("%next")], id="of the next thread"),
        pytest.param([_store("%pid"), _load("%pid")], [], id="of its own"),
        pytest.param([_store("%phalf"), _load("%phalf")], [_load("%phalf")], id="of two threads"),
        pytest.param([_load("%pid"), _load("%pzero")], [], id="nothing written"),
        pytest.param([_store("%pid"), _load("%other")], [], id="of another array"),
        pytest.param([_store("%pid"), "nvvm.barrier", _load("%pzero")], [_load("%pzero")], id="there is one"),
        pytest.param(
            [*_choice("%first", _store("%pzero")), _load("%pid")], [_load("%pid")], id="after threads have parted"
        ),
        pytest.param(
            [_store("%pid"), *_choice("%first", _load("%pzero"))],
            ["llvm.cond_br %first, ^bb1, ^bb2"],
            id="before threads part",
        ),
        pytest.param([_store("%pid"), *_choice("%given", _load("%pzero"))], [_load("%pzero")], id="where none parts"),
        pytest.param(_choice("%first", _store("%pid"), _load("%pzero")), [], id="where not all come by"),
        pytest.param(
            _loop("%zero", "%eight", "%two", _load("%pzero"), _store("%pid")),
            [_load("%pzero"), _store("%pid")],
            id="of the turn before",
        ),
        pytest.param(
            _loop("%id", "%arg3", "%all", _OF_TURN, _load("%there"), _store("%there")), [], id="its own turns"
        ),
        pytest.param(
            _loop("%id", "%arg3", "%wide", _OF_TURN, _load("%there"), _store("%there")), [], id="turns without a place"
        ),
        pytest.param(
            [_store("%pzero"), *_loop("%zero", "%eight", "%two", _load("%pid"))],
            ["llvm.br ^bb1(%zero : i32)"],
            id="outside of a loop",
        ),
    ],
)
def test_where_barriers_are_missing(lines: list[str], behind: list[str]) -> None:
    assert _behind(lines) == behind


def test_a_barrier_behind_a_loop_of_some_threads_stands_on_its_way_out() -> None:
    """IREE's first values of an ``argmax``: stored by one thread, before others update them in a loop of all."""
    lines = [
        *_loop("%id", "%two", "%all", _store("%pzero"))[:-1],
        "^bb3(%turns: i32):  // 2 preds: ^bb1, ^bb4",
        '%more = llvm.icmp "slt" %turns, %eight : i32',
        "llvm.cond_br %more, ^bb4, ^bb5",
        "^bb4:",
        _load("%pid"),
        "%further = llvm.add %turns, %two : i32",
        "llvm.br ^bb3(%further : i32)",
        "^bb5:",
    ]
    lines[3] = "llvm.cond_br %goes, ^bb2, ^bb3(%zero : i32)"
    text = _amended(lines)
    assert text.count("nvvm.barrier") == 1
    at = text.index("nvvm.barrier")
    assert text[at + 1] == "llvm.br ^bb3(%zero : i32)"
    assert f"llvm.cond_br %goes, ^bb2, {text[at - 1].rstrip(':')}" in text


def test_calls_may_change_what_stands_behind_a_barrier() -> None:
    """LLVM moves accesses of an array that it may take for the function's own across a barrier."""
    head = _amended([_store("%pid"), _load("%pzero")])[0]
    assert head.count("llvm.noalias") == 1
    assert "llvm.noalias, llvm.nonnull, llvm.noundef, llvm.readonly" in head
    assert _amended([_store("%pid"), _load("%pid")])[0] == _HEAD[0]


@pytest.mark.parametrize("line", ["%v = nvvm.mma.something {", "llvm.switch %id : i32, ^bb1 ["])
def test_what_cannot_be_read_is_left_alone(line: str) -> None:
    assert _behind([_store("%pid"), line, _load("%pzero")]) == []
