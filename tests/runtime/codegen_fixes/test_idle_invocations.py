"""Dimensions of Vulkan's workgroups that nothing reads; vulkan_sessions.py has values."""

from __future__ import annotations

import pytest

from hloforge.runtime.codegen_fixes.idle_invocations import without_idle_invocations

_IDS = 'spirv.Load "Input" %__builtin__LocalInvocationId___addr : vector<3xi32>'
_GROUPS = 'spirv.Load "Input" %__builtin__WorkgroupId___addr : vector<3xi32>'


def _module(*lines: str, inputs: tuple[str, ...] = ("LocalInvocationId", "WorkgroupId")) -> bytes:
    text = [
        "  spirv.module Logical GLSL450 {",
        *(
            f'    spirv.GlobalVariable @__builtin__{name}__ built_in("{name}") : !spirv.ptr<i32, Input>'
            for name in inputs
        ),
        '    spirv.func @main() "None" {',
        *lines,
        "      spirv.Return",
        "    }",
        '    spirv.ExecutionMode @main "LocalSize", 8, 4, 2',
        "  }",
    ]
    return "\n".join(text).encode()


def _sizes(*lines: str, inputs: tuple[str, ...] = ("LocalInvocationId", "WorkgroupId")) -> str:
    text = without_idle_invocations(_module(*lines, inputs=inputs)).decode()
    return text.partition('"LocalSize", ')[2].partition("\n")[0]


def _number(name: str, dimension: int) -> str:
    return f"%n = spirv.CompositeExtract {name}[{dimension} : i32] : vector<3xi32>"


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        ([f"%0 = {_IDS}", _number("%0", 0), _number("%0", 2)], "8, 1, 2"),
        ([f"%0 = {_IDS}", f"%1 = {_GROUPS}", _number("%0", 1), _number("%1", 0)], "1, 4, 1"),
        ([f"%0 = {_IDS}", "%0 = spirv.Constant 1 : i32", "%2 = spirv.IAdd %0, %0 : i32"], "1, 1, 1"),
    ],
)
def test_what_is_read(lines: list[str], sizes: str) -> None:
    assert _sizes(*lines) == sizes


@pytest.mark.parametrize(
    ("lines", "inputs"),
    [
        ([f"%0 = {_IDS}", "%1 = spirv.IAdd %0, %0 : vector<3xi32>"], ("LocalInvocationId",)),
        ([f"%0 = {_IDS}", _number("%0", 0)], ("LocalInvocationId", "SubgroupId")),
        ([f"%0 = {_IDS}", _number("%0", 0), "%1 = spirv.GroupNonUniformFAdd <Subgroup>"], ("LocalInvocationId",)),
        ([f"%0 = {_IDS}", _number("%0", 0), "spirv.AtomicIAdd <Device>"], ("LocalInvocationId",)),
    ],
)
def test_where_more_than_the_places_tells_invocations_apart(lines: list[str], inputs: tuple[str, ...]) -> None:
    assert _sizes(*lines, inputs=inputs) == "8, 4, 2"
