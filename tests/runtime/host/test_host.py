"""Python functions that programs call: arrays in, checked arrays out, in any place of a program and on any device."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.element_types import TABLE, ElementType
from hloforge.runtime.artifact.executable import Executable

DEVICES = ("local-sync", "local-task")
ONE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.custom_call @test.one(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32> }"""
X = np.float32([1, 2, 3, 4])


def compiled(text: str, *names: str) -> Executable:
    return hloforge.compile(text, host_calls=frozenset(names))


@pytest.fixture(scope="module")
def one() -> Executable:
    return compiled(ONE, "test.one")


@pytest.fixture
def registered() -> Iterator[Callable[..., None]]:
    """``hloforge.host.register`` that forgets after the test."""
    names: list[str] = []

    def register(name: str, function: Any, **options: Any) -> None:
        hloforge.host.register(name, function, **options)
        names.append(name)

    yield register
    for name in names:
        hloforge.host.unregister(name)


@pytest.mark.parametrize("device", DEVICES)
def test_every_element_type_goes_there_and_back(device: str) -> None:
    lines, results = [], []
    for row in TABLE:
        type_ = f"tensor<5x{row.mlir}>"
        lines.append(f"%r{row.name} = stablehlo.custom_call @same(%{row.name}) : ({type_}) -> {type_}")
        results.append(row)
    types = ", ".join(f"tensor<5x{row.mlir}>" for row in TABLE)
    parameters = ", ".join(f"%{row.name}: tensor<5x{row.mlir}>" for row in TABLE)
    body, returned = "\n".join(lines), ", ".join(f"%r{row.name}" for row in TABLE)
    text = f"func.func @main({parameters}) -> ({types}) {{\n{body}\nreturn {returned} : {types} }}"
    seen: list[np.ndarray[Any, Any]] = []

    def same(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.append(x.copy())
        return x[::-1]

    arguments = [_values(row) for row in TABLE]
    given = compiled(text, "same").load(host={"same": same}, device=device)(*arguments)
    for row, argument, got, result in zip(TABLE, arguments, seen, given, strict=True):
        assert got.dtype == result.dtype == row.dtype
        assert got.tobytes() == argument.tobytes(), row.name
        assert result.tobytes() == argument[::-1].tobytes(), row.name


def _values(row: ElementType) -> np.ndarray[Any, Any]:
    """Five values, special ones among them."""
    if row.name == "pred":
        return np.array([True, False, True, True, False])
    if row.is_integer:
        low = -(1 << row.bits - 1) if row.kind.name == "SIGNED" else 0
        return np.array([low, low + (1 << row.bits) - 1, 1, 0, 1], object).astype(row.dtype)
    if row.bits <= 8:
        return np.array([0, 1, 2, 3, 5], np.uint8).view(row.dtype)
    return np.array([np.nan, -0.0, np.inf, 1.5, -2]).astype(row.dtype)


def test_layouts_tuples_attributes_and_sizes() -> None:
    """Each of a call's forms; functions see logical arrays, and what they return may have any strides."""
    text = """func.func @main(%x: tensor<2x3xf32>, %e: tensor<0x3xf32>, %s: tensor<i32>)
        -> (tensor<3x2xf32>, tensor<0xf32>, tensor<i32>, tensor<2x3xf32>) {
      %t = stablehlo.tuple %x, %s : tuple<tensor<2x3xf32>, tensor<i32>>
      %a:2 = stablehlo.custom_call @pair(%t, %e) {api_version = 4 : i32,
        backend_config = {scale = 2.0 : f32, shifts = array<i64: 1, 2, 3>}}
        : (tuple<tensor<2x3xf32>, tensor<i32>>, tensor<0x3xf32>) -> (tensor<3x2xf32>, tensor<0xf32>)
      %n = stablehlo.custom_call @number() {backend_config = "the text"} : () -> tensor<i32>
      %c = stablehlo.custom_call @columns(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %a#0, %a#1, %n, %c : tensor<3x2xf32>, tensor<0xf32>, tensor<i32>, tensor<2x3xf32> }"""

    def pair(both: tuple[Any, Any], empty: Any, *, scale: float, shifts: Any) -> tuple[Any, Any]:
        x, s = both
        assert empty.shape == (0, 3) and s.shape == () and not x.flags.writeable
        return (x * np.float32(scale) + shifts.astype(np.float32) + np.float32(s)).T, np.empty(0, np.float32)

    def columns(x: Any) -> Any:
        assert x.shape == (2, 3) and x.flags.f_contiguous
        return x + 1

    host = {"pair": pair, "number": lambda backend_config: len(backend_config), "columns": columns}
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    session = compiled(text, *host).load(host=host, check_lifetimes=True)
    a, empty, n, c = session(x, np.empty((0, 3), np.float32), 10)
    np.testing.assert_array_equal(a, (x * 2 + [1, 2, 3] + 10).T)
    assert empty.shape == (0,) and n == len("the text")
    np.testing.assert_array_equal(c, x + 1)


CONTROL = """func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond { %more = stablehlo.custom_call @more(%i) {has_side_effect = true} : (tensor<i32>) -> tensor<i1>
           stablehlo.return %more : tensor<i1> }
    do { %b = stablehlo.custom_call @step(%i, %a) {has_side_effect = true}
           : (tensor<i32>, tensor<4xf32>) -> tensor<4xf32>
         %c = stablehlo.add %b, %a : tensor<4xf32>
         %j = stablehlo.add %i, %one : tensor<i32>
         stablehlo.return %j, %c : tensor<i32>, tensor<4xf32> }
  %s = "stablehlo.if"(%p) ({
    %y = stablehlo.custom_call @yes(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %y : tensor<4xf32>
  }, {
    %n = stablehlo.custom_call @no(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %n : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %r#1, %s : tensor<4xf32>, tensor<4xf32> }"""


@pytest.mark.parametrize("device", DEVICES)
def test_loops_and_conditions_call_as_often_as_they_run(device: str) -> None:
    trace: list[Any] = []

    def more(i: Any) -> bool:
        trace.append(f"more {i}")
        return bool(i < 3)

    def step(i: Any, a: Any) -> Any:
        trace.append(f"step {i}")
        return a + np.float32(i)

    def branch(name: str) -> Any:
        return lambda x: (trace.append(name), -x)[1]

    host = {"more": more, "step": step, "yes": branch("yes"), "no": branch("no")}
    session = compiled(CONTROL, *host).load(host=host, device=device)
    for taken, name in ((True, "yes"), (False, "no")):
        trace.clear()
        r, s = session(X, np.array(taken))
        assert trace == ["more 0", "step 0", "more 1", "step 1", "more 2", "step 2", "more 3", name]
        expected = X
        for i in range(3):
            expected = expected + np.float32(i) + expected
        np.testing.assert_array_equal(r, expected)
        np.testing.assert_array_equal(s, -X)


def test_a_branch_that_is_not_taken_calls_nothing() -> None:
    """Though its call has no side effect."""
    text = """func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
      %s = "stablehlo.if"(%p) ({
        %y = stablehlo.custom_call @yes(%x) : (tensor<4xf32>) -> tensor<4xf32>
        stablehlo.return %y : tensor<4xf32>
      }, {
        %n = stablehlo.custom_call @no(%x) : (tensor<4xf32>) -> tensor<4xf32>
        stablehlo.return %n : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %s : tensor<4xf32> }"""
    trace: list[str] = []
    host = {name: lambda x, name=name: (trace.append(name), x)[1] for name in ("yes", "no")}
    session = compiled(text, *host).load(host=host)
    for taken in (True, False):
        session(X, np.array(taken))
    assert trace == ["yes", "no"]


def test_a_large_argument_is_passed_where_it_is(aligned: Callable[..., np.ndarray[Any, Any]]) -> None:
    text = """func.func @main(%x: tensor<100x100xf32>) -> tensor<f32> {
      %y = stablehlo.custom_call @total(%x) : (tensor<100x100xf32>) -> tensor<f32>
      return %y : tensor<f32> }"""
    x = aligned((100, 100))
    shared: list[bool] = []

    def total(seen: np.ndarray[Any, Any]) -> Any:
        shared.append(np.shares_memory(seen, x))
        return seen.sum()

    assert compiled(text, "total").load(host={"total": total})(x) == x.sum()
    assert shared == [True]


@pytest.mark.parametrize("device", DEVICES)
def test_an_exception_comes_out_as_itself_and_the_session_goes_on(one: Executable, device: str) -> None:
    class SpecialError(Exception):
        pass

    def fail(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if x[0] < 0:
            raise SpecialError("negative")
        if x[0] == 0:
            raise KeyboardInterrupt
        return x

    session = one.load(host={"test.one": fail}, device=device)
    for _ in range(2):
        with pytest.raises(SpecialError, match="negative") as caught:
            session(-X)
        assert any(entry.name == "fail" for entry in caught.traceback)
        with pytest.raises(KeyboardInterrupt):
            session(0 * X)
        np.testing.assert_array_equal(session(X), X)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        pytest.param(np.float64([1, 2, 3, 4]), r"result 0: expected f32\[4\], got float64 array", id="type"),
        pytest.param(
            np.float32([1, 2, 3]), r"result 0: expected f32\[4\], got float32 array of shape \(3,\)", id="size"
        ),
        pytest.param(None, r"result 0: expected f32\[4\], got object array", id="none"),
        pytest.param((X, X), r"result 0: expected f32\[4\]", id="two"),
    ],
)
def test_wrong_results_are_named(one: Executable, returned: Any, message: str) -> None:
    session = one.load(host={"test.one": lambda x: returned})
    with pytest.raises(hloforge.ExecutionError, match=r"@test.one\(f32\[4\]\) -> f32\[4\] returned .*" + message):
        session(X)


def test_a_wrong_number_of_results_is_named() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y:2 = stablehlo.custom_call @two(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %y#0, %y#1 : tensor<4xf32>, tensor<4xf32> }"""
    executable = compiled(text, "two")
    for returned, got in (((X,), "1 values"), (X, "a ndarray")):
        with pytest.raises(hloforge.ExecutionError, match=f"declare: {got} for"):
            executable.load(host={"two": lambda x, returned=returned: returned})(X)


def test_results_are_nested_as_declared() -> None:
    text = """HloModule nested
      ENTRY e { x = f32[] parameter(0)
        t = ((f32[], s32[]), (f32[])) custom-call(x), custom_call_target="nested"
        u = (f32[], s32[]) get-tuple-element(t), index=0
        v = (f32[]) get-tuple-element(t), index=1
        a = f32[] get-tuple-element(v), index=0
        b = s32[] get-tuple-element(u), index=1
        ROOT r = (f32[], s32[]) tuple(a, b) }"""
    executable = compiled(text, "nested")
    assert executable.load(host={"nested": lambda x: ((x, 3), (x + 1,))})(np.float32(1)) == (2, 3)
    with pytest.raises(hloforge.ExecutionError, match=r"3 values for \(\(f32\[\], s32\[\]\), \(f32\[\]\)\)"):
        executable.load(host={"nested": lambda x: (x, 3, x)})(np.float32(1))


def test_a_function_may_call_sessions_and_fail_in_them(one: Executable) -> None:
    inner = one.load(host={"test.one": lambda x: x * np.float32(2)})
    broken = one.load(host={"test.one": lambda x: 1 / 0})

    def outer(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        with pytest.raises(ZeroDivisionError):
            broken(x)
        if x[0] == 7:
            return np.asarray(broken(x))
        return np.asarray(inner(x)) + 1

    session = one.load(host={"test.one": outer})
    np.testing.assert_array_equal(session(X), X * 2 + 1)
    with pytest.raises(ZeroDivisionError):
        session(np.float32([7, 0, 0, 0]))
    np.testing.assert_array_equal(session(X), X * 2 + 1)


def test_arguments_must_not_be_kept_unless_copied(one: Executable, registered: Callable[..., None]) -> None:
    kept: list[Any] = []

    def keep(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kept.append(x[1:])
        return x

    def forget(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        cycle: list[Any] = [x]
        cycle.append(cycle)
        return x

    with pytest.raises(hloforge.ExecutionError, match="keeps operand 0 after its call"):
        one.load(host={"test.one": keep}, check_lifetimes=True)(X)
    np.testing.assert_array_equal(one.load(host={"test.one": forget}, check_lifetimes=True)(X), X)
    kept.clear()
    registered("test.one", keep, copy=True)
    session = one.load(check_lifetimes=True)
    for factor in (1, 2, 3):
        session(X * np.float32(factor))
    assert [part.tolist() for part in kept] == [[2, 3, 4], [4, 6, 8], [6, 9, 12]]


def test_results_are_the_callers(one: Executable) -> None:
    held = np.float32([9, 9, 9, 9])
    session = one.load(host={"test.one": lambda x: held})
    result = session(X)
    held[:] = 0
    assert result.tolist() == [9, 9, 9, 9]


def test_a_session_ends_though_its_function_refers_to_it(one: Executable) -> None:
    """IREE's objects are no part of Python's collector: a cycle through them would never end."""

    def run() -> weakref.ref[hloforge.Session]:
        sessions: list[hloforge.Session] = []
        sessions.append(one.load(host={"test.one": lambda x: x * np.float32(len(sessions))}))
        np.testing.assert_array_equal(sessions[0](X), X)
        return weakref.ref(sessions[0])

    ends = run()
    gc.collect()
    assert ends() is None


def test_threads_call_at_once(one: Executable) -> None:
    session = one.load(host={"test.one": lambda x: x + 1})
    wrong: list[float] = []

    def work(number: int) -> None:
        x = np.full(4, number, np.float32)
        for _ in range(200):
            if session(x)[3] != number + 1:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_finds_its_functions_when_it_is_loaded(
    one: Executable, registered: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "one.vmfb"
    one.save(path)
    assert [call.target for call in hloforge.load(path, host={"test.one": abs}).manifest.host_calls] == ["test.one"]
    registered("test.ones", abs)
    with pytest.raises(hloforge.LoadError, match="that are not registered: test") as caught:
        hloforge.load(path)
    assert "names like it: test.ones" in caught.value.hint
    registered("test.one", np.negative)
    np.testing.assert_array_equal(hloforge.load(path)(X), -X)
    np.testing.assert_array_equal(hloforge.load(path, host={"test.one": abs})(-X), X)


def test_compiling_asks_for_registered_functions_also_where_the_cache_has_the_program(
    registered: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path))
    registered("test.one", np.negative)
    np.testing.assert_array_equal(hloforge.compile(ONE)(X), -X)
    hloforge.host.unregister("test.one")
    with pytest.raises(hloforge.UnsupportedError, match=r"@test\.one is not supported"):
        hloforge.compile(ONE)
    hloforge.host.register("test.one", np.abs)
    np.testing.assert_array_equal(hloforge.compile(ONE)(-X), X)


def test_names_are_registered_once(registered: Callable[..., None]) -> None:
    registered("test.name", abs)
    assert "test.name" in hloforge.host.names()
    with pytest.raises(hloforge.OptionError, match="registered already"):
        hloforge.host.register("test.name", abs)
    hloforge.host.register("test.name", np.negative, replace=True)

    @hloforge.host.register("test.decorated")
    def function(x: Any) -> Any:
        return x

    assert function(1) == 1
    hloforge.host.unregister("test.decorated")
    with pytest.raises(hloforge.OptionError, match="no host function is called 'test"):
        hloforge.host.unregister("test.decorated")


@pytest.mark.parametrize(
    ("name", "function", "options", "message"),
    [
        ("", abs, {}, "needs a name"),
        ("f", 3, {}, "'f' is a int"),
        ("f", abs, {"kind": "rust"}, "unknown kind 'rust'"),
        ("f", abs, {"kind": "c"}, "is a builtin_function_or_method, which is not of kind c"),
    ],
)
def test_what_is_no_function_is_refused(name: str, function: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(hloforge.OptionError, match=message):
        hloforge.host.register(name, function, **options)


@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize"])
def test_dynamic_sizes(dynamic_shapes: str) -> None:
    text = """func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %y = stablehlo.custom_call @f(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
      %z = stablehlo.add %y, %y : tensor<?x2xf32>
      return %z : tensor<?x2xf32> }"""
    executable = hloforge.compile(text, host_calls={"f"}, dynamic_shapes=dynamic_shapes)
    session = executable.load(host={"f": lambda x: x + 1})
    for rows in (3, 5, 0):
        x = np.ones((rows, 2), np.float32)
        np.testing.assert_array_equal(session(x), 2 * (x + 1))


def test_an_unknown_function_of_dynamic_arrays_is_refused_when_it_is_compiled() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.custom_call @test.unknown(%x) : (tensor<?xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32> }"""
    for dynamic_shapes in ("auto", "keep"):
        with pytest.raises(hloforge.UnregisteredError, match=r"@test\.unknown is not supported"):
            hloforge.compile(text, dynamic_shapes=dynamic_shapes)


def test_a_size_that_a_function_chooses_has_to_fit() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.custom_call @f(%x) : (tensor<?xf32>) -> tensor<?xf32>
      %z = stablehlo.add %y, %x : tensor<?xf32>
      return %z : tensor<?xf32> }"""
    executable = hloforge.compile(text, host_calls={"f"}, dynamic_shapes="keep")
    for wrong in (lambda x: x[1:], lambda x: np.concatenate([x, x])):
        session = executable.load(host={"f": wrong})
        with pytest.raises(hloforge.ArgumentError, match="host function @f returned an array of a size that does not"):
            session(X)
    np.testing.assert_array_equal(executable.load(host={"f": np.negative})(X), 0 * X)


@pytest.mark.parametrize("device", DEVICES)
def test_a_function_may_call_its_own_session(device: str) -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
      %y = stablehlo.custom_call @before(%n) : (tensor<i32>) -> tensor<i32>
      %z = stablehlo.multiply %y, %n : tensor<i32>
      return %z : tensor<i32> }"""
    sessions = []

    def before(n: Any) -> Any:
        return np.int32(1) if n <= 1 else sessions[0](np.asarray(n - 1))

    sessions.append(compiled(text, "before").load(host={"before": before}, device=device))
    assert sessions[0](np.array(6, np.int32)) == 720


def test_calls_beside_weights(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"w": X}, tmp_path / "w.safetensors")
    text = """HloModule weighted
      ENTRY e { x = f32[4] parameter(0)
        w = f32[4] parameter(1)
        both = f32[4] custom-call(x, w), custom_call_target="both"
        ROOT r = f32[4] add(both, w) }"""
    executable = hloforge.compile(text, host_calls={"both"}, weights=tmp_path / "w.safetensors")
    session = executable.load(host={"both": lambda x, w: x * w}, check_lifetimes=True)
    np.testing.assert_array_equal(session(2 * X), 2 * X * X + X)


def test_calls_beside_donated_arguments_and_updates() -> None:
    """What the function sees is the value at its place in the program, though the array is updated in place later."""
    text = """HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
      ENTRY e { cache = f32[64,64] parameter(0)
        row = f32[1,64] parameter(1)
        zero = s32[] constant(0)
        before = f32[] custom-call(cache), custom_call_target="sum"
        update = f32[64,64] dynamic-update-slice(cache, row, zero, zero)
        after = f32[] custom-call(update), custom_call_target="sum"
        ROOT r = (f32[64,64], f32[], f32[]) tuple(update, before, after) }"""
    session = compiled(text, "sum").load(host={"sum": lambda x: x.sum()}, check_lifetimes=True)
    cache = session.put(np.ones((64, 64), np.float32), "cache")
    for turn in range(3):
        cache, before, after = session.call_device(cache, np.full((1, 64), turn, np.float32))
        rest = 63 * 64
        assert np.asarray(before) == rest + 64 * (1 if turn == 0 else turn - 1)
        assert np.asarray(after) == rest + 64 * turn
