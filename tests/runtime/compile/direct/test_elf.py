"""The linker: kinds of relocations and sections, seen by kernels that depend on them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.kernel_program import Dispatch, KernelProgram
from hloforge.runtime.compile.direct import elf, relocatable
from hloforge.runtime.compile.direct.assemble import vmfb
from hloforge.runtime.compile.direct.host import DirectError, unavailable
from hloforge.runtime.compile.direct.objects import objects_of
from tests.runtime.compile.direct.programs import array, loop, manifest, sum_of, whole

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable())

_64, _PC32, _PLT32, _PC64 = 1, 2, 4, 24
_THROUGH_TABLE = {9, 41, 42}


def run(kernel: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a kernel makes of four numbers of 32 bits."""
    one = array("s32", 4)
    program = KernelProgram((one,), (one,), 0, b"", (kernel,), (Dispatch(0, (whole(0, one), whole(1, one))),))
    session = hloforge.load(vmfb(program, manifest(["s32[4]"], ["s32[4]"]), "elf", caching=False), device="local-sync")
    result: np.ndarray[Any, Any] = session(x)
    return result


def kinds(kernel: str) -> set[int]:
    """The kinds of relocations in its object."""
    sections = relocatable.read(objects_of([kernel], caching=False)[0]).sections
    return {one.kind for section in sections for one in section.relocations}


def kernel_of(body: str, rest: str) -> str:
    """A loop over four numbers, and what it refers to."""
    return loop(4, 1, body, "s32") + rest


NUMBERS = np.array([0, 1, 2, 3], np.int32)


def test_tables_of_numbers() -> None:
    kernel = kernel_of(
        """  %w = sext i32 %x0 to i64
  %p = getelementptr [4 x i32], ptr @kernel.table, i64 0, i64 %w
  %r = load i32, ptr %p""",
        "@kernel.table = private constant [4 x i32] [i32 7, i32 -5, i32 3, i32 9]",
    )
    assert _PC32 in kinds(kernel)
    np.testing.assert_array_equal(run(kernel, NUMBERS), [7, -5, 3, 9])


def test_tables_of_functions_and_calls() -> None:
    functions = "\n".join(
        f"define internal i32 @kernel.f{number}(i32 %x) noinline {{\n  %y = mul i32 %x, {10 + number}\n  ret i32 %y\n}}"
        for number in range(4)
    )
    kernel = kernel_of(
        """  %w = sext i32 %x0 to i64
  %p = getelementptr [4 x ptr], ptr @kernel.table, i64 0, i64 %w
  %f = load volatile ptr, ptr %p
  %r = call i32 %f(i32 %x0)""",
        "@kernel.table = private constant [4 x ptr] [ptr @kernel.f0, ptr @kernel.f1, ptr @kernel.f2, ptr @kernel.f3]\n"
        + functions,
    )
    assert _64 in kinds(kernel)
    np.testing.assert_array_equal(run(kernel, NUMBERS), [0, 11, 24, 39])


def test_addresses_through_a_table_and_calls_of_helpers() -> None:
    kernel = kernel_of(
        """  %at.place = alloca i32
  store volatile i32 %x0, ptr %at.place
  %from.place = alloca i32
  store volatile i32 41, ptr %from.place
  %f = load volatile ptr, ptr @kernel.pointer
  %same = icmp eq ptr %f, @memcpy
  %size = select i1 %same, i64 4, i64 0
  call ptr @memcpy(ptr %at.place, ptr %from.place, i64 %size)
  %y = load volatile i32, ptr %at.place
  %r = add i32 %y, %x0""",
        "declare ptr @memcpy(ptr, ptr, i64)\n@kernel.pointer = private constant ptr @memcpy",
    )
    found = kinds(kernel)
    assert _PLT32 in found and found & _THROUGH_TABLE
    np.testing.assert_array_equal(run(kernel, NUMBERS), NUMBERS + 41)


def test_distances_of_64_bits() -> None:
    kernel = kernel_of(
        """  %d = load volatile i64, ptr @kernel.distance
  %base = ptrtoint ptr @kernel.distance to i64
  %sum = add i64 %base, %d
  %f = inttoptr i64 %sum to ptr
  %r = call i32 %f(i32 %x0)""",
        """@kernel.distance = private constant i64 sub (i64 ptrtoint (ptr @kernel.f to i64),
                                             i64 ptrtoint (ptr @kernel.distance to i64))
define internal i32 @kernel.f(i32 %x) noinline {
  %y = add i32 %x, 100
  ret i32 %y
}""",
    )
    assert _PC64 in kinds(kernel)
    np.testing.assert_array_equal(run(kernel, NUMBERS), NUMBERS + 100)


def test_zeros_and_written_memory() -> None:
    kernel = kernel_of(
        """  %old = load volatile i32, ptr @kernel.zero
  store volatile i32 %x0, ptr @kernel.zero
  %start = load volatile i32, ptr @kernel.start
  %r = add i32 %old, %start""",
        "@kernel.zero = internal global i32 0\n@kernel.start = internal global i32 50",
    )
    np.testing.assert_array_equal(run(kernel, NUMBERS), [50, 50, 51, 52])


def test_alignments_hold() -> None:
    kernel = kernel_of(
        """  %a = ptrtoint ptr @kernel.wide to i64
  %low = and i64 %a, 255
  %n = trunc i64 %low to i32
  %r = add i32 %n, %x0""",
        "@kernel.wide = private constant [64 x i32] zeroinitializer, align 256",
    ).replace("%a = ptrtoint ptr @kernel.wide", "%w = load volatile ptr, ptr @kernel.p\n  %a = ptrtoint ptr %w")
    kernel += "\n@kernel.p = private constant ptr @kernel.wide"
    np.testing.assert_array_equal(run(kernel, NUMBERS), NUMBERS)


def test_equal_objects_are_linked_once() -> None:
    (data,) = objects_of(sum_of().kernels, caching=False)
    once = elf.link([data], [elf.Export("a", 0, "kernel", 3)], lambda _: None, "one")
    exports = [elf.Export("a", 0, "kernel", 3), elf.Export("b", 1, "kernel", 3)]
    twice = elf.link([data, data], exports, lambda _: None, "two")
    text = relocatable.read(data).sections[0].data
    assert once.count(text) == twice.count(text) == 1


def test_what_is_no_object_is_refused() -> None:
    (data,) = objects_of(sum_of().kernels, caching=False)
    for wrong in (b"", b"no object", data[:100], data[:16] + struct.pack("<HH", 3, 62) + data[20:]):
        with pytest.raises(DirectError):
            relocatable.read(wrong)


def test_undefined_symbols_are_errors() -> None:
    text = """declare i32 @elsewhere()
define i32 @kernel(ptr %0, ptr %1, ptr %2) {
  %r = call i32 @elsewhere()
  ret i32 %r
}"""
    (data,) = objects_of([text], caching=False)
    with pytest.raises(DirectError, match="elsewhere"):
        elf.link([data], [elf.Export("a", 0, "kernel", 0)], lambda _: None, "one")
    with pytest.raises(DirectError, match="other"):
        elf.link([data], [elf.Export("a", 0, "other", 0)], lambda _: data, "one")
