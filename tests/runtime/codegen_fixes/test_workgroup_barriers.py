"""The barriers of Vulkan's programs: where they are missing in IREE's text; vulkan_sessions.py has values."""

from __future__ import annotations

import itertools

import pytest

from hloforge.runtime.codegen_fixes.workgroup_barriers import with_barriers

_POINTER = "!spirv.ptr<f32, Workgroup>"
_HEAD = """
spirv.module Logical GLSL450 {
  spirv.GlobalVariable @shared : !spirv.ptr<!spirv.struct<(!spirv.array<16 x f32>)>, Workgroup>
  spirv.GlobalVariable @other : !spirv.ptr<!spirv.struct<(!spirv.array<16 x f32>)>, Workgroup>
  spirv.GlobalVariable @__builtin__WorkgroupId__ built_in("WorkgroupId") : !spirv.ptr<vector<3xi32>, Input>
  spirv.GlobalVariable @__builtin__LocalInvocationId__ built_in("LocalInvocationId") : !spirv.ptr<vector<3xi32>, Input>
  spirv.func @main() "None" {
    %zero = spirv.Constant 0 : i32
    %one = spirv.Constant 1.0 : f32
    %ids = spirv.mlir.addressof @__builtin__LocalInvocationId__ : !spirv.ptr<vector<3xi32>, Input>
    %id3 = spirv.Load "Input" %ids : vector<3xi32>
    %id = spirv.CompositeExtract %id3[0 : i32] : vector<3xi32>
    %groups = spirv.mlir.addressof @__builtin__WorkgroupId__ : !spirv.ptr<vector<3xi32>, Input>
    %group3 = spirv.Load "Input" %groups : vector<3xi32>
    %group = spirv.CompositeExtract %group3[0 : i32] : vector<3xi32>
    %array = spirv.mlir.addressof @shared : !spirv.ptr<!spirv.struct<(!spirv.array<16 x f32>)>, Workgroup>
    %second = spirv.mlir.addressof @other : !spirv.ptr<!spirv.struct<(!spirv.array<16 x f32>)>, Workgroup>
    %own = spirv.AccessChain %array[%zero, %id] : to !spirv.ptr<f32, Workgroup>
    %another = spirv.AccessChain %second[%zero, %id] : to !spirv.ptr<f32, Workgroup>
    %first = spirv.AccessChain %array[%zero, %zero] : to !spirv.ptr<f32, Workgroup>
    %is_low = spirv.SLessThan %id, %zero : i32
    %is_group = spirv.SLessThan %group, %zero : i32
"""
_TAIL = """
    spirv.Return
  }
}
"""
_STORE = f'spirv.Store "Workgroup" %own, %one : f32  // {_POINTER}'
_LOAD_OWN = 'spirv.Load "Workgroup" %own : f32'
_LOAD_FIRST = 'spirv.Load "Workgroup" %first : f32'
_LOAD_ANOTHER = 'spirv.Load "Workgroup" %another : f32'


def _selection(condition: str, *lines: str) -> list[str]:
    taken = [f"spirv.BranchConditional {condition}, ^bb1, ^bb2", "^bb1:  // pred: ^bb0", *lines, "spirv.Branch ^bb2"]
    return ["spirv.mlir.selection {", *taken, "^bb2:  // 2 preds", "spirv.mlir.merge", "}"]


def _loop(begin: str, bound: str, *lines: str) -> list[str]:
    return [
        "spirv.mlir.loop {",
        f"spirv.Branch ^bb1({begin} : i32)",
        "^bb1(%turn: i32):  // 2 preds",
        f"%goes = spirv.SLessThan %turn, {bound} : i32",
        "spirv.BranchConditional %goes, ^bb2, ^bb3",
        "^bb2:  // pred: ^bb1",
        *lines,
        "%next = spirv.IAdd %turn, %zero : i32",
        "spirv.Branch ^bb1(%next : i32)",
        "^bb3:  // pred: ^bb1",
        "spirv.mlir.merge",
        "}",
    ]


def _text(lines: list[str]) -> list[str]:
    text = _HEAD + "\n".join("    " + line for line in lines) + _TAIL
    return [line.strip() for line in with_barriers(text.encode()).decode().splitlines()]


def _barriers(lines: list[str]) -> list[str]:
    """What follows each barrier, of those lines."""
    text = _text(lines)
    return [after for line, after in itertools.pairwise(text) if line.startswith("spirv.ControlBarrier")]


@pytest.mark.parametrize(
    ("lines", "behind"),
    [
        pytest.param([_STORE, _LOAD_FIRST], [_LOAD_FIRST], id="of another invocation"),
        pytest.param([_STORE, _LOAD_OWN], [], id="of its own"),
        pytest.param([_LOAD_OWN, _LOAD_FIRST], [], id="nothing written"),
        pytest.param([_STORE, _LOAD_ANOTHER], [], id="of another array"),
        pytest.param(
            [*_selection("%is_low", _STORE), *_selection("%is_low", _LOAD_FIRST)],
            ["spirv.mlir.selection {"],
            id="around selections in which invocations part",
        ),
        pytest.param([_STORE, *_selection("%is_group", _LOAD_FIRST)], [_LOAD_FIRST], id="in a selection that all take"),
        pytest.param([_STORE, *_loop("%zero", "%group", _LOAD_FIRST)], [_LOAD_FIRST], id="in a loop that all take"),
        pytest.param([_STORE, *_loop("%id", "%group", _LOAD_FIRST)], ["spirv.mlir.loop {"], id="around another loop"),
        pytest.param(
            [*_loop("%zero", "%group", _LOAD_FIRST, _STORE)], [_STORE, _LOAD_FIRST], id="from turn to turn of a loop"
        ),
    ],
)
def test_barriers(lines: list[str], behind: list[str]) -> None:
    assert sorted(_barriers(lines)) == sorted(behind)


def test_a_selection_in_which_invocations_part_becomes_two() -> None:
    product = "%twice = spirv.IAdd %id, %id : i32"
    address = f"%place = spirv.AccessChain %array[%zero, %twice] : to {_POINTER}"
    load = 'spirv.Load "Workgroup" %place : f32'
    text = _text(_selection("%is_low", product, address, _STORE, load))
    begin = text.index("spirv.mlir.selection {")
    barrier = next(number for number, line in enumerate(text) if line.startswith("spirv.ControlBarrier"))
    first, second = text[begin:barrier], text[barrier + 1 :]
    assert _STORE in first and load not in first
    assert second[0] == "spirv.mlir.selection {" and second[3:6] == [product, address, load]
    assert [line for line in first if line == "}"] == ["}"]


def test_what_others_write_is_not_read_again() -> None:
    """Without a place for it, no barrier: the part behind it needs what was loaded before."""
    load = '%before = spirv.Load "Workgroup" %own : f32'
    store = f'spirv.Store "Workgroup" %first, %before : f32  // {_POINTER}'
    assert not _barriers(_selection("%is_low", load, store))


def test_a_barrier_that_is_there_suffices() -> None:
    there = "spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>"
    assert _barriers([_STORE, there, _LOAD_FIRST]) == [_LOAD_FIRST]


def test_modules_without_shared_memory_stay() -> None:
    text = b'spirv.module Logical GLSL450 {\n  spirv.func @main() "None" {\n    spirv.Return\n  }\n}\n'
    assert with_barriers(text) == text
