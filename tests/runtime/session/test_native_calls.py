"""Calls of our own kernels without IREE's runtime, beside calls by it."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.compile.generated import unavailable
from hloforge.runtime.native import caller
from hloforge.runtime.native.library import Library, MappingError
from hloforge.runtime.native.schedule_file import Bounded, Part, Schedule, read
from hloforge.runtime.session.session import Session
from tests.robustness.forks import in_fork

pytestmark = pytest.mark.skipif(
    bool(unavailable()) or not caller.is_available(), reason=unavailable() or "no calls without IREE's runtime here"
)

SUMS = """
func.func @main(%a: tensor<4x16xf32>, %b: tensor<16xf32>) -> (tensor<4x16xf32>, tensor<f32>) {
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %0 = stablehlo.multiply %a, %bb : tensor<4x16xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<4x16xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<4x16xf32>, tensor<f32>
}"""


def both(text: str) -> tuple[Session, Session]:
    """A session that calls kernels itself, and one that asks IREE's runtime."""
    executable = hloforge.compile(text)
    own, other = executable.load(device="local-sync"), executable.load(device="local-sync")
    assert own._native is not None
    other._native = None
    return own, other


def same(own: Any, other: Any) -> None:
    assert type(own) is type(other)
    for one, two in zip(own, other, strict=True) if isinstance(own, tuple) else [(own, other)]:
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.tobytes() == two.tobytes()


def test_results_are_those_of_irees_runtime() -> None:
    rng = np.random.default_rng(3)
    own, other = both(SUMS)
    a, b = rng.standard_normal((4, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    same(own(a, b), other(a, b))
    # What is no plain array goes another way to the same results.
    same(own(np.asfortranarray(a), b), other(a, b))
    same(own(np.repeat(a, 2, 1)[:, ::2], b), other(a, b))
    same(own(**dict(zip(own._names, (a, b), strict=True))), other(a, b))


def test_arrays_that_lie_otherwise_or_were_pickled_are_called_natively() -> None:
    own, other = both(SUMS)
    call, fits = own._native, []
    assert call is not None

    def counted(flat: Any) -> Any:
        found = call(flat)
        fits.append(found is not None)
        return found

    own._native = counted  # type: ignore[assignment]
    own._native.inside = call.inside  # type: ignore[union-attr,misc]
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((4, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    unaligned = np.frombuffer(bytearray(b"x" + b.tobytes()), np.float32, 16, 1)
    for left, right in ((pickle.loads(pickle.dumps(a)), b), (np.asfortranarray(a), b), (a, unaligned)):
        same(own(left, right), other(left, right))
        assert fits.pop() and not fits.pop()
    with pytest.raises(ArgumentError):
        own(a.astype(np.float64), b)


TUPLES = """HloModule tuples
ENTRY main {
  t = (f32[2], (f32[3], f32[2])) parameter(0)
  e = () parameter(1)
  a = f32[2] get-tuple-element(t), index=0
  n = (f32[3], f32[2]) get-tuple-element(t), index=1
  b = f32[2] get-tuple-element(n), index=1
  s = f32[2] add(a, b)
  ROOT r = (f32[2], f32[2]) tuple(s, b)
}"""


def test_tuples_of_parameters_are_taken_apart() -> None:
    """A program of tuples has no slower calls than one of arrays."""
    own, other = both(TUPLES)
    asked: list[Any] = []
    call = own._native
    own._native = lambda flat: asked.append(len(flat)) or call(flat)  # type: ignore[assignment,misc,return-value]
    own._native.inside = call.inside  # type: ignore[union-attr,misc]
    a, b, c = (np.arange(size, dtype=np.float32) for size in (2, 3, 2))
    same(own((a, [b, c]), ()), other((a, (b, c)), ()))
    own.call_device((a, (b, c)), ())
    assert asked == [3, 3]
    for wrong in (((a, b, c), ()), ((a, (b, c)), 1), ((a, (b, c)),), (a, (b, c), ()), (5, ())):
        with pytest.raises(ArgumentError):
            own(*wrong)
    assert asked == [3, 3]


def test_subnormal_numbers_are_zero_as_for_irees_runtime_and_xla() -> None:
    own, other = both("""func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
      %0 = stablehlo.multiply %a, %b : tensor<3xf32>
      return %0 : tensor<3xf32> }""")
    a, b = np.array([1e-40, 1e-30, 2.0], np.float32), np.array([1.0, 1e-10, 3.0], np.float32)
    same(own(a, b), other(a, b))
    np.testing.assert_array_equal(own(a, b), np.array([0, 0, 6], np.float32))
    # The caller's own arithmetic goes on with them.
    assert a[0] * np.float32(1) != 0


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("f32", np.float32),
        ("f64", np.float64),
        ("bf16", ml_dtypes.bfloat16),
        ("f16", np.float16),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("i8", np.int8),
        ("ui64", np.uint64),
        ("complex<f64>", np.complex128),
        ("i1", np.bool_),
    ],
)
def test_every_type_and_rank(element: str, dtype: Any) -> None:
    shapes = ["", "5x", "2x0x3x", "1x2x3x1x2x"]
    kinds = [f"tensor<{shape}{element}>" for shape in shapes]
    parameters = ", ".join(f"%p{n}: {kind}" for n, kind in enumerate(kinds))
    bodies = "".join(f"%r{n} = stablehlo.reverse %p{n}, dims = [0] : {kind}\n" for n, kind in enumerate(kinds) if n)
    own, other = both(
        f"func.func @main({parameters}) -> ({', '.join(kinds)}) {{ {bodies}"
        f"return %p0, %r1, %r2, %r3 : {', '.join(kinds)} }}"
    )
    arrays = [
        (np.arange(np.prod(dims, dtype=int)).reshape(dims) % 2).astype(dtype)
        for dims in ((), (5,), (2, 0, 3), (1, 2, 3, 1, 2))
    ]
    same(own(*arrays), other(*arrays))


def test_wrong_arguments_are_named() -> None:
    own, _ = both(SUMS)
    a, b = np.ones((4, 16), np.float32), np.ones(16, np.float32)
    for arguments in ((a.astype(np.float64), b), (a, a), (a,), (a, b[:3])):
        with pytest.raises(ArgumentError):
            own(*arguments)


def test_results_are_new_arrays_each_time() -> None:
    own, _ = both("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }")
    a = np.ones(8, np.float32)
    first, second = own(a), own(a)
    assert not np.may_share_memory(first, second)
    assert not np.may_share_memory(first, a)
    first[:] = 3
    assert second[0] == a[0] == 1


def test_device_arrays_go_in_and_come_out() -> None:
    own, other = both(SUMS)
    a, b = np.full((4, 16), 2, np.float32), np.ones(16, np.float32)
    made, total = own.call_device(own.put(a, 0), b)
    assert made.shape == (4, 16)
    np.testing.assert_array_equal(np.asarray(made), a)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(made)[0, 0] = 1
    # IREE's runtime takes what a kernel made, and the reverse.
    again, _ = other.call_device(made, b)
    back, _ = own.call_device(again, other.put(b, 1))
    np.testing.assert_array_equal(np.asarray(back), a)
    assert float(np.asarray(total)) == 128


def test_donated_device_arrays_end() -> None:
    own, _ = both("""HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
      ENTRY main { p = f32[4] parameter(0)
        ROOT r = f32[4] add(p, p) }""")
    given = own.put(np.ones(4, np.float32), 0)
    result = own.call_device(given)
    np.testing.assert_array_equal(np.asarray(result), 2)
    with pytest.raises(ArgumentError, match="was donated"):
        np.asarray(given)


def test_threads_do_not_disturb_each_other() -> None:
    own, _ = both("""func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = stablehlo.dot %a, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %1 = stablehlo.dot %0, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %1 : tensor<64x64xf32> }""")
    wrong: list[int] = []

    def work(number: int) -> None:
        a = np.eye(64, dtype=np.float32) * number
        for _ in range(200):
            if not np.array_equal(own(a), np.eye(64) * number**3):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


LARGE = """
func.func @main(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %0 = stablehlo.dot %a, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = stablehlo.dot %0, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0, %1 : tensor<512x512xf32>, tensor<512x512xf32> }"""


def test_threads_share_large_dispatches_and_calls_the_threads() -> None:
    """Several callers at once: one has the pool, the others do all of their work themselves."""
    executable = hloforge.compile(LARGE)
    alone, several = executable.load(device="local-sync"), executable.load(threads=4)
    assert several._native is not None
    assert any(part.workgroups > 1 for part in several._native._program.schedule.parts)
    rng = np.random.default_rng(0)
    cases = [[rng.integers(-3, 4, (512, 512)).astype(np.float32) for _ in range(2)] for _ in range(3)]
    expected = [alone(*case) for case in cases]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(15):
            for one, other in zip(several(*cases[number]), expected[number], strict=True):
                if not np.array_equal(one, other):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_with_irees_views_are_shared_as_well() -> None:
    session = hloforge.compile(LARGE).load(threads=2)
    ones, numbers = np.ones((512, 512), np.float32), np.arange(512 * 512, dtype=np.float32).reshape(512, 512) % 7
    views = [session.put(array, number).buffer_view for number, array in enumerate((ones, numbers))]
    for view, codec, expected in zip(session.call_views(views), session.results, session(ones, numbers), strict=True):
        np.testing.assert_array_equal(codec.decode(view), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_no_helpers_and_does_the_work_itself() -> None:
    session = hloforge.compile(LARGE).load(threads=3)
    ones = np.ones((512, 512), np.float32)
    session(ones, ones)
    child = os.fork()
    if not child:
        os._exit(0 if session(ones, ones)[1][3, 4] == 512 * 512 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session(ones, ones)[1][3, 4] == 512 * 512


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_calls_on() -> None:
    own, _ = both(SUMS)
    a, b = np.ones((4, 16), np.float32), np.ones(16, np.float32)
    own(a, b)
    child = os.fork()
    if not child:
        os._exit(0 if own(a, b)[1] == 64 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


BINDINGS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)))


@given(st.lists(st.integers(0, 5), max_size=4), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), BINDINGS)))
@settings(max_examples=30, deadline=None)
def test_schedules_are_read_as_they_were_written(cuts: list[int], parts: list[tuple[int, int, list[Any]]]) -> None:
    schedule = Schedule(1, 1, 64, tuple(Part(kernel, groups, tuple(bound)) for kernel, groups, bound in parts))
    data = schedule.to_bytes()
    assert read(data) == schedule
    for cut in cuts:
        assert read(data[: max(len(data) - 1 - 8 * cut, 0)]) is None


def test_schedules_of_bounded_results() -> None:
    """A size is a number, or one of the results after those that a caller gets."""
    for one, is_right in [
        (Bounded((8, 3), (-3, 3)), True),
        (Bounded((8, 3), (-3, 2)), False),
        (Bounded((8, 3), (-2, 3)), False),
        (Bounded((8, 3), (-4, 3)), False),
        (Bounded((-8, 3), (-3, 3)), False),
    ]:
        schedule = Schedule(1, 3, 0, (), 0, (), (one, Bounded((), ())))
        data = schedule.to_bytes()
        assert read(data) == (schedule if is_right else None)
        assert all(read(data[:length]) is None for length in range(0, len(data), 8))


_CUT = """func.func @main(%x: tensor<512x3xf32>, %n: tensor<i32>)
    -> (tensor<?x3xf32>, tensor<i32>, tensor<?xi1>) {
  %y = stablehlo.negate %x : tensor<512x3xf32>
  %cut = stablehlo.set_dimension_size %y, %n, dim = 0 : (tensor<512x3xf32>, tensor<i32>) -> tensor<?x3xf32>
  %two = stablehlo.add %n, %n : tensor<i32>
  %t = stablehlo.constant dense<true> : tensor<4xi1>
  %few = stablehlo.set_dimension_size %t, %two, dim = 0 : (tensor<4xi1>, tensor<i32>) -> tensor<?xi1>
  return %cut, %two, %few : tensor<?x3xf32>, tensor<i32>, tensor<?xi1> }"""


def test_sizes_that_a_call_decides() -> None:
    own, other = both(_CUT)
    asked: list[Any] = []
    invoke = own._invoke
    own._invoke = lambda inputs: asked.append(inputs) or invoke(inputs)  # type: ignore[assignment,func-returns-value]
    x, kept = np.random.default_rng(0).standard_normal((512, 3)).astype(np.float32), []
    for n in (0, 1, 7, 63, 64, 511, 512, 600, -3):
        size = np.array(n, np.int32)
        found = own(x, size)
        same(found, other(x, size))
        kept.append((n, found[0]))
        on_device = own.call_device(x, size)
        same(tuple(np.asarray(array) for array in on_device), found)
        assert on_device[0].shape == found[0].shape
    assert not asked
    for n, rows in kept:
        # Later calls have other memory, and what is a small part of it is a copy.
        np.testing.assert_array_equal(rows, -x[: max(n, 0)])
        assert n >= 64 or rows.base is None or rows.base.nbytes <= rows.nbytes
    # Nobody else can make results whose sizes he does not know.
    assert not own.writes
    assert not own.write([x, np.int32(1)], [np.empty((1, 3), np.float32)])
    views = [own.put(x, 0).buffer_view, own.put(np.int32(5), 1).buffer_view]
    assert [tuple(view.shape) for view in own.call_views(views)] == [(5, 3), (), (4,)]
    assert len(own.call_views_timed(views).results) == 3


def test_what_is_no_library_is_refused() -> None:
    for data in (b"", b"\x7fELF", bytes(200), b"\x7fELF\2\1\1" + bytes(300)):
        with pytest.raises(MappingError):
            Library(data)


def test_code_in_use_outlives_that_of_other_threads() -> None:
    """Threads that load at once may each make the code that calls kernels; ``cache`` lets go of all but the last."""

    def call() -> None:
        own, _ = both(SUMS)
        a, b = np.ones((4, 16), np.float32), np.full(16, 2, np.float32)
        own(a, b)
        caller._method.cache_clear()
        caller._code.cache_clear()
        gc.collect()
        both(SUMS)
        _, total = own(a, b)
        assert total == 128

    assert in_fork(call) == 0


def test_constants_of_a_file_are_mapped(tmp_path: Path) -> None:
    """A file has no second copy in memory."""
    table = np.random.default_rng(5).standard_normal((1024, 256)).astype(np.float32)
    text = f"""
func.func @main(%x: tensor<256xf32>) -> tensor<1024xf32> {{
  %w = stablehlo.constant dense<"0x{table.tobytes().hex()}"> : tensor<1024x256xf32>
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0]
    : (tensor<1024x256xf32>, tensor<256xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}}"""
    executable = hloforge.compile(text)
    path = tmp_path / "large.vmfb"
    executable.save(path)
    x = np.ones(256, np.float32)
    for session in (executable.load(), hloforge.load(path)):
        assert session._native is not None
        np.testing.assert_allclose(session(x), table @ x, rtol=1e-4, atol=1e-3)
    assert isinstance(session._native._program.constants, np.memmap)


def test_helpers_outlive_what_the_interpreter_frees(tmp_path: Path) -> None:
    """They look at the pool and run its code until the process has ended."""
    path = tmp_path / "shared.vmfb"
    hloforge.compile(LARGE).save(path)
    script = f"""
import gc, time, numpy, hloforge
from hloforge.runtime.native import caller, pool
session = hloforge.load({str(path)!r}, threads=2)
session(*[numpy.ones((512, 512), numpy.float32)] * 2)
pool.pool().memory = None
caller._KEPT.clear(), caller._code.cache_clear(), caller._method.cache_clear()
del session
gc.collect()
time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
