"""Elements in memory: sizes, constants, and vectors of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.pipelines.codegen.elements.memory import constant, load, size, store
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import BFLOAT, Value, vector_of
from hloforge.pipelines.codegen.products.shuffles import interleaved
from tests.pipelines.codegen.elements.xla_reference import COMPLEX, FLOATS, INTEGERS, samples
from tests.pipelines.codegen.jit import compiled

_EVERY = ("i1", *INTEGERS, *FLOATS, *COMPLEX)


@pytest.mark.parametrize("element", _EVERY)
@pytest.mark.parametrize("lanes", [0, 4])
def test_copies(element: str, lanes: int) -> None:
    x = samples(element)
    x = x[: len(x) // 4 * 4] if len(x) >= 4 else np.tile(x, 2)
    assert size(element) == x.dtype.itemsize

    def write(function: Function, pointers: list[Value], numbers: list[Value]) -> None:
        with function.loop(0, numbers[0], max(lanes, 1)) as i:
            assert isinstance(i, Value)
            store(function, load(function, pointers[0], element, i, lanes), pointers[1], element, i)

    out = np.zeros_like(x)
    compiled(write, 2, 1)(x, out, len(x))
    assert out.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("element", "numbers"),
    [
        ("i1", [True, False]),
        ("i8", [-128, 127]),
        ("ui8", [255, 0]),
        ("ui64", [2**64 - 1, 2**63]),
        ("f16", [0.1, 1e9, -0.0]),
        ("bf16", [0.1, np.inf, -3.3]),
        ("f32", [0.1, 3.4028235e38, 3.41e38, 1e-45]),
        ("f64", [0.1, -np.inf, np.nan]),
        ("complex<f32>", [0.1 + 2j, 3.0]),
        ("complex<f64>", [-0.5j, 1e300 + 0.1j]),
    ],
)
def test_constants(element: str, numbers: list[Any]) -> None:
    def write(function: Function, pointers: list[Value]) -> None:
        for place, number in enumerate(numbers):
            store(function, constant(function, element, number), pointers[0], element, place)

    with np.errstate(over="ignore"):
        want = np.array(numbers).astype(element_type(element).dtype)
    out = np.zeros_like(want)
    compiled(write, 1)(out)
    np.testing.assert_array_equal(out, want)


def test_places_may_be_constants() -> None:
    def write(function: Function, pointers: list[Value]) -> None:
        store(function, load(function, pointers[0], "complex<f32>", 3, 2), pointers[1], "complex<f32>", 1)
        store(function, load(function, pointers[0], "complex<f32>", 1), pointers[1], "complex<f32>", 0)

    x, out = (np.arange(5) + 1j).astype(np.complex64), np.zeros(3, np.complex64)
    compiled(write, 2)(x, out)
    assert list(out) == [1 + 1j, 3 + 1j, 4 + 1j]


@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 8, 9, 16, 17, 31])
def test_interleaved_bf16(lanes: int) -> None:
    """Vectors of any length: LLVM ended the process where ones of 9 that it had loaded changed places."""

    def write(function: Function, pointers: list[Value]) -> None:
        rows = [
            function.load(function.offset(pointers[0], BFLOAT, place * 40), vector_of(BFLOAT, lanes))
            for place in range(2)
        ]
        pairs = function.emit(f"bitcast {interleaved(function, rows)} to <{lanes} x i32>", f"<{lanes} x i32>")
        function.store(pairs, pointers[1])

    x, out = np.arange(80, dtype=np.uint16), np.zeros(2 * lanes, np.uint16)
    compiled(write, 2)(x, out)
    assert (out.reshape(lanes, 2) == x.reshape(2, 40)[:, :lanes].T).all()
