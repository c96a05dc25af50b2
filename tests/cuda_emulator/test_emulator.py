"""The emulated GPU: instructions by numpy and Python's own integers, and what kernels may not do."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator.opcodes import README, ROWS, Row, with_table
from tests.cuda_emulator import kernels
from tests.cuda_emulator.marks import needs_emulator

pytestmark = needs_emulator
Array = np.ndarray[Any, Any]
Run = Callable[..., list[Array]]

_WORDS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}
_INTEGERS = np.array([0, 1, -1, 2, -2, 31, 32, 33, 255, 256, 65535, 2**31 - 1, -(2**31), 123456789, -987654321, 7])
_FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 1e-3, 300.7, -300.7, 3e9, -3e9, 1e30, np.inf, -np.inf, np.nan, 0.1]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield lambda *arguments, **options: pool.submit(kernels.run, *arguments, **options).result(timeout=60)


def kernel(count: int, body: str, registers: str = "") -> str:
    """A kernel of so many arrays, with the thread's number in ``%t``, and their addresses in ``%a0`` …"""
    parameters = ",\n".join(f".param .u64 p{number}" for number in range(count))
    loads = "\n".join(f"ld.param.b64 %a{number}, [p{number}];" for number in range(count))
    declared = f".reg .b32 %t; .reg .b64 %a<{count + 1}>; .reg .b64 %at<8>; .reg .pred %p<4>; {registers}"
    return f".visible .entry kernel(\n{parameters}\n)\n{{\n{declared}\nmov.u32 %t, %tid.x;\n{loads}\n{body}\nret;\n}}\n"


def element_by_element(run: Run, line: str, operands: Sequence[Array], result: Any) -> Array:
    """What ``line``, from ``%x0``, ``%x1`` … to ``%y``, makes of arrays."""
    operands = [np.ascontiguousarray(operand) for operand in operands]
    result = np.dtype(result)
    declared = "".join(f".reg .{_WORDS[x.itemsize]} %x{number}; " for number, x in enumerate(operands))
    moves = []
    for number, x in enumerate([*operands, np.empty(0, result)]):
        moves.append(f"mul.wide.u32 %at{number}, %t, {x.itemsize}; add.s64 %at{number}, %a{number}, %at{number};")
    for number, x in enumerate(operands):
        moves.append(f"ld.global.{_WORDS[x.itemsize]} %x{number}, [%at{number}];")
    body = f"{''.join(moves)}\n{line}\nst.global.{_WORDS[result.itemsize]} [%at{len(operands)}], %y;"
    text = kernel(len(operands) + 1, body, f"{declared}.reg .{_WORDS[result.itemsize]} %y;")
    empty = np.zeros(operands[0].shape, result)
    return run(text, [*operands, empty], threads=operands[0].size)[-1]


def pairs(values: Any, dtype: Any) -> tuple[Array, Array]:
    """Each value with each other one."""
    with np.errstate(all="ignore"):
        array = np.array(values).astype(dtype)
    return np.repeat(array, array.size), np.tile(array, array.size)


def wrapped(values: list[int], dtype: Any) -> Array:
    bits = np.dtype(dtype).itemsize * 8
    return np.array([value % 2**bits for value in values], f"u{bits // 8}").view(dtype)


@pytest.mark.parametrize(
    ("line", "python"),
    [
        ("add.s32 %y, %x0, %x1;", lambda a, b: a + b),
        ("sub.s32 %y, %x0, %x1;", lambda a, b: a - b),
        ("mul.lo.s32 %y, %x0, %x1;", lambda a, b: a * b),
        ("mul.hi.s32 %y, %x0, %x1;", lambda a, b: (a * b) >> 32),
        ("mad.lo.s32 %y, %x0, %x1, %x1;", lambda a, b: a * b + b),
        ("min.s32 %y, %x0, %x1;", min),
        ("xor.b32 %y, %x0, %x1;", lambda a, b: a ^ b),
        ("shl.b32 %y, %x0, %x1;", lambda a, b: a << b if 0 <= b < 32 else 0),
        ("shr.s32 %y, %x0, %x1;", lambda a, b: a >> (b if 0 <= b < 32 else 31)),
        ("shr.u32 %y, %x0, %x1;", lambda a, b: a % 2**32 >> b if 0 <= b < 32 else 0),
        ("setp.lt.u32 %p1, %x0, %x1; selp.b32 %y, %x0, 5, %p1;", lambda a, b: a if a % 2**32 < b % 2**32 else 5),
        ("mov.pred %p1, -1; not.pred %p2, %p1; selp.b32 %y, %x0, %x1, %p2;", lambda _, b: b),
        ("setp.lt.s32 %p1, %x0, %x1; xor.pred %p2, %p1, -1; selp.b32 %y, %x0, %x1, %p2;", max),
        ("popc.b32 %y, %x0;", lambda a, _: (a % 2**32).bit_count()),
        ("clz.b32 %y, %x0;", lambda a, _: 32 - (a % 2**32).bit_length()),
        ("brev.b32 %y, %x0;", lambda a, _: int(f"{a % 2**32:032b}"[::-1], 2)),
        ("bfe.u32 %y, %x0, 4, 9;", lambda a, _: a % 2**32 >> 4 & 511),
        ("bfe.s32 %y, %x0, 4, 9;", lambda a, _: ((a % 2**32 >> 4 & 511) ^ 256) - 256),
        ("bfi.b32 %y, %x0, %x1, 8, 8;", lambda a, b: b & ~0xFF00 | (a & 255) << 8),
        ("prmt.b32 %y, %x0, %x1, 0x7610;", lambda a, b: a & 0xFFFF | b & 0xFFFF0000),
        ("shf.l.wrap.b32 %y, %x0, %x1, 5;", lambda a, b: b << 5 | a % 2**32 >> 27),
        ("sub.sat.s32 %y, %x0, %x1;", lambda a, b: max(-(2**31), min(a - b, 2**31 - 1))),
        ("set.lt.u32.s32 %y, %x0, %x1;", lambda a, b: -1 if a < b else 0),
        ("set.ge.f32.u32 %y, %x0, %x1;", lambda a, b: 0x3F800000 if a % 2**32 >= b % 2**32 else 0),
    ],
)
def test_integers(run: Run, line: str, python: Any) -> None:
    a, b = pairs(_INTEGERS, np.int32)
    found = element_by_element(run, line, [a, b], np.int32)
    expected = [python(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(found, wrapped(expected, np.int32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "function"),
    [("add.rn", np.add), ("mul.rn", np.multiply), ("div.rn", np.divide), ("min", np.fmin), ("max.NaN", np.maximum)],
)
def test_floats(run: Run, dtype: Any, name: str, function: Any) -> None:
    suffix = f"f{np.dtype(dtype).itemsize * 8}"
    if suffix == "f64":
        name = name.replace(".NaN", "")
        function = np.fmax if function is np.maximum else function
    a, b = pairs(_FLOATS, dtype)
    found = element_by_element(run, f"{name}.{suffix} %y, %x0, %x1;", [a, b], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, function(a, b))


@pytest.mark.parametrize(("mode", "towards"), [("rz", 0.0), ("rm", -np.inf), ("rp", np.inf)])
def test_rounding(run: Run, mode: str, towards: float) -> None:
    a, b = pairs([1 / 3, 1e16, 0.7, -0.3, -1e17], np.float64)
    found = element_by_element(run, f"add.{mode}.f64 %y, %x0, %x1;", [a, b], np.float64)
    near = a + b
    wide = a.astype(np.longdouble) + b.astype(np.longdouble)
    limit = np.where(near < 0, -towards if towards == 0 else towards, towards)
    beyond = (near > wide) if towards == -np.inf else (near < wide) if towards == np.inf else abs(near) > abs(wide)
    np.testing.assert_array_equal(found, np.where(beyond, np.nextafter(near, limit), near))


@pytest.mark.parametrize(
    ("line", "given", "made"),
    [
        ("cvt.rn.bf16.f32", np.float32, ml_dtypes.bfloat16),
        ("cvt.rn.f16.f32", np.float32, np.float16),
        ("cvt.f32.bf16", ml_dtypes.bfloat16, np.float32),
        ("cvt.f32.f16", np.float16, np.float32),
        ("cvt.rn.f32.f64", np.float64, np.float32),
        ("cvt.rn.f32.s32", np.int32, np.float32),
        ("cvt.s64.s32", np.int32, np.int64),
        ("cvt.u64.u32", np.uint32, np.uint64),
    ],
)
def test_conversions(run: Run, line: str, given: Any, made: Any) -> None:
    values = _INTEGERS if np.issubdtype(given, np.integer) else _FLOATS
    with np.errstate(all="ignore"):
        operand = np.array(values).astype(given)
        expected = operand.astype(made)
    found = element_by_element(run, f"{line} %y, %x0;", [operand], made)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_narrow_conversions_fill_the_register_with_the_sign(run: Run) -> None:
    operand = _INTEGERS.astype(np.int32)
    found = element_by_element(run, "cvt.s8.s32 %y, %x0;", [operand], np.int32)
    np.testing.assert_array_equal(found, operand.astype(np.int8).astype(np.int32))


def test_conversions_to_integers_end_at_their_ends(run: Run) -> None:
    operand = np.array(_FLOATS, np.float32)
    ends = np.iinfo(np.int32)
    expected = [0 if np.isnan(x) else int(np.clip(np.float64(x), ends.min, ends.max)) for x in operand]
    np.testing.assert_array_equal(element_by_element(run, "cvt.rzi.s32.f32 %y, %x0;", [operand], np.int32), expected)
    whole = element_by_element(run, "cvt.rmi.f32.f32 %y, %x0;", [operand], np.float32)
    np.testing.assert_array_equal(whole, np.floor(operand))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shfl.sync.bfly.b32 %y, %x0, 5, 31, -1;", lambda x: x[np.arange(32) ^ 5]),
        ("shfl.sync.up.b32 %y, %x0, 3, 0, -1;", lambda x: np.concatenate([x[:3], x[:-3]])),
        ("shfl.sync.idx.b32 %y, %x0, 9, 31, -1;", lambda x: np.full(32, x[9])),
        ("redux.sync.add.s32 %y, %x0, -1;", lambda x: np.full(32, x.sum())),
        (
            "setp.gt.s32 %p1, %x0, 40; vote.sync.ballot.b32 %y, %p1, -1;",
            lambda x: np.full(32, sum(1 << n for n in range(32) if x[n] > 40)),
        ),
    ],
)
def test_lanes_together(run: Run, line: str, expected: Any) -> None:
    x = (np.arange(32, dtype=np.int32) * 37) % 101
    np.testing.assert_array_equal(
        element_by_element(run, line, [x], np.int32), expected(x).astype(np.uint32).view(np.int32)
    )


# The thread's number through shared memory to the next thread.
_HANDED_ON = """
shl.b32 %r1, %t, 2; add.s32 %r2, %t, 1; and.b32 %r2, %r2, 63; shl.b32 %r2, %r2, 2;
cvt.u64.u32 %at1, %r1; cvt.u64.u32 %at2, %r2; mov.b64 %at3, handed; add.s64 %at4, %at3, %at1; add.s64 %at5, %at3, %at2;
st.shared.b32 [%at4], %t;
{barrier}
ld.shared.b32 %r3, [%at5]; add.s64 %at6, %a0, %at1; st.global.b32 [%at6], %r3;
"""


def _handed_on(barrier: str) -> str:
    return ".shared .align 4 .b8 handed[256];\n" + kernel(1, _HANDED_ON.format(barrier=barrier), ".reg .b32 %r<4>;")


def test_shared_memory_behind_a_barrier(run: Run) -> None:
    (found,) = run(_handed_on("bar.sync 0;"), [np.zeros(64, np.int32)], threads=64)
    np.testing.assert_array_equal(found, np.roll(np.arange(64), -1))


# Seven numbers in shared memory of 28 bytes; the last vector has four bytes behind them, which no number is read from.
_SEVEN = """
st.shared.v4.b32 [seven], {%t, %t, %t, %t}; st.shared.v2.b32 [seven+16], {%t, %t}; st.shared.b32 [seven+24], 5;
ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [SEVEN]; st.global.b32 [%a0], %r2; st.global.b32 [%a0+4], %r3;
"""


def test_vectors_at_the_end_of_shared_memory(run: Run) -> None:
    head = ".extern .shared .align 16 .b8 seven[];\n"
    text = head + kernel(1, _SEVEN.replace("SEVEN", "seven+16"), ".reg .b32 %r<4>;")
    (found,) = run(text, [np.zeros(2, np.uint32)], threads=1, shared=28)
    np.testing.assert_array_equal(found, [5, 0xCBCBCBCB])
    with pytest.raises(RuntimeError, match="bytes of shared memory"):
        run(text.replace("[seven+16];", "[seven+32];"), [np.zeros(2, np.uint32)], threads=1, shared=28)


_FIRST_AND_OTHERS = "setp.eq.s32 %p1, %t, 0; @%p1 shfl.sync.idx.b32 %t, %t, 0, 31, -1; @!%p1 bar.sync 0;"


@pytest.mark.parametrize(
    ("text", "threads", "message"),
    [
        (_handed_on(""), 64, "nothing orders this behind what thread"),
        (_handed_on("bar.warp.sync -1;"), 64, "nothing orders this behind what thread"),
        (kernel(1, "st.global.b32 [%a0], %t; ld.global.b32 %t, [%a0];"), 2, "nothing orders this"),
        (kernel(1, "st.global.b32 [%a0+256], %t;"), 1, "no memory of the device"),
        (kernel(1, "st.global.b32 [%a0+2], %t;"), 1, "not aligned"),
        (kernel(1, "setp.eq.s32 %p1, %t, 0; @%p1 bar.sync 1; @!%p1 bar.sync 2;"), 2, "different barriers"),
        (kernel(1, _FIRST_AND_OTHERS), 2, "never come"),
        (kernel(1, "trap;"), 1, "a trap"),
    ],
)
def test_what_kernels_may_not_do(run: Run, text: str, threads: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        run(text, [np.zeros(64, np.int32)], threads=threads)


@pytest.mark.parametrize(
    "line",
    [
        "tex.1d.v4.f32.s32 {%t, %t, %t, %t}, [%a0, {%t}];",
        "fma.rn.relu.f16 %t, %t, %t, %t;",
        "testp.infinite.f32 %p1, %t;",
        "atom.global.add.noftz.f16x2 %t, [%a0], %t;",
        "cp.async.bulk.commit_group;",
        "prmt.b32.f4e %t, %t, %t, 1;",
        "cvt.rna.tf32.f32 %t, %t;",
        "bar.arrive 0, 32;",
    ],
)
def test_an_unknown_instruction_is_no_program(run: Run, line: str) -> None:
    with pytest.raises(RuntimeError, match="not read"):
        run(kernel(1, line), [np.zeros(1)])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.opcode)
def test_each_opcode_of_the_table_is_read(run: Run, row: Row) -> None:
    assert row.example.split(".")[0].split()[0] == row.opcode
    zeros = np.zeros(1, np.int32)
    # The example is read and not run: the kernel has left before.
    (found,) = run(kernel(1, f"ret;\n$L: {row.example};\n$T: .branchtargets $L;"), [zeros])
    np.testing.assert_array_equal(found, zeros)


def test_the_readme_shows_the_table() -> None:
    text = README.read_text()
    assert text == with_table(text)
    assert all(f"| `{row.opcode}` |" in text for row in ROWS)
