"""Products of bytes in blocks, against numpy in float64, in memory with guards on both sides; and JAX's beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.products.block_product import WHOLE, BlockProduct, Codes, Factors
from hloforge.pipelines.framework.machine import AVX2, AVX512, NEON, Machine
from tests.pipelines.codegen.jax_programs import RANDOM, check, normal
from tests.pipelines.codegen.kernel_text import Kernel

from .jit import EXTENSIONS, HOST, compiled
from .memory import Guarded

_NIBBLES = (Codes(0, 15), Codes(4, 15))


def _run(product: BlockProduct, machine: Machine, *, has_starts: bool, at_end: bool) -> None:
    count = len(product.codes)
    rows = [_bytes(product.m, product.blocks, product.size, signed=product.is_unsigned) for _ in range(count)]
    is_signed = not product.is_unsigned and not product.codes[0].is_flipped
    columns = _bytes(product.n, product.blocks, product.size, signed=is_signed)
    left, right = normal(product.m, product.blocks), normal(product.n, product.blocks)
    starts = RANDOM.integers(-1000, 1000, left.shape).astype(np.int32) if has_starts else np.zeros(left.shape, np.int32)
    lanes = np.zeros((product.m, product.blocks, product.size // 4), np.int32)
    lanes[..., 0] = starts
    spread = np.broadcast_to(left[..., None], lanes.shape)
    given = [_whole(one, WHOLE) for one in rows] + [_whole(one, WHOLE // 4) for one in (spread, lanes)]
    arrays = [*given, columns, right, np.zeros((product.m, product.n), np.float32)]
    kernel = Kernel(len(arrays), machine.vector_bytes)
    function, pointers, (workgroup,) = kernel.part(kernel.arrays, [kernel.workgroup])
    *own, scales, first, bytes_, steps, out = pointers
    factors = Factors(own, scales, first if has_starts else None, bytes_, steps)
    product.emit(function, factors, out, workgroup, machine)
    rooms = [Guarded(array.nbytes, at_end=at_end) for array in arrays]
    placed = [room.array(array) for room, array in zip(rooms, arrays, strict=True)]
    compiled(kernel.text()).run(placed, product.workgroups(machine))
    assert all(room.is_intact for room in rooms), "bytes beside an array were written"
    codes = [(columns.view(np.uint8) >> one.shift & one.mask) ^ 128 * one.is_flipped for one in product.codes]
    terms = [one.view(np.uint8 if product.is_unsigned else np.int8).astype(np.float64) for one in codes]
    dots = sum(np.einsum("mbt,nbt->mnb", one, other) for one, other in zip(rows, terms, strict=True))
    scaled = (dots + starts[:, None]) * left[:, None] * right
    error = np.abs(placed[-1] - scaled.sum(-1)) / (np.abs(scaled).sum(-1) + 1e-30)
    assert error.max() < 2e-6


def _bytes(*dims: int, signed: bool) -> Any:
    return (
        RANDOM.integers(-128, 128, dims).astype(np.int8) if signed else RANDOM.integers(0, 256, dims).astype(np.uint8)
    )


def _whole(array: Any, unit: int) -> Any:
    flat = array.reshape(len(array), -1)
    return np.ascontiguousarray(np.pad(flat, ((0, 0), (0, -flat.shape[1] % unit))))


@pytest.mark.wide(4)
@pytest.mark.parametrize("machine", [HOST, AVX512, AVX2, NEON], ids=["host", "AVX-512", "AVX2", "NEON"])
@pytest.mark.parametrize("size", [4, 8, 16, 32, 64, 128, 192])
def test_sizes(machine: Machine, size: int) -> None:
    """Of blocks, with and without the instructions for bytes; rows and columns that fill tiles and do not."""
    if machine.vector_bytes > HOST.vector_bytes:
        pytest.skip("this processor has shorter vectors")
    for has in (EXTENSIONS, EXTENSIONS & {"avx2"}, frozenset[str]()):
        for (m, n, blocks), (codes, is_unsigned) in zip(
            [(1, 9, 5), (4, 8, 8), (7, 3, 33), (2, 1, 16)],
            [(_NIBBLES, True), ((Codes(),), True), ((Codes(),), False), ((Codes(0, 255, is_flipped=True),), True)],
            strict=True,
        ):
            product = BlockProduct(m, n, blocks, size, codes, is_unsigned, has)
            _run(product, machine, has_starts=m > 1, at_end=m != 4)


def test_workgroups() -> None:
    """Each has some columns."""
    product = BlockProduct(8, 1030, 64, 16, _NIBBLES, True, EXTENSIONS)
    assert product.workgroups(HOST) > 1
    _run(product, HOST, has_starts=True, at_end=True)


def _blocks(x: Any, w: Any, left: Any, right: Any) -> Any:
    """``[m, b, t]`` bytes by ``[n, b, t]``."""
    dots = lax.dot_general(x.astype(jnp.int32), w.astype(jnp.int32), (((2,), (2,)), ((1,), (1,))))
    return (dots.astype(jnp.float32) * left.T[:, :, None] * right.T[:, None, :]).sum(0)


def _nibbles(x: Any, w: Any, left: Any, right: Any) -> Any:
    """The first half of a block's terms in low bits, with a zero point of 8."""
    half = w.shape[2]
    sums = x.astype(jnp.int32).sum(2).T[:, :, None]
    dots = [
        lax.dot_general(one.astype(jnp.int32), code.astype(jnp.int32), (((2,), (2,)), ((1,), (1,))))
        for one, code in ((x[:, :, :half], w & 15), (x[:, :, half:], w >> 4))
    ]
    return ((dots[0] + dots[1] - 8 * sums).astype(jnp.float32) * (left.T[:, :, None] * right.T[:, None, :])).sum(0)


def _calls(function: Any, *arguments: Any) -> int:
    """Products of blocks in a program."""
    program = hloforge.as_program(jax.jit(function).lower(*arguments)).clone()
    lower(program.module)
    return str(program.module).count("@hloforge.block_product(")


@pytest.mark.wide(2)
@pytest.mark.parametrize("m", [1, 6])
@pytest.mark.parametrize(
    ("function", "signs"),
    [
        (_blocks, (True, True)),
        (_blocks, (True, False)),
        (_blocks, (False, True)),
        (_blocks, (False, False)),
        (_nibbles, (True, False)),
    ],
)
def test_programs(function: Callable[..., Any], signs: tuple[bool, bool], m: int) -> None:
    """Of bytes with and without signs."""
    n, blocks, size = 40, 6, 32
    x = _bytes(m, blocks, size * (1 + (function is _nibbles)), signed=signs[0])
    w = _bytes(n, blocks, size, signed=signs[1])
    given = x, w, normal(m, blocks), normal(n, blocks)
    check(function, *given)
    assert _calls(function, *given) == 1


def test_what_is_no_product_of_blocks() -> None:
    """Scales that depend on rows and columns, and codes of other bytes."""
    x, w = _bytes(3, 6, 32, signed=True), _bytes(40, 6, 32, signed=True)
    both = normal(6, 3, 40)

    def scaled(x: Any, w: Any, both: Any) -> Any:
        dots = lax.dot_general(x.astype(jnp.int32), w.astype(jnp.int32), (((2,), (2,)), ((1,), (1,))))
        return (dots.astype(jnp.float32) * both).sum(0)

    check(scaled, x, w, both)
    assert _calls(scaled, x, w, both) == 0
