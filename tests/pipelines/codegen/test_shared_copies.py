"""Copies of large arrays have several workgroups, each of which writes a part, and no byte is left."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipelines.codegen.test_kernels import kernels_of
from tests.pipelines.codegen.whole_programs import check

_SIZE = 600_011
_PREFIX = f"func.func @main(%x: tensor<3x{_SIZE}xi8>, %i: tensor<i32>) -> tensor<3x{_SIZE}xi8>"
# What is changed in a part is copied, or made, before.
_BASES = {
    "an argument": "",
    "one number": "%c = stablehlo.constant dense<7> : tensor<i8>\n"
    "%x2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> TYPE",
    "what is computed": "%x2 = stablehlo.negate %x : TYPE",
}


def _program(base: str) -> str:
    made = _BASES[base].replace("TYPE", f"tensor<3x{_SIZE}xi8>")
    array = "x2" if made else "x"
    return f"""{_PREFIX} {{
      {made}
      %n = stablehlo.constant dense<5> : tensor<2x4xi8>
      %r = stablehlo.dynamic_update_slice %{array}, %n, %i, %i
        : (tensor<3x{_SIZE}xi8>, tensor<2x4xi8>, tensor<i32>, tensor<i32>) -> tensor<3x{_SIZE}xi8>
      return %r : tensor<3x{_SIZE}xi8> }}"""


@pytest.mark.parametrize("base", _BASES)
def test_before_an_update(base: str) -> None:
    program = _program(base)
    counts = [dispatch.workgroups for dispatch in kernels_of(program).dispatches]
    assert max(counts) > 1
    x = np.random.default_rng(0).integers(-100, 100, (3, _SIZE), np.int8)
    check(program, x, np.array(1, np.int32))


def test_of_a_small_array() -> None:
    """A workgroup more would take longer than the copy."""
    program = _program("an argument").replace(str(_SIZE), "1000")
    assert [dispatch.workgroups for dispatch in kernels_of(program).dispatches] == [1]


def _pieces(size: int) -> str:
    """A program that cuts an array in three, each of which is too small to be worth two threads."""
    part = f"tensor<{size}xf32>"
    cuts = "\n".join(
        f"%{number} = stablehlo.slice %x [{number * size}:{(number + 1) * size}] : (tensor<{3 * size}xf32>) -> {part}"
        for number in range(3)
    )
    return f"""func.func @main(%x: tensor<{3 * size}xf32>) -> ({part}, {part}, {part}) {{
      {cuts}
      return %0, %1, %2 : {part}, {part}, {part} }}"""


def test_of_several_pieces() -> None:
    """What a loop moves counts, of all that it makes together: additions alone say little of it."""
    program = _pieces(100_003)
    assert [dispatch.workgroups > 1 for dispatch in kernels_of(program).dispatches] == [True]
    check(program, np.random.default_rng(0).standard_normal(300_009).astype(np.float32))
    assert [dispatch.workgroups for dispatch in kernels_of(_pieces(10_000)).dispatches] == [1]
