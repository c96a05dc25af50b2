"""decompose-rng: published test vectors of the two ciphers, and what must hold of numbers that differ in every call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge import Builder, Computation, ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.rng import DecomposeRng
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.named import lower
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests.engines import interpret

ALL = 2**64 - 1


def bits(algorithm: str, state: list[int], type_: str) -> np.ndarray[Any, Any]:
    key = f"tensor<{len(state)}xui64>"
    module = parse_module(f"""
      func.func @main(%state: {key}) -> {type_} {{
        %after, %bits = stablehlo.rng_bit_generator %state, algorithm = {algorithm} : ({key}) -> ({key}, {type_})
        return %bits : {type_} }}""")
    PassManager([DecomposeRng()]).run(module)
    assert "rng_bit_generator" not in str(module)
    return interpret(module, np.array(state, np.uint64))[0]


# Of Random123, the authors' library: kat_vectors, philox4x32 10 and threefry2x32 20.
@pytest.mark.parametrize(
    ("algorithm", "state", "words"),
    [
        ("PHILOX", [0, 0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ("PHILOX", [ALL, ALL, ALL], [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        ("THREE_FRY", [0, 0], [0x6B200159, 0x99BA4EFE]),
        ("THREE_FRY", [ALL, ALL], [0x1CB996FC, 0xBB002BE7]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_published_vectors(algorithm: str, state: list[int], words: list[int]) -> None:
    count = len(words)
    np.testing.assert_array_equal(bits(algorithm, state, f"tensor<{count}xui32>"), np.array(words, np.uint32))
    wide = np.array(words, np.uint32).view(np.uint64)
    np.testing.assert_array_equal(bits(algorithm, state, f"tensor<{count // 2}xui64>"), wide)


def test_bits_of_other_types_are_those_of_unsigned_integers() -> None:
    unsigned = bits("DEFAULT", [1, 2], "tensor<8xui32>")
    np.testing.assert_array_equal(bits("DEFAULT", [1, 2], "tensor<8xi32>"), unsigned.view(np.int32))
    np.testing.assert_array_equal(bits("DEFAULT", [1, 2], "tensor<8xf32>").view(np.uint32), unsigned)


def drawing(build: Any) -> Computation:
    with Builder("drawing") as builder:
        return builder.build(build())


def test_every_draw_differs() -> None:
    """Two operations, the turns of a loop and the calls of a program; a program loaded anew starts again."""

    def build() -> Any:
        def turn(number: Any, rows: Any) -> Any:
            row = ops.reshape(ops.rng_uniform(0, 2**62, "s64[5]"), [1, 5])
            return number + 1, ops.dynamic_update_slice(rows, row, [number, 0])

        start = [ops.constant(0, "s32"), ops.broadcast(ops.constant(0, "s64"), [3, 5])]
        first = ops.rng_uniform(0, 2**62, "s64[5]")
        _, rows = ops.while_(lambda number, rows: number < 3, turn, start)
        return ops.concat_in_dim([ops.reshape(first, [1, 5]), rows], 0)

    executable = compile_program(drawing(build))
    session, again = executable.load(), executable.load()
    calls = [np.asarray(session()) for _ in range(2)]
    assert len(np.unique(calls)) == 2 * 4 * 5
    np.testing.assert_array_equal(np.asarray(again()), calls[0])


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_distributions(element: str) -> None:
    """The greatest distance of the empirical distribution from the true one, below Kolmogorov's bound of 1 in 10**6."""
    count = 50_000
    program = drawing(
        lambda: [ops.rng_uniform(-1, 3, f"{element}[{count}]"), ops.rng_normal(1, 2, f"{element}[{count}]")]
    )
    uniform, normal = (np.sort(np.asarray(x, np.float64)) for x in compile_program(program)())
    steps = (np.arange(count) + 0.5) / count
    bound = 2.7 / np.sqrt(count)
    assert np.abs((uniform + 1) / 4 - steps).max() < bound
    assert np.abs(normal_distribution((normal - 1) / 2) - steps).max() < bound
    assert len(np.unique(uniform)) > 0.99 * count


def normal_distribution(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """By the trapezoid rule, fine enough for the bound."""
    grid = np.linspace(-9, 9, 20_001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    areas = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)]) * (grid[1] - grid[0])
    return np.interp(x, grid, areas)


def test_ends_of_intervals() -> None:
    """Rounding never reaches the open end, an empty interval is no division by zero, all integers may come."""

    def build() -> Any:
        one, next_one = ops.constant(1.0, "bf16"), ops.constant(1.0078125, "bf16")
        return [
            ops.rng_uniform(one, next_one, "bf16[300]"),
            ops.rng_uniform(5, 5, "s32[3]"),
            ops.rng_uniform(-128, 127, "s8[20000]"),
            ops.rng_uniform(False, True, "pred[3]"),
        ]

    narrow, empty, small, pred = map(np.asarray, compile_program(drawing(build))())
    assert set(narrow.astype(np.float32)) == {1.0}
    assert set(empty) == {5}
    assert set(small) == set(range(-128, 127))
    assert set(pred) == {False}


def test_a_dynamic_size_is_named_by_the_audit() -> None:
    program = read("""func.func @main(%a: tensor<f32>, %n: tensor<1xi64>) -> tensor<?xf32> {
      %x = stablehlo.rng %a, %a, %n, distribution = UNIFORM
        : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
      return %x : tensor<?xf32> }""")
    with pytest.raises(UnsupportedError, match="decompose-rng left it"):
        compile_program(program, options=CompileOptions(dynamic_shapes="keep"))


_OF_FLOATS = """
func.func @main(%x: tensor<2xf32>) -> tensor<2x{row}> {{
  %state, %bits = stablehlo.rng_bit_generator %x, algorithm = PHILOX
      : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xui32>)
  return %{result} : tensor<2x{row}>
}}
"""


def test_a_state_that_is_none_is_named() -> None:
    """HLO's text may have one, and does where nothing reads what comes of it."""
    with pytest.raises(UnsupportedError, match=r"rng_bit_generator.*its state is none: two u64"):
        lower(read(_OF_FLOATS.format(row="ui32", result="bits")).module)
    unread = read(_OF_FLOATS.format(row="f32", result="x"))
    lower(unread.module)
    assert not operations(unread.module, ["stablehlo.rng_bit_generator"])
