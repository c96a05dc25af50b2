"""Handlers of XLA's typed FFI, compiled with jaxlib's headers; what XLA's CPU client does with them is expected."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.element_types import element_type
from tests.runtime.native_libraries import built

jax = pytest.importorskip("jax")


@pytest.fixture(scope="module")
def library() -> Path:
    return built("handlers.cc")


@pytest.fixture(scope="module")
def loaded(library: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(library))
    for name in ("scale", "bytes"):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(found, name)), platform="cpu")
    return found


def scaled(mode: str) -> Any:
    def call(x: Any) -> Any:
        results = (jax.ShapeDtypeStruct(x.shape, np.float32), jax.ShapeDtypeStruct((), np.int32))
        attributes = {"factor": np.float32(2), "shift": np.int64(3), "weights": np.float32([0.5, 1.5])}
        return jax.ffi.ffi_call("scale", results)(x, mode=mode, options={"extra": np.float64(100)}, **attributes)

    return jax.jit(call)


@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_a_handler_built_for_jax_runs_unchanged(library: Path, loaded: ctypes.CDLL, device: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    session = hloforge.compile(scaled("ok").lower(x), libraries=(library,)).load(device=device)
    for result, wanted in zip(session(x), scaled("ok")(x), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_its_errors_are_ours(library: Path, loaded: ctypes.CDLL) -> None:
    x = np.zeros((2, 3), np.float32)
    session = hloforge.compile(scaled("fail").lower(x), libraries=(library,)).load()
    for _ in range(2):
        with pytest.raises(hloforge.ExecutionError, match=r"@scale\(f32\[2,3\]\) .* INVALID_ARGUMENT: asked to fail"):
            session(x)
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.custom_call @scale(%x) {api_version = 4 : i32, backend_config = {factor = 2.0 : f64}}
        : (tensor<3xf32>) -> tensor<3xf32>
      return %y : tensor<3xf32> }"""
    with pytest.raises(hloforge.ExecutionError, match="Wrong number of"):
        hloforge.compile(text, libraries=(library,))(x[0])


def test_memory_is_packed_as_xla_packs_it(library: Path, loaded: ctypes.CDLL) -> None:
    rows = [element_type(name) for name in ("s2", "u2", "s4", "u4", "f4e2m1fn", "bf16", "f8e4m3fn")]
    arrays = [np.array([1, 2, 3, 0, 1, 1, 3, 2, 1]).astype(row.dtype) for row in rows]
    counts = [-(-array.size * row.bits // 8) for row, array in zip(rows, arrays, strict=True)]

    @jax.jit
    def function(*arrays: Any) -> Any:
        """The bytes of each array, and each array there and back."""
        shapes = [jax.ShapeDtypeStruct((count,), np.uint8) for count in counts]
        shapes += [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        return [jax.ffi.ffi_call("bytes", shape)(x) for shape, x in zip(shapes, [*arrays, *arrays], strict=True)]

    results = hloforge.compile(function.lower(*arrays), libraries=(library,))(*arrays)
    for row, result, wanted in zip([*rows, *rows], results, function(*arrays), strict=True):
        assert result.tobytes() == np.asarray(wanted).tobytes(), row.name


def pointer_capsule(function: Any) -> Any:
    function.restype = ctypes.c_void_p
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(function(), None, None)


def counter(start: int) -> str:
    return f"""func.func @main() -> (tensor<2xi64>, tensor<2xi64>) {{
      %a = stablehlo.custom_call @count() {{has_side_effect = true, api_version = 4 : i32,
        backend_config = {{start = {start} : i64}}}} : () -> tensor<2xi64>
      %b = stablehlo.custom_call @count() {{has_side_effect = true, api_version = 4 : i32,
        backend_config = {{start = 100 : i64}}}} : () -> tensor<2xi64>
      return %a, %b : tensor<2xi64>, tensor<2xi64> }}"""


def test_state_belongs_to_a_call_of_a_session_and_ends_with_it(library: Path, loaded: ctypes.CDLL) -> None:
    stages = {
        "instantiate": loaded.new_counter,
        "execute": loaded.count,
        "type_id": pointer_capsule(loaded.counter_type_id),
        "type_info": pointer_capsule(loaded.counter_type_info),
    }
    executable = hloforge.compile(counter(7), host_calls={"count"})
    first, second = (executable.load(host={"count": stages}) for _ in range(2))
    assert [[part.tolist() for part in first()] for _ in range(2)] == [[[7, 0], [100, 0]], [[8, 0], [101, 0]]]
    assert second()[0].tolist() == [7, 0]
    assert loaded.counters_alive() == 4
    del first, second
    gc.collect()
    assert loaded.counters_alive() == 0
    with pytest.raises(hloforge.LoadError, match="cannot be instantiated: INVALID_ARGUMENT: starts below zero"):
        hloforge.compile(counter(-1), host_calls={"count"}).load(host={"count": stages})


def test_a_handler_may_end_later(library: Path) -> None:
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.custom_call @later(%x) {api_version = 4 : i32} : (tensor<3xf32>) -> tensor<3xf32>
      return %y : tensor<3xf32> }"""
    session = hloforge.compile(text, libraries=(library,)).load()
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(session(x), -x)
    with pytest.raises(hloforge.ExecutionError, match="INTERNAL: negative"):
        session(-x)
    np.testing.assert_array_equal(session(x), -x)


def test_operands_of_dynamic_size(library: Path) -> None:
    text = """func.func @main(%x: tensor<?x3xi4>) -> (tensor<2xi64>, tensor<i32>) {
      %y:2 = stablehlo.custom_call @sizes(%x) {api_version = 4 : i32,
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}
        : (tensor<?x3xi4>) -> (tensor<2xi64>, tensor<i32>)
      return %y#0, %y#1 : tensor<2xi64>, tensor<i32> }"""
    session = hloforge.compile(text, libraries=(library,), dynamic_shapes="keep").load()
    for rows in (2, 5, 1):
        x = np.arange(3 * rows).reshape(rows, 3) % 8
        sizes, first_column_after_first = session(x.astype(element_type("s4").dtype))
        assert sizes.tolist() == [rows, 3]
        # The second element in memory, in the high half of the first byte.
        assert first_column_after_first == x.T.reshape(-1)[1]


def test_tokens_are_arguments_to_a_handler(library: Path) -> None:
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %t = stablehlo.create_token : !stablehlo.token
      %t1, %y = stablehlo.custom_call @ordered(%t, %x) {api_version = 4 : i32}
        : (!stablehlo.token, tensor<i32>) -> (!stablehlo.token, tensor<i32>)
      %t2, %z = stablehlo.custom_call @ordered(%t1, %y) {api_version = 4 : i32}
        : (!stablehlo.token, tensor<i32>) -> (!stablehlo.token, tensor<i32>)
      return %z : tensor<i32> }"""
    assert hloforge.compile(text, libraries=(library,))(7) == 700


def test_a_handler_of_another_version_is_refused(library: Path) -> None:
    """A function that answers no question about its version stands for one that has another."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    calls = []

    @prototype
    def newer(frame: int) -> int:
        calls.append(frame)
        # The frame's extension, the metadata that it points to, and the major version in them.
        extension = ctypes.c_void_p.from_address(frame + 8).value or 0
        metadata = ctypes.c_void_p.from_address(extension + 24).value or 0
        ctypes.c_int.from_address(metadata + 24).value = 9
        return 0

    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.custom_call @newer(%x) {api_version = 4 : i32} : (tensor<3xf32>) -> tensor<3xf32>
      return %y : tensor<3xf32> }"""
    with pytest.raises(hloforge.LoadError, match=r"a handler of XLA's FFI 9\.0, and this is 0.3"):
        hloforge.compile(text, host_calls={"newer"}).load(host={"newer": newer})
    assert len(calls) == 1
