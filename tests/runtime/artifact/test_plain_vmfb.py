"""vmfb files that hloforge did not make."""

from __future__ import annotations

import subprocess
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.errors import LoadError
from hloforge.runtime.compile import iree
from hloforge.runtime.session.session import load

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
)


def plain(text: str, *flags: str) -> bytes:
    """What IREE's compiler makes of a text by itself."""
    command = [iree.compiler_binary(), "-", "-o", "-", *FLAGS, *flags]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=60).stdout


def identity(*types: str) -> bytes:
    names = ", ".join(f"%a{number}" for number in range(len(types)))
    parameters = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(types))
    listed = ", ".join(types)
    return plain(f"func.func @main({parameters}) -> ({listed}) {{ return {names} : {listed} }}")


def test_every_element_type_that_iree_takes() -> None:
    arrays = [
        np.array([1 - 2j, complex(np.nan, -0.0)], np.complex64),
        np.array([True, False]),
        np.array([-0.0, np.inf], ml_dtypes.bfloat16),
        np.array([[5e-324]]),
        np.array(-3, np.int64),
    ]
    session = load(
        identity("tensor<2xcomplex<f32>>", "tensor<2xi1>", "tensor<2xbf16>", "tensor<?x1xf64>", "tensor<i64>")
    )
    for array, result in zip(arrays, session(*arrays), strict=True):
        assert result.dtype == array.dtype
        assert result.tobytes() == array.tobytes()


def test_signs_are_those_of_the_source() -> None:
    session = load(identity("tensor<3xui32>", "tensor<3xi32>", "tensor<ui8>"))
    assert str(session.signature) == "(input0: u32[3], input1: s32[3], input2: u8[]) -> (u32[3], s32[3], u8[])"
    unsigned, _, byte = session(np.array([0, 1, 2**32 - 1], np.uint32), np.zeros(3, np.int32), 255)
    np.testing.assert_array_equal(unsigned, np.array([0, 1, 2**32 - 1], np.uint32))
    assert byte == 255


def test_no_argument_and_no_result() -> None:
    constant = load(
        plain("""func.func @main() -> tensor<2xi32> {
          %c = arith.constant dense<3> : tensor<2xi32> return %c : tensor<2xi32> }""")
    )
    np.testing.assert_array_equal(constant(), [3, 3])
    assert load(plain("func.func @main(%a: tensor<4xf32>) { return }"))(np.zeros(4, np.float32)) == ()


UPDATE = """func.func @main(%a: tensor<100x100xf32>, %u: tensor<1x100xf32>, %i: tensor<i32>) -> tensor<100x100xf32> {
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i
    : (tensor<100x100xf32>, tensor<1x100xf32>, tensor<i32>, tensor<i32>) -> tensor<100x100xf32>
  return %0 : tensor<100x100xf32> }"""
OUTPUT = """func.func @main(%a: tensor<100x100xf32>, %out: tensor<100x100xf32> {iree.abi.output = 0 : index})
    -> tensor<100x100xf32> { %0 = stablehlo.add %a, %a : tensor<100x100xf32>
  return %0 : tensor<100x100xf32> }"""


@pytest.mark.parametrize("device_arrays", [False, True])
def test_a_program_without_protection_writes_into_no_callers_array(aligned: Any, device_arrays: bool) -> None:
    x, out = aligned((100, 100)), aligned((100, 100))
    before = x.copy()
    update, output = load(plain(UPDATE)), load(plain(OUTPUT))
    row = np.ones((1, 100), np.float32)
    given = update.put(x, 0) if device_arrays else x
    storage = output.put(out, 1) if device_arrays else out
    np.testing.assert_array_equal(update(given, row, 0)[0], row[0])
    np.testing.assert_array_equal(output(x, storage), before + before)
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(storage, before)


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("tensor<4xi4>", r"tensor<4xi4>"),
        ("tensor<4xindex>", r"tensor<4xindex>"),
        ("i32", "something else than tensors: %input0: i32"),
        ("!hal.buffer_view", "something else than tensors"),
    ],
)
def test_what_numpy_arrays_cannot_be(parameter: str, said: str) -> None:
    with pytest.raises(LoadError, match=said):
        load(identity(parameter))


def test_an_asynchronous_main() -> None:
    text = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> attributes {iree.abi.model = "coarse-fences"} {
      return %a : tensor<4xf32> }"""
    with pytest.raises(LoadError, match="asynchronous"):
        load(plain(text, "--iree-execution-model=async-external"))
