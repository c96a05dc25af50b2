"""How a processor computes with floats: kernels take subnormal numbers for zero, which functions of the host do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I32, I64

X86_64, AARCH64 = "x86-64", "aarch64"
# Rounding to the nearest, no traps, subnormal numbers as they are: MXCSR and FPCR.
_USUAL = 0x1F80, 0


@contextmanager
def usual_floats(function: Function, architecture: str) -> Iterator[None]:
    """Instructions that run with subnormal numbers as they are; those after them as those before."""
    if architecture == AARCH64:
        before = function.emit("call i64 @llvm.aarch64.get.fpcr()", I64)
        function.do(f"call void @llvm.aarch64.set.fpcr(i64 {_USUAL[1]})")
        yield
        function.do(f"call void @llvm.aarch64.set.fpcr(i64 {before.text})")
        return
    state, usual = function.stack(I32), function.stack(I32)
    function.do(f"call void @llvm.x86.sse.stmxcsr(ptr {state.text})")
    function.do(f"store i32 {_USUAL[0]}, ptr {usual.text}")
    function.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {usual.text})")
    yield
    function.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {state.text})")
