"""Functions of C's library that machine code is linked with, called by kernels with any sizes and overlaps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.kernel_program import Dispatch, KernelProgram
from hloforge.runtime.compile.direct.assemble import vmfb
from hloforge.runtime.compile.direct.helpers import called_helpers
from hloforge.runtime.compile.direct.host import DirectError, unavailable
from hloforge.runtime.compile.direct.objects import objects_of
from hloforge.runtime.compile.direct.relocatable import read
from tests.runtime.compile.direct.programs import array, manifest, whole

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable())

_BYTES = 700
# Copies an array, and calls a function on the copy with three numbers of another array.
_KERNEL = """
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memmove(ptr, ptr, i64)
define i32 @kernel(ptr %environment, ptr %state, ptr %workgroup) {{
entry:
  %pointers.at = getelementptr i8, ptr %state, i64 32
  %pointers = load ptr, ptr %pointers.at
  %data = load ptr, ptr %pointers
  %numbers.at = getelementptr ptr, ptr %pointers, i64 1
  %numbers = load ptr, ptr %numbers.at
  %result.at = getelementptr ptr, ptr %pointers, i64 2
  %result = load ptr, ptr %result.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr i8, ptr %data, i64 %i
  %to = getelementptr i8, ptr %result, i64 %i
  %byte = load i8, ptr %from
  store volatile i8 %byte, ptr %to
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, 700
  br i1 %done, label %call, label %loop
call:
  %first = load i64, ptr %numbers
  %second.at = getelementptr i64, ptr %numbers, i64 1
  %second = load i64, ptr %second.at
  %size.at = getelementptr i64, ptr %numbers, i64 2
  %size = load i64, ptr %size.at
  %a = getelementptr i8, ptr %result, i64 %first
  %b = getelementptr i8, ptr %result, i64 %second
  {call}
  ret i32 0
}}
"""


def session_of(call: str, declared: str = "") -> Any:
    """A session that calls a function on bytes at ``%a`` and ``%b`` with ``%size`` or ``%second`` as numbers."""
    data, numbers = array("u8", _BYTES), array("u64", 3)
    dispatch = Dispatch(0, (whole(0, data), whole(1, numbers), whole(2, data)))
    program = KernelProgram((data, numbers), (data,), 0, b"", (declared + _KERNEL.format(call=call),), (dispatch,))
    text = manifest([f"u8[{_BYTES}]", "u64[3]"], [f"u8[{_BYTES}]"])
    return hloforge.load(vmfb(program, text, "helpers", caching=False), device="local-sync")


# Halves between two numbers of bf16, what is a last bit of f64 beside them, and the ends of the range.
ROUNDED = [
    sign * number
    for sign in (1.0, -1.0)
    for half in (1 + 2**-8, 1 + 3 * 2**-8)
    for number in (
        half,
        half + 2**-23,
        half - 2**-23,
        half + 2**-40,
        half - 2**-40,
        1.0,
        0.0,
        1e39,
        3.39e38,
        np.inf,
        np.nan,
    )
]


def _nearest(number: float) -> Any:
    """Of two numbers of bf16 the nearer one, by exact arithmetic."""
    if not np.isfinite(number) or number == 0:
        return ml_dtypes.bfloat16(number)
    bits = int(np.array(ml_dtypes.bfloat16(np.float32(np.clip(number, -3.3895e38, 3.3895e38)))).view(np.uint16))
    around = np.array([bits - 1, bits, bits + 1], np.uint16).view(ml_dtypes.bfloat16).astype(np.float64)
    # Beyond the largest number there is infinity, at the distance of one more step.
    steps = [2.0**128 * np.sign(one) if np.isinf(one) else one for one in around]
    order = sorted(range(3), key=lambda n: (abs(steps[n] - number), (bits - 1 + n) % 2))
    return ml_dtypes.bfloat16(around[order[0]])


def data() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 256, _BYTES).astype(np.uint8)


@pytest.mark.parametrize("name", ["memcpy", "memmove"])
def test_copies(name: str) -> None:
    session = session_of(f"call void @llvm.{name}.p0.p0.i64(ptr %a, ptr %b, i64 %size, i1 false)")
    given = data()
    for size in (*range(70), 127, 128, 129, 200, 255, 256, 257):
        expected = given.copy()
        expected[300 : 300 + size] = given[3 : 3 + size]
        np.testing.assert_array_equal(session(given, np.array([300, 3, size], np.uint64)), expected)


def test_moves_within_an_array() -> None:
    session = session_of("call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %b, i64 %size, i1 false)")
    given = data()
    for size in (1, 5, 31, 63, 64, 65, 100, 128, 130, 192, 250):
        for distance in (-200, -100, -64, -63, -33, -1, 0, 1, 2, 40, 63, 64, 65, 129, 200):
            expected = given.copy()
            expected[200 + distance : 200 + distance + size] = given[200 : 200 + size]
            got = session(given, np.array([200 + distance, 200, size], np.uint64))
            np.testing.assert_array_equal(got, expected, f"{size} bytes by {distance}")


def test_fills() -> None:
    session = session_of(
        "%value = trunc i64 %second to i8\n  call void @llvm.memset.p0.i64(ptr %a, i8 %value, i64 %size, i1 false)"
    )
    given = data()
    for size in (*range(70), 128, 129, 255, 300):
        expected = given.copy()
        expected[7 : 7 + size] = 0xA5
        np.testing.assert_array_equal(session(given, np.array([7, 0xA5, size], np.uint64)), expected)


@pytest.mark.parametrize(("name", "kind", "dtype"), [("sf", "float", np.float32), ("df", "double", np.float64)])
def test_roundings_to_bf16(name: str, kind: str, dtype: Any) -> None:
    """By LLVM's own call, of numbers near halves and at the ends of their range."""
    session = session_of(
        f"%x = load {kind}, ptr %b, align 1\n  %y = call bfloat @__trunc{name}bf2({kind} %x)\n"
        "  store bfloat %y, ptr %a, align 1",
        f"declare bfloat @__trunc{name}bf2({kind})",
    )
    for number in ROUNDED:
        given = np.zeros(_BYTES, np.uint8)
        with np.errstate(over="ignore"):
            wide = np.array([number]).astype(dtype)
        given[100 : 100 + wide.nbytes] = wide.view(np.uint8)
        got = session(given, np.array([0, 100, 0], np.uint64))[:2].view(ml_dtypes.bfloat16)[0]
        expected = _nearest(float(wide[0]))
        assert got == expected or (np.isnan(got) and np.isnan(expected)), (number, got, expected)


def test_compares() -> None:
    session = session_of("%c = call i32 @memcmp(ptr %a, ptr %b, i64 %size)\n  store i32 %c, ptr %result, align 1")
    given = data()
    given[400:450] = given[100:150]
    for first, second, size in ((100, 400, 50), (100, 400, 51), (400, 100, 51), (100, 101, 9), (5, 6, 0)):
        got = session(given, np.array([first, second, size], np.uint64))[:4].view(np.int32)[0]
        one, other = bytes(given[first : first + size]), bytes(given[second : second + size])
        assert np.sign(got) == (one > other) - (one < other)


def test_a_loop_that_fills_becomes_a_call() -> None:
    text = """
define i32 @kernel(ptr %environment, ptr %state, ptr %workgroup) {
entry:
  %pointers.at = getelementptr i8, ptr %state, i64 32
  %pointers = load ptr, ptr %pointers.at
  %result = load ptr, ptr %pointers
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr i8, ptr %result, i64 %i
  store i8 9, ptr %to
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 5000
  br i1 %done, label %end, label %loop
end:
  ret i32 0
}"""
    one = array("u8", 5000)
    program = KernelProgram((), (one,), 0, b"", (text,), (Dispatch(0, (whole(0, one),)),))
    (made,) = objects_of([text], caching=False)
    assert read(made).lacking == ("memset",)
    session = hloforge.load(vmfb(program, manifest([], ["u8[5000]"]), "fill", caching=False))
    np.testing.assert_array_equal(session(), np.full(5000, 9, np.uint8))


def test_other_functions_are_none() -> None:
    with pytest.raises(DirectError, match="fmod, which nothing defines"):
        session_of("%x = sitofp i64 %size to double\n  %y = frem double %x, 3.0\n  store double %y, ptr %a, align 1")


@pytest.mark.parametrize(("size", "is_call"), [("64", False), ("4096", True), ("%size", True)])
def test_calls_are_seen_in_texts(size: str, *, is_call: bool) -> None:
    text = f"  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 {size}, i1 false)\n"
    assert called_helpers(text) == ({"memset"} if is_call else set())
