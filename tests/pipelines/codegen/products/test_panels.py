"""Products whose weights are unpacked as they are multiplied, judged by XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.reading import function_of
from hloforge.pipelines.codegen.steps import Planner, Single
from tests.pipelines.codegen.jax_programs import check

_RANDOM = np.random.default_rng(0)
_K, _N, _BLOCK = 256, 144, 32


def _bytes(*dims: int, dtype: Any = np.uint8) -> Any:
    return _RANDOM.integers(0, 256, dims).astype(np.uint8).view(dtype)


def _normal(*dims: int) -> Any:
    return _RANDOM.standard_normal(dims).astype(np.float32)


def _nibbles(packed: Any) -> Any:
    """Of each byte the low one, then the high one."""
    return jnp.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


def _by_rows(packed: Any, scales: Any, zeros: Any) -> Any:
    """As MatMulNBits has them: ``[n, blocks, bytes]``, with a scale and a zero point for each block."""
    numbers = _nibbles(packed).astype(jnp.float32) - zeros[..., None]
    return (numbers * scales[..., None]).reshape(_N, _K).T


def _by_columns(packed: Any, scales: Any, zeros: Any) -> Any:
    """As GPTQ has them: eight of a column in a word of 32 bits, a scale and a packed zero point for each group."""
    shifts = jnp.arange(0, 32, 4, dtype=jnp.int32)
    weights = (packed[:, None, :] >> shifts[None, :, None] & 15).reshape(_K, _N)
    zero = (zeros[:, :, None] >> shifts & 15).reshape(_K // _BLOCK, _N) + 1
    groups = jnp.arange(_K, dtype=jnp.int32) // _BLOCK
    return (weights - zero[groups]).astype(jnp.float32) * scales[groups]


def _by_packed_columns(packed: Any, scales: Any, zeros: Any) -> Any:
    """As AWQ has them: eight columns in a word of 32 bits, the even ones first, and zero points packed alike."""
    shifts = jnp.asarray([0, 16, 4, 20, 8, 24, 12, 28], jnp.int32)
    weights = (packed[:, :, None] >> shifts & 15).reshape(_K, _N)
    zero = (zeros[:, :, None] >> shifts & 15).reshape(_K // _BLOCK, _N)
    numbers = (weights - jnp.repeat(zero, _BLOCK, 0)).astype(jnp.float32)
    return numbers * jnp.repeat(scales, _BLOCK, 0)


def _by_groups(packed: Any, scales: Any, zeros: Any) -> Any:
    """As torchao's exports have them: bytes in groups, scales of half precision, zero points of floats."""
    numbers = packed.reshape(_N, _K // _BLOCK, _BLOCK).astype(jnp.float32)
    return ((numbers - zeros[..., None]) * scales[..., None].astype(jnp.float32)).reshape(_N, _K).T


def _of_columns(packed: Any, scales: Any, zeros: Any) -> Any:
    """A scale for each column, and no zero point."""
    return packed.astype(jnp.float32) * scales


_BLOCKS = (_N, _K // _BLOCK)
_FORMS: dict[str, tuple[Any, Any]] = {
    "by rows": (
        _by_rows,
        (_bytes(*_BLOCKS, _BLOCK // 2), _normal(*_BLOCKS), _RANDOM.integers(0, 16, _BLOCKS).astype(np.float32)),
    ),
    "by columns": (
        _by_columns,
        (
            _bytes(_K // 8, _N, 4, dtype=np.int32)[..., 0],
            _normal(_K // _BLOCK, _N),
            _bytes(_K // _BLOCK, _N // 8, 4, dtype=np.int32)[..., 0],
        ),
    ),
    "by packed columns": (
        _by_packed_columns,
        (
            _bytes(_K, _N // 8, 4, dtype=np.int32)[..., 0],
            _normal(_K // _BLOCK, _N),
            _bytes(_K // _BLOCK, _N // 8, 4, dtype=np.int32)[..., 0],
        ),
    ),
    "by groups": (_by_groups, (_bytes(_N, _K, dtype=np.int8), _normal(*_BLOCKS).astype(np.float16), _normal(*_BLOCKS))),
    "of columns": (_of_columns, (_bytes(_K, _N, dtype=np.int8), _normal(_N), np.float32(0))),
}


def _panels(function: Any, *arguments: Any) -> int:
    """How many products of a program unpack a factor as they go."""
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(function).lower(*arguments)).clone()
    lower(program.module)
    block = function_of(program.module)
    stored = {*block.arguments, *(op.result for op in block.ops if op.name == "constant" and not op.is_splat)}
    steps = Planner(block, stored.__contains__).steps()
    return sum(isinstance(step, Single) and step.operation.panel is not None for step in steps)


@pytest.mark.wide(2)
@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("form", list(_FORMS))
def test_forms_of_weights(form: str, rows: int) -> None:
    """As right factors and as left ones."""
    unpack, given = _FORMS[form]

    def products(x: Any, *given: Any) -> Any:
        return x @ unpack(*given), unpack(*given).T @ x.T

    x = _normal(rows, _K)
    check(products, x, *given)
    # A scale of a column multiplies the results, so that bytes are read as they are.
    unpacked = 0 if form == "of columns" else 1
    assert _panels(lambda x, *given: x @ unpack(*given), x, *given) == unpacked


def test_what_stays_in_memory() -> None:
    """A factor that another reads, and one that is not smaller in memory."""
    unpack, given = _FORMS["by groups"]
    x = _normal(4, _K)

    def read_twice(x: Any, *given: Any) -> Any:
        weights = unpack(*given)
        return x @ weights, weights

    assert _panels(read_twice, x, *given) == 0
    check(read_twice, x, *given)
    assert _panels(lambda x, w: x @ jnp.maximum(w, 0), x, _normal(_K, _N)) == 0


def test_what_a_panel_moves_has_memory_for_others() -> None:
    """The gradient of a 1x1 convolution's weights whose incoming gradient other convolutions read too.

    The factor was meant to be computed as it is read. What it exchanges the dimensions of is in memory after all.
    """

    def gradients(x: Any, w: Any, grown: Any, mask: Any) -> Any:
        spread = jnp.where(mask, jnp.broadcast_to(grown[:, :, None, None] / 36, mask.shape), 0)
        image = jax.lax.conv(spread, w, (1, 1), "SAME")
        return jnp.einsum("nihw,nohw->io", x, spread), image, spread.sum((0, 2, 3))

    mask = _bytes(6, 88, 6, 6) < 128
    given = _normal(6, 44, 6, 6), _normal(44, 88, 3, 3), _normal(6, 88), mask
    check(gradients, *given)
    assert _panels(gradients, *given) == 1


@pytest.mark.wide(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows", [1, 5, 33])
def test_half_precision_is_widened_as_it_is_read(dtype: str, rows: int) -> None:
    """Of either factor, transposed or not, and in a loop."""
    w = _normal(70, 90).astype(dtype)
    x = _normal(rows, 70)
    check(lambda x, w: x @ w.astype(jnp.float32), x, w)
    check(lambda x, w: w.astype(jnp.float32).T @ x.T, x, w)

    def loop(x: Any, w: Any) -> Any:
        wide = w[:, :70].astype(jnp.float32)
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ wide), x)

    check(loop, x, w)
    kernel = w[None, None, :3, :5]
    check(lambda x, k: jax.lax.conv(x[None, None], k.astype(jnp.float32), (1, 1), "SAME"), x, kernel)
