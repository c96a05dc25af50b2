from __future__ import annotations

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.element_types import TABLE, ElementType, element_type
from hloforge.dialect.errors import ArgumentError, CompileError
from hloforge.dialect.program import Parameter, Signature
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.inputs import parse_expected, parse_input, random_inputs, write_output
from hloforge.runtime.data.literals import format_array
from hloforge.runtime.data.random_inputs import special_values


def parameter(shape: str, name: str = "x") -> Parameter:
    return Parameter(name, Shape.parse(shape))


def same(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Equal down to the bits, with any NaN for NaN."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if actual.dtype.kind == "c":
        return same(actual.real.copy(), expected.real.copy()) and same(actual.imag.copy(), expected.imag.copy())
    bits = f"u{actual.dtype.itemsize}"
    equal = np.ascontiguousarray(actual).view(bits) == np.ascontiguousarray(expected).view(bits)
    # `x != x` is numpy's NaN test that ml_dtypes and integers have as well.
    return bool((equal | ((actual != actual) & (expected != expected))).all())


@pytest.mark.parametrize(
    ("spec", "shape", "expected"),
    [
        ("2x3xf32=1 2 3 4 5 6", "f32[2,3]", [[1, 2, 3], [4, 5, 6]]),
        ("2x3xf32=[1 2 3][4 5 6]", "f32[2,3]", [[1, 2, 3], [4, 5, 6]]),
        ("f32[2,3]{0,1}=1,2,3,4,5,6", "f32[2,3]", [[1, 2, 3], [4, 5, 6]]),
        ("f32[2,3]=0.5", "f32[2,3]{0,1}", [[0.5] * 3] * 2),
        ("1 2", "s32[2]", [1, 2]),
        ("2xi32=0x10 -3", "s32[2]", [16, -3]),
        ("2xsi8=-128 127", "s8[2]", [-128, 127]),
        ("ui64=18446744073709551615", "u64[]", 2**64 - 1),
        ("true 0", "pred[2]", [True, False]),
        ("2xi1=false true", "pred[2]", [False, True]),
        ("1+2j (3, -4)", "c64[2]", [1 + 2j, 3 - 4j]),
        ("2xcomplex<f32>=5", "c64[2]", [5, 5]),
        ("nan -inf", "f16[2]", [np.nan, -np.inf]),
        ("zeros", "bf16[2]", [0, 0]),
        ("iota", "s32[2,2]", [[0, 1], [2, 3]]),
        ("3xf32=iota", "f32[?]", [0, 1, 2]),
        ("0x3xf32=", "f32[0,3]", np.zeros((0, 3))),
        ("-7", "s4[]", -7),
    ],
)
def test_values(spec: str, shape: str, expected: object) -> None:
    declared = parameter(shape)
    assert declared.shape.element is not None
    assert same(parse_input(spec, declared), np.asarray(expected).astype(declared.shape.element.dtype))


@pytest.mark.parametrize(
    ("spec", "shape", "words"),
    [
        ("2xf32=1", "f32[3]", ["'x' (f32[3])", "2xf32", "does not fit"]),
        ("3xf64=1", "f32[3]", ["does not fit", "f32[3]"]),
        ("3xf32=1 2", "f32[3]", ["2 values for 3 elements"]),
        ("3xi8=1 2 300", "s8[3]", ["300 does not fit s8 (-128 to 127)"]),
        ("-1", "u4[]", ["-1 does not fit u4"]),
        ("2", "pred[]", ["'2' is no pred"]),
        ("1.5", "s32[]", ["'1.5' is no s32"]),
        ("hello", "f32[3]", ["'hello' is no f32", "random"]),
        ("3xquux=1", "f32[3]", ["quux is not an XLA element type"]),
        ("f32[3=1", "f32[3]", ["expected"]),
        ("", "f32[]", ["0 values for 1"]),
        ("random", "f32[?]", ["sizes are needed", "f32=…"]),
        ("5xf32=1", "f32[<=4]", ["does not fit"]),
        ("zeros:3", "f32[2]", ["zeros takes no number"]),
        ("@nowhere.npy", "f32[3]", ["cannot read nowhere.npy", "No such file"]),
        ("@", "f32[3]", ["cannot read"]),
        ("@/", "f32[3]", ["cannot read /"]),
        ("1", "token[]", ["not an array"]),
    ],
)
def test_errors_name_the_argument_and_what_fits(spec: str, shape: str, words: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_input(spec, parameter(shape))
    text = str(caught.value)
    assert text.startswith("error: argument 'x'")
    for word in words:
        assert word in text


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_files_keep_every_element_type(row: ElementType, tmp_path: Path) -> None:
    values = special_values(row)
    write_output(f"@{tmp_path}/y.npy", values)
    shape = f"{row.name}[{len(values)}]"
    assert same(parse_input(f"@{tmp_path}/y.npy", parameter(shape)), values)
    assert same(parse_input(f"{shape}=@{tmp_path}/y.npy", parameter(f"{row.name}[?]")), values)
    np.save(tmp_path / "numpy.npy", values)
    assert same(parse_input(f"@{tmp_path}/numpy.npy", parameter(shape)), values)
    np.savez(tmp_path / "z.npz", first=values, second=np.ones(3))
    assert same(parse_input(f"@{tmp_path}/z.npz:first", parameter(shape)), values)
    assert same(parse_input(f"@{tmp_path}/z.npz", parameter(shape, "first")), values)


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_text_reads_back_as_the_same_array(row: ElementType) -> None:
    values = special_values(row)
    for array in (values, values[:6].reshape(1, 2, -1) if len(values) >= 6 else values[:2].reshape(1, 2), values[0]):
        array = np.asarray(array)
        shape = Shape.array(row, *array.shape)
        assert same(parse_input(format_array(array, limit=None), Parameter("x", shape)), array)


def test_random_floats_survive_their_text() -> None:
    generator = np.random.default_rng(1)
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
        array = (generator.standard_normal(200) * np.exp2(generator.integers(-10, 10, 200))).astype(dtype)
        shape = Shape.array(element_type(np.dtype(dtype)), 200)
        assert same(parse_input(format_array(array), Parameter("x", shape)), array)


def test_large_arrays_print_short() -> None:
    text = format_array(np.zeros((1000, 1000)))
    assert text.startswith("1000x1000xf64=[0 0 0 … 0 0 0]") and len(text) < 300


def test_a_fortran_file_keeps_its_logical_order(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "x.npy", array)
    assert same(parse_input(f"@{tmp_path}/x.npy", parameter("f32[2,3]{0,1}")), array)


def test_a_file_of_the_other_byte_order_is_converted(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3, dtype=">f4"))
    assert same(parse_input(f"@{tmp_path}/x.npy", parameter("f32[3]")), np.arange(3, dtype=np.float32))


@pytest.mark.parametrize(
    ("array", "shape", "words"),
    [
        (np.zeros(3), "f32[3]", ["holds float64", "x.astype('float32')"]),
        (np.zeros(3, ml_dtypes.bfloat16), "f16[3]", ["x.astype('float16')"]),
        (np.zeros((3, 1), np.float32), "f32[3]", ["holds 3x1xf32", "takes f32[3]"]),
    ],
)
def test_a_file_of_another_type_is_refused(array: np.ndarray, shape: str, words: list[str], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ArgumentError) as caught:
        parse_input(f"@{tmp_path}/x.npy", parameter(shape))
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'descr'", b"PK\x03\x04rubbish", b"hello"])
def test_a_damaged_file_is_an_error(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(ArgumentError, match=r"no \.npy or \.npz"):
        parse_input(f"@{tmp_path}/x.npy", parameter("f32[3]"))


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(100))
    np.savez(tmp_path / "z.npz", x=np.zeros(100))
    for name in ("x.npy", "z.npz"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-50])
        with pytest.raises(ArgumentError, match=r"no \.npy or \.npz"):
            parse_input(f"@{path}", parameter("f64[100]"))


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object))
    np.savez(tmp_path / "z.npz", x=np.array([{}], dtype=object))
    for name in ("x.npy", "z.npz"):
        with pytest.raises(ArgumentError, match="Python objects"):
            parse_input(f"@{tmp_path}/{name}", parameter("f32[1]"))


def test_a_missing_array_of_an_archive_lists_the_others(tmp_path: Path) -> None:
    np.savez(tmp_path / "z.npz", weights=np.zeros(3), bias=np.zeros(3))
    with pytest.raises(ArgumentError, match="no array 'x'") as caught:
        parse_input(f"@{tmp_path}/z.npz", parameter("f64[3]"))
    assert "weights, bias" in caught.value.hint


def test_expected_results_name_the_result() -> None:
    assert parse_expected("f32=3", 0, Shape.parse("f32[]")) == 3
    with pytest.raises(ArgumentError, match="expected 'result 1'"):
        parse_expected("f64=3", 1, Shape.parse("f32[]"))


_SIGNATURE = Signature(
    (
        parameter("(f32[4,5]{0,1}, (s32[6], token[]))", "weights"),
        *(parameter(f"{row.name}[64]", f"a{row.name}") for row in TABLE),
    ),
    Shape.parse("()"),
)


@pytest.mark.parametrize("special", [False, True])
def test_random_inputs_have_the_signatures_shapes(special: bool) -> None:
    first, again, other = (random_inputs(_SIGNATURE, seed, special=special) for seed in (3, 3, 4))
    (matrix, (indices, token)), *arrays = first
    assert matrix.shape == (4, 5) and matrix.dtype == np.float32 and token is None
    assert indices.dtype == np.int32 and len(_SIGNATURE.parameters) == len(first)
    for array, row, twin, stranger in zip(arrays, TABLE, again[1:], other[1:], strict=True):
        assert array.dtype == row.dtype and array.shape == (64,)
        assert same(array, twin) and not same(array, stranger)


def test_ordinary_random_numbers_are_finite_and_serve_as_indices() -> None:
    (_, (indices, _)), *arrays = random_inputs(_SIGNATURE, 1)
    assert indices.min() >= 0 and indices.max() <= 3
    for array, row in zip(arrays, TABLE, strict=True):
        wide = array.astype(np.complex128 if row.is_complex else np.float64)
        assert np.isfinite(wide).all() and len(np.unique(wide)) >= 2
        assert not row.is_integer or (wide.real.min() >= 0 and wide.real.max() <= 3)


def test_special_random_numbers_hold_every_special_value() -> None:
    (array,) = random_inputs(Signature((parameter("f32[1000]"),), Shape.parse("()")), special=True)
    bits = set(array.view(np.uint32).tolist())
    assert set(special_values(element_type("f32")).view(np.uint32).tolist()) <= bits


def test_the_command_line_draws_what_the_library_draws() -> None:
    (array,) = random_inputs(Signature((parameter("f32[9]", "w"),), Shape.parse("()")), 7)
    assert same(parse_input("random:7", parameter("f32[9]", "w")), array)
    assert not same(parse_input("random:7", parameter("f32[9]", "v")), array)


def test_output_to_a_stream_and_never_half_a_file(tmp_path: Path) -> None:
    stream = io.BytesIO()
    write_output("-", np.array([1.5, 2], np.float32), stream=stream)
    assert stream.getvalue() == b"2xf32=[1.5 2]\n"
    with pytest.raises(CompileError, match="cannot write"):
        write_output(f"@{tmp_path}/none/y.npy", np.zeros(3))
    for spec in ("y.npy", "@y.txt", ""):
        with pytest.raises(ArgumentError, match="is no output"):
            write_output(spec, np.zeros(3))
    assert not list(tmp_path.iterdir())
