"""Functions of machine code: ``void f(void* out, void** in)`` from a library, a pointer or a capsule."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.artifact.executable import Executable
from tests.runtime.native_libraries import built

# The example of XLA's "CustomCall".
MYFUNC = """HloModule myfunc
ENTRY e { x = f32[2] constant({1, 2})
  y = f32[2,3] parameter(0)
  ROOT z = f32[3,3] custom-call(x, y), custom_call_target="myfunc" }"""
Y = np.float32([[10, 20, 30], [40, 50, 60]])
Z = 42 + np.arange(9, dtype=np.float32).reshape(3, 3)


@pytest.fixture(scope="module")
def library() -> Path:
    return built("functions.c")


def run(text: str, library: Path, *arguments: Any, **options: Any) -> Any:
    return hloforge.compile(text, libraries=(library,)).load(**options)(*arguments)


@pytest.fixture(scope="module")
def myfunc() -> Executable:
    return hloforge.compile(MYFUNC, host_calls={"myfunc"})


def capsule(address: int, name: bytes | None) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(address, name, None)


def test_the_functions_that_python_holds(library: Path, myfunc: Executable) -> None:
    loaded = ctypes.CDLL(str(library))
    address = ctypes.cast(loaded.myfunc, ctypes.c_void_p).value
    assert address is not None
    name = b"xla._CUSTOM_CALL_TARGET"
    for function in (library, str(library), loaded.myfunc, capsule(address, name), capsule(address, None)):
        np.testing.assert_array_equal(myfunc.load(host={"myfunc": function})(Y), Z)
    for device in ("local-sync", "local-task"):
        np.testing.assert_array_equal(myfunc.load(libraries=[library], device=device)(Y), Z)


def test_a_session_keeps_its_functions(myfunc: Executable) -> None:
    """A function of ctypes that calls Python is code that ends with its object."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))

    def fill(out: int, given: Any) -> None:
        ctypes.memmove(out, Z.ctypes.data, Z.nbytes)

    session = myfunc.load(host={"myfunc": prototype(fill)})
    gc.collect()
    others = [prototype(lambda out, given: None) for _ in range(9)]
    np.testing.assert_array_equal(session(Y), Z)
    assert len(others) == 9


def test_a_pointer_of_cffi(library: Path, myfunc: Executable) -> None:
    cffi = pytest.importorskip("cffi")
    interface = cffi.FFI()
    interface.cdef("void myfunc(void* out, void** in);")
    loaded = interface.dlopen(str(library))
    pointer = interface.addressof(loaded, "myfunc")
    np.testing.assert_array_equal(myfunc.load(host={"myfunc": pointer})(Y), Z)


def test_a_kind_goes_before_the_version_of_the_call(library: Path) -> None:
    text = """func.func @main(%x: tensor<f32>) -> tensor<2xf32> {
      %y = stablehlo.custom_call @one_array(%x) {api_version = 4 : i32} : (tensor<f32>) -> tensor<2xf32>
      return %y : tensor<2xf32> }"""
    function = hloforge.host.target("one_array", library, kind="c")
    session = hloforge.compile(text, host_calls={"one_array"}).load(host={"one_array": function})
    assert session(3.0).tolist() == [3, 4]


def test_a_symbol_or_library_that_is_not_there(library: Path, myfunc: Executable, tmp_path: Path) -> None:
    with pytest.raises(hloforge.LoadError, match="that are not registered: myfunc"):
        myfunc.load()
    with pytest.raises(hloforge.LoadError, match="no symbol 'nothing'"):
        hloforge.host.register("nothing", library)
    (tmp_path / "lib.so").write_text("no library")
    for path in (tmp_path / "none.so", tmp_path / "lib.so"):
        with pytest.raises(hloforge.LoadError, match="cannot load the library"):
            myfunc.load(libraries=[path])


def test_several_results_tokens_and_empty_arrays(library: Path) -> None:
    text = """func.func @main(%t: !stablehlo.token, %x: tensor<4xf32>, %n: tensor<i32>, %e: tensor<0x3xf32>)
        -> (tensor<4xf32>, tensor<i32>, tensor<0xf32>) {
      %p = stablehlo.tuple %x, %n : tuple<tensor<4xf32>, tensor<i32>>
      %r:3 = stablehlo.custom_call @several(%t, %p, %e)
        : (!stablehlo.token, tuple<tensor<4xf32>, tensor<i32>>, tensor<0x3xf32>)
          -> (tensor<4xf32>, tensor<i32>, tensor<0xf32>)
      return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<i32>, tensor<0xf32> }"""
    x = np.float32([1, 2, 3, 4])
    y, n, empty = run(text, library, None, x, 6, np.empty((0, 3), np.float32))
    np.testing.assert_array_equal(y, 2 * x)
    assert n == 7 and empty.shape == (0,)


def test_a_tuple_of_one_array_is_a_tuple(library: Path) -> None:
    text = """HloModule one
      ENTRY e { x = f32[] parameter(0)
        t = (f32[]) custom-call(x), custom_call_target="one_tuple"
        ROOT y = f32[] get-tuple-element(t), index=0 }"""
    assert run(text, library, 3.0) == 4


def test_memory_is_in_the_order_of_the_layout(library: Path) -> None:
    text = """func.func @main(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
      %c = stablehlo.custom_call @memory(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<2x3xf32>) -> tensor<6xf32>
      %r = stablehlo.custom_call @memory(%x) : (tensor<2x3xf32>) -> tensor<6xf32>
      return %c, %r : tensor<6xf32>, tensor<6xf32> }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    columns, rows = run(text, library, x)
    np.testing.assert_array_equal(columns, x.T.reshape(-1))
    np.testing.assert_array_equal(rows, x.reshape(-1))


def test_an_aliased_operand_is_copied_into_the_result(library: Path) -> None:
    text = """HloModule alias
      ENTRY e { n = s32[3] parameter(0)
        m = s32[3] custom-call(n), custom_call_target="in_place", output_to_operand_aliasing={{}: (0, {})}
        ROOT t = (s32[3], s32[3]) tuple(n, m) }"""
    before, after = run(text, library, np.int32([1, 2, 3]))
    assert before.tolist() == [1, 2, 3] and after.tolist() == [2, 2, 3]


def test_the_configuration_and_the_status_of_version_3(library: Path) -> None:
    text = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %y = stablehlo.custom_call @with_status(%x) {api_version = 3 : i32, backend_config = "bcd"}
        : (tensor<f32>) -> tensor<f32>
      return %y : tensor<f32> }"""
    session = hloforge.compile(text, libraries=(library,)).load()
    assert session(1.0) == 4
    with pytest.raises(hloforge.ExecutionError, match=r"@with_status\(f32\[\]\) -> f32\[\] reported a failure"):
        session(-1.0)
    assert session(1.0) == 4


def test_results_of_dynamic_size_are_refused(library: Path) -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.custom_call @memory(%x) : (tensor<?xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32> }"""
    executable = hloforge.compile(text, libraries=(library,), dynamic_shapes="keep")
    with pytest.raises(hloforge.LoadError, match="has a result of dynamic size"):
        executable.load()
