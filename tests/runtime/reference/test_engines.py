from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge.dialect.element_types import TABLE, ElementType
from hloforge.dialect.errors import ArgumentError, OptionError, ReferenceEngineError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.importers.reader import read
from hloforge.runtime.data.random_inputs import special_values
from hloforge.runtime.reference.engines import REFERENCES, ReferenceEngine, reference
from hloforge.runtime.reference.jaxlib_engines import InterpreterEngine


def program(text: str) -> Program:
    module = parse_module(text)
    return Program(module, Signature.of(module), "test", "<string>")


@pytest.fixture(scope="module", params=REFERENCES)
def engine(request: pytest.FixtureRequest) -> Iterator[ReferenceEngine]:
    engine = reference(request.param)
    yield engine
    engine.close()


@pytest.mark.wide(4)
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_every_element_type_travels_both_ways(engine: ReferenceEngine, row: ElementType) -> None:
    if row.bits == 6 and engine.name == "xla":
        pytest.skip("XLA's CPU client takes no floats of 6 bits")
    values = special_values(row)
    x = np.resize(values, (2, len(values)))
    function = engine.prepare(
        program(
            f"func.func @main(%x: tensor<2x{len(values)}x{row.mlir}>) -> tensor<{len(values)}x2x{row.mlir}> {{"
            f"  %0 = stablehlo.transpose %x, dims = [1, 0]"
            f"    : (tensor<2x{len(values)}x{row.mlir}>) -> tensor<{len(values)}x2x{row.mlir}>"
            f"  return %0 : tensor<{len(values)}x2x{row.mlir}> }}"
        )
    )
    result = function(x)
    assert result.dtype == row.dtype
    wide = np.complex128 if row.is_complex else np.float64 if row.is_float else np.dtype(object)
    np.testing.assert_array_equal(result.astype(wide), x.T.astype(wide))


@pytest.mark.parametrize(("mlir", "dtype"), [("i4", ml_dtypes.int4), ("ui4", ml_dtypes.uint4), ("i2", ml_dtypes.int2)])
def test_narrow_integers_wrap(engine: ReferenceEngine, mlir: str, dtype: type) -> None:
    function = engine.prepare(
        program(
            f"func.func @main(%x: tensor<4x{mlir}>) -> tensor<4x{mlir}> {{"
            f" %0 = stablehlo.negate %x : tensor<4x{mlir}> return %0 : tensor<4x{mlir}> }}"
        )
    )
    x = np.array([0, 1, 2, 3]).astype(dtype)
    # Negation modulo the width, in plain integers.
    expected = (-x.astype(np.int64)).astype(dtype)
    np.testing.assert_array_equal(function(x).astype(np.int64), expected.astype(np.int64))


_TREE = """
module attributes {hloforge.parameter_names = ["p", "t"],
    hloforge.parameter_shapes = ["(f32[2]{0}, (s32[], token[]))", "token[]"],
    hloforge.result_shape = "((s32[], token[]), c64[2]{0})", hloforge.input_output_alias = []} {
  func.func @main(%a: tensor<2xf32>, %b: tensor<i32>, %s: !stablehlo.token, %t: !stablehlo.token)
      -> (tensor<i32>, !stablehlo.token, tensor<2xcomplex<f32>>) {
    %0 = stablehlo.add %b, %b : tensor<i32>
    %1 = stablehlo.complex %a, %a : tensor<2xcomplex<f32>>
    %2 = stablehlo.after_all %s, %t : !stablehlo.token
    return %0, %2, %1 : tensor<i32>, !stablehlo.token, tensor<2xcomplex<f32>>
  }
}
"""


def test_tuples_and_tokens_follow_the_signature(engine: ReferenceEngine) -> None:
    function = engine.prepare(program(_TREE))
    (number, token), values = function(((np.ones(2, np.float32)), (np.int32(21), None)), None)
    assert number == 42 and token is None
    np.testing.assert_array_equal(values, np.full(2, 1 + 1j, np.complex64))


RESOURCES = """
    module { func.func @main() -> (tensor<2xf32>, tensor<3xi1>, tensor<1xcomplex<f32>>) {
      %0 = stablehlo.constant dense_resource<a> : tensor<2xf32>
      %1 = stablehlo.constant dense_resource<"torch b"> : tensor<3xi1>
      %2 = stablehlo.constant dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>
      return %0, %1, %2 : tensor<2xf32>, tensor<3xi1>, tensor<1xcomplex<f32>> } }
    {-# dialect_resources: { builtin: { a: "0x040000000000803F00000040", "torch b": "0x01000000010001" } } #-}"""


def test_resource_constants_are_read(engine: ReferenceEngine) -> None:
    numbers, flags, points = engine.prepare(program(RESOURCES))()
    assert numbers.tolist() == [1, 2] and flags.tolist() == [True, False, True] and points.tolist() == [1 + 2j]


@pytest.mark.filterwarnings("error")
def test_resource_constants_are_compiled() -> None:
    """By our code generator, which warns where it leaves a program to IREE's."""
    numbers, flags, points = hloforge.compile(RESOURCES, cache=False).load()()
    assert numbers.tolist() == [1, 2] and flags.tolist() == [True, False, True] and points.tolist() == [1 + 2j]


def test_the_result_does_not_change_with_the_caller(engine: ReferenceEngine) -> None:
    function = engine.prepare(
        program("func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> { return %x : tensor<64xf32> }")
    )
    x = np.zeros(64, np.float32)
    result = function(x)
    x[:] = 7
    assert not result.any() and result.flags.writeable


def test_a_scatter_leaves_its_operand_alone() -> None:
    # StableHLO's interpreter scatters in place, into the constant that another operation reads.
    text = """
    func.func @main(%i: tensor<1x1xi64>, %u: tensor<1xi64>) -> (tensor<4xi64>, tensor<4xi64>) {
      %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
      %r = "stablehlo.scatter"(%c, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<i64>, %b: tensor<i64>): stablehlo.return %b : tensor<i64>
      }) : (tensor<4xi64>, tensor<1x1xi64>, tensor<1xi64>) -> tensor<4xi64>
      return %r, %c : tensor<4xi64>, tensor<4xi64> }"""
    function = reference("interpreter", isolated=False).prepare(program(text))
    for value in (9, 8):
        scattered, operand = function(np.array([[2]]), np.array([value]))
        assert scattered.tolist() == [1, 2, value, 4] and operand.tolist() == [1, 2, 3, 4]


_UNKNOWN_CALL = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @nowhere(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32> }"""
_IDENTITY = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"


def test_an_abort_of_the_engine_is_an_error_and_other_programs_live_on() -> None:
    engine = reference("interpreter")
    healthy = engine.prepare(program(_IDENTITY))
    broken = engine.prepare(program(_UNKNOWN_CALL))
    with pytest.raises(ReferenceEngineError, match=r"SIGABRT.*nowhere"):
        broken(np.ones(2, np.float32))
    assert healthy(np.ones(2, np.float32)).tolist() == [1, 1]
    engine.close()


def test_xla_refuses_with_its_own_words() -> None:
    with pytest.raises(ReferenceEngineError, match="custom call to nowhere"):
        reference("xla", isolated=False).prepare(program(_UNKNOWN_CALL))


def test_an_endless_program_ends_with_its_time() -> None:
    endless = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %0 = stablehlo.while(%i = %x) : tensor<i32>
        cond { %c = stablehlo.compare EQ, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %n = stablehlo.add %i, %i : tensor<i32> stablehlo.return %n : tensor<i32> }
      return %0 : tensor<i32> }"""
    engine = reference("xla", timeout=3)
    function = engine.prepare(program(endless))
    with pytest.raises(ReferenceEngineError, match="did not finish within 3 s"):
        function(np.int32(1))
    assert engine.prepare(program(_IDENTITY))(np.ones(2, np.float32)).tolist() == [1, 1]
    engine.close()


def test_the_interpreter_refuses_hours_of_work_and_names_the_operation() -> None:
    text = """func.func @main(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
      return %0 : tensor<4096x4096xf32> }"""
    with pytest.raises(ReferenceEngineError, match=r"dot_general") as caught:
        reference("interpreter", isolated=False).prepare(program(text))
    assert "--reference=xla" in caught.value.hint


def test_the_limit_is_the_callers() -> None:
    with pytest.raises(ReferenceEngineError, match="limit 1"):
        InterpreterEngine(element_limit=1).compile(
            _IDENTITY.replace("return", "%0 = stablehlo.abs %x : tensor<2xf32> return").encode()
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "takes 1 argument, got 0"),
        ((np.ones(3, np.float32),), r"'arg0': expected f32\[2\], got float32 array of shape \(3,\)"),
        ((np.ones(2),), r"'arg0': expected f32\[2\], got float64 array"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[object, ...], message: str) -> None:
    function = reference("interpreter", isolated=False).prepare(program(_IDENTITY))
    with pytest.raises(ArgumentError, match=message):
        function(*arguments)


def test_an_unknown_engine_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="engines: xla, interpreter") as caught:
        reference("numpy")
    assert "numpy" in caught.value.message


def test_the_program_is_left_as_it_was(engine: ReferenceEngine) -> None:
    original = program(_TREE)
    before = original.text()
    engine.prepare(original)
    assert original.text() == before


def test_programs_nobody_calls_leave_the_child() -> None:
    engine = reference("xla")
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %0 = stablehlo.constant dense<VALUE> : tensor<i32>
      %1 = stablehlo.add %x, %0 : tensor<i32>
      return %1 : tensor<i32> }"""
    functions = [engine.prepare(program(text.replace("VALUE", str(n)))) for n in range(3)]
    del functions[0]
    assert functions[0](np.int32(1)) == 2 and functions[1](np.int32(1)) == 3
    assert not engine._engine._dropped  # type: ignore[union-attr]
    engine.close()


def test_no_child_outlives_its_engine() -> None:
    engine = reference("interpreter")
    engine.prepare(program(_IDENTITY))
    process = engine._engine._worker._process  # type: ignore[union-attr]
    engine.close()
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_folder_of_the_packages_name_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hloforge").mkdir()
    (tmp_path / "hloforge" / "__init__.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    program = read("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    engine = reference("xla", isolated=True)
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(engine.prepare(program)(x), x)
    engine.close()


def test_random_bits_of_a_signed_type_are_signed() -> None:
    """XLA's CPU client gives them as unsigned; the bits are those of the unsigned type."""
    text = """func.func @main(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<5x{0}>) {{
      %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY
        : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x{0}>)
      return %0, %1 : tensor<2xui64>, tensor<5x{0}> }}"""
    engine, state = reference("xla", isolated=False), np.array([1, 2], np.uint64)
    (_, signed), (_, unsigned) = (engine.prepare(read(text.format(of)))(state) for of in ("i32", "ui32"))
    assert signed.dtype == np.int32
    np.testing.assert_array_equal(signed.view(np.uint32), unsigned)


def test_xla_knows_the_functions_of_lapack_that_jax_calls() -> None:
    jax = pytest.importorskip("jax")
    x = np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]], np.float32)
    lowered = jax.jit(jax.numpy.linalg.cholesky).lower(x).as_text()
    assert "lapack_spotrf_ffi" in lowered
    engine = reference("xla")
    try:
        np.testing.assert_allclose(engine.prepare(read(lowered))(x), np.linalg.cholesky(x), rtol=1e-5)
    finally:
        engine.close()
