"""Small programs of hand-written kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hloforge.dialect.program import Parameter, Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.codegen.kernel_program import ArrayType, Binding, Dispatch, KernelProgram
from hloforge.runtime.artifact.manifest import Manifest

# XLA's names of element types: MLIR's, LLVM's, and bytes.
ELEMENTS: Mapping[str, tuple[str, str, int]] = {
    "f32": ("f32", "float", 4),
    "f64": ("f64", "double", 8),
    "f16": ("f16", "half", 2),
    "bf16": ("bf16", "bfloat", 2),
    "pred": ("i1", "i8", 1),
    "s8": ("i8", "i8", 1),
    "u8": ("ui8", "i8", 1),
    "s32": ("i32", "i32", 4),
    "u64": ("ui64", "i64", 8),
    "c64": ("complex<f32>", "<2 x float>", 8),
    "c128": ("complex<f64>", "<2 x double>", 16),
}


def array(element: str, *sizes: int) -> ArrayType:
    """An array by XLA's name of its element type."""
    name, _, size = ELEMENTS[element]
    return ArrayType(name, sizes, size)


def whole(number: int, of: ArrayType, offset: int = 0) -> Binding:
    """All of an array in a buffer."""
    return Binding(number, offset, of.size)


def loop(count: int, inputs: int, body: str, element: str = "f32", *, workgroups: int = 1) -> str:
    """A kernel that computes ``%r`` of elements ``%x0``, ``%x1`` … for each of so many elements of a workgroup.

    Args:
        body: instructions; ``%i`` is the element's number in the array.
    """
    kind = ELEMENTS[element][1]
    pointers = "\n".join(
        f"""  %place{number} = getelementptr inbounds ptr, ptr %pointers, i64 {number}
  %array{number} = load ptr, ptr %place{number}"""
        for number in range(inputs + 1)
    )
    loads = "\n".join(
        f"""  %at{number} = getelementptr inbounds {kind}, ptr %array{number}, i64 %i
  %x{number} = load {kind}, ptr %at{number}, align 1"""
        for number in range(inputs)
    )
    return f"""
define i32 @kernel(ptr %environment, ptr %state, ptr %workgroup) {{
entry:
  %pointers.at = getelementptr inbounds i8, ptr %state, i64 32
  %pointers = load ptr, ptr %pointers.at
{pointers}
  %number = load i32, ptr %workgroup
  %group = zext i32 %number to i64
  %first = mul i64 %group, {count}
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %next, %loop ]
  %i = add i64 %first, %j
{loads}
{body}
  %to = getelementptr inbounds {kind}, ptr %array{inputs}, i64 %i
  store {kind} %r, ptr %to, align 1
  %next = add nuw nsw i64 %j, 1
  %done = icmp eq i64 %next, {count}
  br i1 %done, label %end, label %loop
end:
  ret i32 0
}}
"""


def manifest(parameters: Sequence[str], results: Sequence[str], name: str = "hand") -> str:
    """A manifest's text of arrays such as ``f32[4,8]``."""
    taken = tuple(Parameter(f"x{number}", Shape.parse(text)) for number, text in enumerate(parameters))
    shapes = [Shape.parse(text) for text in results]
    returned = shapes[0] if len(shapes) == 1 else Shape.tuple_of(*shapes)
    text = Manifest(name, Signature(taken, returned), target="cpu:host").to_json()
    assert json.loads(text)
    return text


def sum_of(size: int = 64) -> KernelProgram:
    """Two arrays added."""
    one = array("f32", size)
    kernel = loop(size, 2, "  %r = fadd float %x0, %x1")
    dispatch = Dispatch(0, (whole(0, one), whole(1, one), whole(2, one)))
    return KernelProgram((one, one), (one,), 0, b"", (kernel,), (dispatch,))
