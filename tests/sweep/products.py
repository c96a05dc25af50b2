"""Products of arrays: every layout of dot_general's dimensions, types of the result, precisions, algorithms."""

# ruff: noqa: E501 - rows of tables, and programs as they are printed

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.sweep.case import ALL, COMPLEX, FLOATS, INTEGERS, NARROW_FLOATS, NARROW_INTEGERS, Case, array, case

# operands, dimension numbers
DOTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any]] = {
    "inner": ((33,), (33,), (((0,), (0,)), ((), ()))),
    "matrix_vector": ((7, 13), (13,), (((1,), (0,)), ((), ()))),
    "vector_matrix": ((13,), (13, 5), (((0,), (0,)), ((), ()))),
    "matrix": ((20, 20), (20, 20), (((1,), (0,)), ((), ()))),
    "odd": ((7, 13), (13, 5), (((1,), (0,)), ((), ()))),
    "transposed_left": ((13, 7), (13, 5), (((0,), (0,)), ((), ()))),
    "transposed_right": ((7, 13), (5, 13), (((1,), (1,)), ((), ()))),
    "outer": ((7,), (5,), (((), ()), ((), ()))),
    "scalars": ((), (), (((), ()), ((), ()))),
    "scalar_matrix": ((), (3, 4), (((), ()), ((), ()))),
    "batch": ((3, 4, 5), (3, 5, 2), (((2,), (1,)), ((0,), (0,)))),
    "batch_late": ((4, 5, 3), (5, 3, 2), (((1,), (0,)), ((2,), (1,)))),
    "two_batches": ((2, 3, 4, 5), (3, 2, 5, 6), (((3,), (2,)), ((0, 1), (1, 0)))),
    "two_contracted": ((4, 3, 5), (5, 4, 2), (((0, 2), (1, 0)), ((), ()))),
    "elementwise": ((3, 4), (3, 4), (((), ()), ((0, 1), (0, 1)))),
    "batched_inner": ((3, 4), (3, 4), (((1,), (1,)), ((0,), (0,)))),
    "batched_outer": ((3, 4), (3, 2), (((), ()), ((0,), (0,)))),
    "rank5": ((2, 3, 1, 4, 3), (3, 4, 2), (((3, 4), (1, 0)), ((0,), (2,)))),
    "of_nothing": ((3, 0), (0, 4), (((1,), (0,)), ((), ()))),
    "empty": ((0, 3), (3, 4), (((1,), (0,)), ((), ()))),
    "ones": ((1, 1), (1, 1), (((1,), (0,)), ((), ()))),
    "large": ((65, 130), (130, 71), (((1,), (0,)), ((), ()))),
    "thin": ((1, 257), (257, 129), (((1,), (0,)), ((), ()))),
}
_TYPES = (*FLOATS, *COMPLEX, "int8", "int32", "int64", "uint8", "uint32", "int4", "uint4", "bool", "int16", "uint64")

PREFERRED = (
    ("int8", "int32"), ("uint8", "uint32"), ("int4", "int32"), ("int4", "int8"), ("uint4", "uint8"), ("int16", "int32"),
    ("bfloat16", "float32"), ("float16", "float32"), ("float32", "float64"), ("bfloat16", "float64"),
    ("complex64", "complex128"), ("int8", "int64"), ("float8_e4m3fn", "float32"), ("float8_e5m2", "float32"),
    ("float8_e4m3fn", "bfloat16"), ("float8_e5m2fnuz", "float16"), ("float8_e4m3b11fnuz", "float32"), ("float4_e2m1fn", "float32"),
    ("float32", "bfloat16"), ("float64", "float32"), ("int2", "int32"), ("int32", "float32"),
)  # fmt: skip

MIXED = (
    ("float8_e4m3fn", "float8_e5m2", "float32"),
    ("int8", "int4", "int32"),
    ("bfloat16", "float32", "float32"),
    ("int8", "uint8", "int32"),
    ("float32", "int8", "float32"),
)


def cases() -> Iterator[Case]:
    for name, (lhs, rhs, numbers) in DOTS.items():
        for dtype in _TYPES:
            yield case(f"dot_{dtype}/{name}", _dot(numbers), array(*lhs), array(*rhs), dtype=dtype)
    for dtype in NARROW_FLOATS:
        lhs, rhs, numbers = DOTS["odd"]
        yield case(
            f"dot_narrow/{dtype}", _dot(numbers), array(*lhs, kind="unit"), array(*rhs, kind="unit"), dtype=dtype
        )
    for dtype, preferred in PREFERRED:
        for name in ("odd", "batch", "inner", "matrix"):
            lhs, rhs, numbers = DOTS[name]
            function = _dot(numbers, preferred_element_type=getattr(jnp, preferred))
            yield case(f"dot_preferred/{dtype}_{preferred}_{name}", function, array(*lhs), array(*rhs), dtype=dtype)
    for first, second, preferred in MIXED:
        lhs, rhs, numbers = DOTS["odd"]
        function = _dot(numbers, preferred_element_type=getattr(jnp, preferred))
        operands = array(*lhs, dtype=first), array(*rhs, dtype=second)
        yield case(f"dot_mixed/{first}_{second}_{preferred}", function, *operands)
    for precision in ("default", "high", "highest"):
        for dtype in (*FLOATS, *COMPLEX):
            lhs, rhs, numbers = DOTS["odd"]
            yield case(
                f"dot_precision/{precision}_{dtype}",
                _dot(numbers, precision=precision),
                array(*lhs),
                array(*rhs),
                dtype=dtype,
            )
    # Those that JAX lowers for CPUs.
    for algorithm in (
        "BF16_BF16_F32",
        "BF16_BF16_F32_X3",
        "BF16_BF16_F32_X6",
        "F32_F32_F32",
        "F64_F64_F64",
        "F16_F16_F16",
    ):
        lhs, rhs, numbers = DOTS["odd"]
        dtype = {"F64": "float64", "F16": "float16", "F16_F16_F16": "float16"}.get(algorithm[:3].rstrip("_"), "float32")
        function = _dot(numbers, precision=getattr(lax.DotAlgorithmPreset, algorithm))
        yield case(f"dot_algorithm/{algorithm}", function, array(*lhs), array(*rhs), dtype=dtype)
    yield from _numpy()


def _dot(numbers: Any, **options: Any) -> Callable[..., Any]:
    return lambda x, y: lax.dot_general(x, y, numbers, **options)


def _numpy() -> Iterator[Case]:
    rows: dict[str, tuple[Callable[..., Any], Any, Any]] = {
        "einsum_bij_bkj": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), (2, 3, 4), (2, 5, 4)),
        "einsum_ijk_kji": (lambda a, b: jnp.einsum("ijk,kji->", a, b), (2, 3, 4), (4, 3, 2)),
        "einsum_ii": (lambda a, b: jnp.einsum("ii,ij->j", a, b), (3, 3), (3, 4)),
        "tensordot": (lambda a, b: jnp.tensordot(a, b, 2), (2, 3, 4), (3, 4, 5)),
        "kron": (jnp.kron, (2, 3), (4, 5)),
        "outer": (jnp.outer, (7,), (9,)),
        "vdot": (jnp.vdot, (3, 4), (3, 4)),
        "matmul_broadcast": (jnp.matmul, (2, 1, 3, 4), (5, 4, 2)),
        "cross": (jnp.cross, (5, 3), (5, 3)),
        "chain": (lambda a, b: jnp.tanh(a @ b + 1) @ b.T, (5, 6), (6, 7)),
        "linear": (lambda a, b: a @ b + a.sum(1, keepdims=True), (5, 6), (6, 7)),
    }
    for name, (function, lhs, rhs) in rows.items():
        for dtype in (*FLOATS, "complex64", "int32", "uint8") if name != "chain" else FLOATS:
            yield case(f"products/{name}_{dtype}", function, array(*lhs), array(*rhs), dtype=dtype)
    for dtype in (*ALL, *INTEGERS[:0], *NARROW_INTEGERS[:0]):
        yield case(f"matmul/{dtype}", jnp.matmul, array(4, 9), array(9, 3), dtype=dtype)
