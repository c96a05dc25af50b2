"""Functions exported with symbolic sizes ``a`` and ``b``, called at sizes that they were not traced for."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

import hloforge
from hloforge.dialect.program import Program
from tests.sweep.case import Array, dtype_of, values

# The sizes a and b of each call.
SIZES = ((3, 2), (1, 1), (4, 7))
# Functions in one program.
_BUNDLE = 6


@dataclass(frozen=True)
class Polymorphic:
    """One function of symbolic sizes.

    Attributes:
        id: its name in the table.
        function: from arrays to an array or a tree of arrays.
        arguments: element type, kind of the drawn values (``case.Draw``) and sizes of each argument.
        mode: how it is compiled: ``keep``, or ``specialize`` where one module for all sizes is refused; ``jax`` is the
            latter, and JAX tells the results.
    """

    id: str
    function: Callable[..., Any]
    arguments: tuple[tuple[str, str, str], ...]
    mode: str

    def drawn(self, sizes: tuple[int, int]) -> list[Array]:
        """Arguments for a call."""
        names = dict(zip("ab", sizes, strict=True))
        found = []
        for number, (dtype, kind, dims) in enumerate(self.arguments):
            random = np.random.default_rng(zlib.crc32(f"{self.id}.{number}.{sizes}".encode()))
            # Sizes are arithmetic of a and b, from the tables below.
            found.append(values(eval(f"({dims},)" if dims else "()", {}, names), dtype, kind, random))
        return found


def together(members: Sequence[Polymorphic]) -> Any:
    """A jitted function of the arguments of all that returns the results of all."""

    def function(*flat: Any) -> list[Any]:
        given = iter(flat)
        return [jax.tree.leaves(member.function(*[next(given) for _ in member.arguments])) for member in members]

    return jax.jit(function, keep_unused=True)


def exported(members: Sequence[Polymorphic]) -> Program:
    """One program of symbolic sizes that returns the results of all."""
    scope = export.SymbolicScope()
    arguments = [argument for member in members for argument in member.arguments]
    shapes = [
        jax.ShapeDtypeStruct(export.symbolic_shape(dims, scope=scope), dtype_of(dtype)) for dtype, _, dims in arguments
    ]
    with jax.enable_x64(True):
        return hloforge.read(export.export(together(members), platforms=["cpu"])(*shapes).mlir_module())


def static(members: Sequence[Polymorphic], arguments: Sequence[Array]) -> Program:
    """The same program, traced for the sizes of the arguments."""
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        return hloforge.read(together(members).lower(*arguments).as_text())


def bundles() -> dict[str, list[Polymorphic]]:
    """Functions that are compiled together, by how they are compiled and the first one."""
    found = {}
    for mode in ("keep", "specialize", "jax"):
        members = [entry for entry in functions() if entry.mode == mode]
        for start in range(0, len(members), _BUNDLE):
            found[f"{mode}-{members[start].id}"] = members[start : start + _BUNDLE]
    return found


def functions() -> Iterator[Polymorphic]:
    """All functions of the tables."""
    for mode, table in (("keep", _KEPT), ("specialize", _SPECIALIZED), ("jax", _BY_JAX)):
        for name, (function, *texts) in table.items():
            yield Polymorphic(name, function, tuple(_argument(text) for text in texts), mode)


def _argument(text: str) -> tuple[str, str, str]:
    """``f32 unit: a, 4`` as element type, kind and sizes."""
    head, dims = text.split(":")
    short, _, kind = head.partition(" ")
    return _NAMES.get(short, short), kind or "plain", dims.strip()


_NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "c64": "complex64"}
_NUMBERS = ("NHWC", "HWIO", "NHWC")

# A function and its arguments: element type, kind and sizes.
_KEPT: dict[str, tuple[Any, ...]] = {
    "arithmetic": (lambda x, y: (x + y) * x - y / (x * x + 1), "f32: a, b", "f32: a, b"),
    "broadcast_row": (lambda x, y: x * y + 1, "f32: a, b", "f32: b"),
    "broadcast_column": (lambda x, y: jnp.maximum(x, y[:, None]), "f64: a, b", "f64: a"),
    "broadcast_to": (lambda x: jnp.broadcast_to(x, (2, *x.shape)), "int8: a, b"),
    "integers": (lambda x, y: (x // (abs(y) + 1), x % (abs(y) + 1), x << 2, x ^ y), "i32: a, b", "i32: a, b"),
    "unsigned": (lambda x, y: (x // (y + 1), x >> 1, lax.clz(x), x > y), "uint8: a", "uint8: a"),
    "transcendental": (lambda x: (jnp.exp(x), jnp.sin(x), jnp.log1p(abs(x)), lax.erf(x), jnp.cbrt(x)), "f32: a, b"),
    "transcendental_f64": (lambda x: (jnp.tan(x), jnp.expm1(x), jnp.arctan2(x, x + 1), jnp.sinh(x)), "f64: a"),
    "half": (lambda x, y: (jnp.tanh(x) + y, jax.nn.gelu(y)), "f16: a, b", "f16: a, b"),
    "brain": (lambda x, y: (jnp.exp(x) * y, x.sum(0), jax.nn.silu(y)), "bf16: a, b", "bf16: a, b"),
    "complex": (lambda x, y: (x * y, abs(x), jnp.exp(x), x.conj().T, jnp.angle(y)), "c64: a, b", "c64: a, b"),
    "complex_wide": (lambda x: (x / (x + 2), jnp.sqrt(x), x.sum(0), jnp.zeros_like(x) + x.shape[0]), "complex128: a"),
    "select": (lambda x, y: (jnp.where(x > y, x, 0), jnp.clip(x, -1, 1)), "f32: a, b", "f32: a, b"),
    "conversions": (lambda x: (x.astype("int8"), x.astype(bool), x.astype("float64"), x.astype("uint16")), "f32: a, b"),
    "narrow": (lambda x: (x.astype("float32"), x + x, (-x).astype("int8")), "float8_e4m3fn: a, b"),
    "narrow_integers": (lambda x: (x + x, x.astype("float32"), x > 0), "int4: a, b"),
    "bits": (lambda x: (lax.bitcast_convert_type(x, "int32"), lax.bitcast_convert_type(x, "uint8")), "f32: a, b"),
    "predicates": (lambda x, y: (x & y, ~x, x.any(0), x.all(1), x.sum()), "bool: a, b", "bool: a, b"),
    "sizes": (lambda x: (x.mean(0), x.shape[0] * x, jnp.full(x.shape[1], x.shape[0] // 2), x.size), "f32: a, b"),
    "sums": (lambda x: (x.sum(), x.sum(0), x.sum(1), x.prod(1), x.mean()), "f32 unit: a, b"),
    "extrema": (lambda x: (x.max(0), x.min(1), x.argmax(0), x.argmin(1), jnp.ptp(x)), "f32: a, b"),
    "integer_sums": (lambda x: (x.sum(0), x.max(1), jnp.bitwise_xor.reduce(x, 0)), "int16: a, b"),
    "moments": (lambda x: (x.var(0), x.std(1), jnp.linalg.norm(x), jax.nn.logsumexp(x, 1)), "f32: a, b"),
    "softmax": (lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, 0), jax.nn.standardize(x)), "f32: a, b"),
    "reduce_of_two": (
        lambda x, y: lax.reduce((x, y), (np.float32(0), np.float32(1)), lambda p, q: (p[0] + q[0], p[1] * q[1]), (0,)),
        "f32: a, 4",
        "f32 unit: a, 4",
    ),
    "running": (
        lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0, reverse=True), lax.cumlogsumexp(x, 1)),
        "f32 unit: a, b",
    ),
    "windows": (
        lambda x: (
            lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
            lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), ((0, 0), (1, 1))),
        ),
        "f32: a + 1, b + 2",
    ),
    "pooling": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        "f32: a, 6, 2*b, 3",
    ),
    "reshape": (lambda x: (x.reshape(-1), x.reshape(2, -1), x.reshape(x.shape[1] // 2, 2, x.shape[0])), "f32: a, 2*b"),
    "reshape_bool": (lambda x: x.reshape(-1, 2), "bool: 2*a, b"),
    "squeeze": (lambda x: (x[:, None, :, None], jnp.squeeze(x[None], 0), jnp.expand_dims(x, 1)), "uint8: a, b"),
    "transpose": (lambda x: (x.T, jnp.swapaxes(x[None], 0, 2), jnp.moveaxis(x[..., None], 0, -1)), "f32: a, b"),
    "reverse": (lambda x: (x[::-1], jnp.flip(x, 1), lax.rev(x, (0, 1))), "uint16: a, b"),
    "concatenate": (
        lambda x, y: (jnp.concatenate([x, y, x]), jnp.stack([x, x], 1), jnp.hstack([x, x])),
        "f32: a, 4",
        "f32: b, 4",
    ),
    "tile": (lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, 1), jnp.roll(x, 1, 0)), "i32: a, b"),
    "pad": (
        lambda x: (jnp.pad(x, ((1, 2), (0, x.shape[0]))), lax.pad(x, np.float32(9), ((-1, 1, 0), (0, 2, 1)))),
        "f32: a + 1, b",
    ),
    "pad_narrow": (lambda x: lax.pad(x, np.uint8(3), ((1, 0, 2), (0, -1, 0))), "uint8: a, b + 1"),
    "slices": (lambda x: (x[1:], x[:, ::2], x[-1], x[:-1, 1:], x[::-2]), "f32: a + 1, b + 1"),
    "slice_in_dim": (
        lambda x: (lax.slice_in_dim(x, 1, x.shape[0], 2, 0), lax.index_in_dim(x, 0, 1), x[: x.shape[0] // 2 + 1]),
        "i32: a + 2, b",
    ),
    "dynamic_slice": (
        lambda x, i: (
            lax.dynamic_slice(x, (i, i), (1, 2)),
            lax.dynamic_index_in_dim(x, i, 0),
            lax.dynamic_slice_in_dim(x, i, x.shape[0] - 1, 0),
        ),
        "f32: a + 1, b + 1",
        "i32 index:",
    ),
    "update": (
        lambda x, y, i: (lax.dynamic_update_slice(x, y, (i, i)), lax.dynamic_update_slice(x, x[:1], (i, i))),
        "f32: a + 1, b + 2",
        "f32: 1, 2",
        "i32 index:",
    ),
    "take": (
        lambda x, i: (x[i], jnp.take(x, i, 1, mode="clip"), jnp.take(x, i, 0, mode="fill")),
        "f32: a, b",
        "i32 index: 5",
    ),
    "take_along": (lambda x, i: jnp.take_along_axis(x, i % x.shape[1], 1), "f32: a, b", "i32 index: a, 3"),
    "gather_rows": (lambda x, i: (x[i], x[:, i % 2], x[i, 0]), "int64: a, b + 1", "i32 index: b"),
    "gather_pairs": (lambda x, i, j: (x[i, j], x[i[:, None], j[None]]), "f32: a, b", "i32 index: 4", "i32 index: 4"),
    "one_hot": (lambda i: (jax.nn.one_hot(i, 5), jax.nn.one_hot(i, i.shape[0])), "i32 index: a"),
    "iota": (
        lambda x: (
            jnp.arange(x.shape[0]),
            lax.iota("float32", 3 * x.shape[0]),
            jnp.arange(x.shape[1] * 2)[None] + x[:, :1],
        ),
        "f32: a, b",
    ),
    "iota_types": (
        lambda x: [lax.broadcasted_iota(t, (x.shape[0], 3), 0) for t in ("uint8", "bfloat16", "complex64", "int64")],
        "f32: a",
    ),
    "triangles": (lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.eye(x.shape[0]), jnp.diagonal(x @ x.T)), "f32: a, b"),
    "linspace": (
        lambda x: (jnp.linspace(0.0, 1.0, 5) + x[:, None], jnp.full_like(x, 3), jnp.ones(x.shape[0])),
        "f32: a",
    ),
    "matmul": (lambda x, y: (x @ y, x.T @ x, jnp.dot(x[0], y)), "f32: a, b", "f32: b, 4"),
    "matmul_batches": (lambda x, y: (x @ y, jnp.einsum("bij,bik->bjk", x, x)), "f32: a, 3, b", "f32: a, b, 2"),
    "matmul_types": (lambda x, y: (x @ y, lax.dot(x, y, preferred_element_type=jnp.int32)), "int8: a, b", "int8: b, 3"),
    "matmul_half": (lambda x, y: (x @ y, x @ x.T), "bf16: a, 8", "bf16: 8, b"),
    "matmul_complex": (lambda x, y: x @ y, "c64: a, b", "c64: b, 3"),
    "matmul_f64": (lambda x, y: (x @ y, jnp.vdot(x, x), jnp.outer(x[0], y[0])), "f64: a, b", "f64: b, a"),
    "einsum": (
        lambda x, y: (
            jnp.einsum("ij,kj->ik", x, y),
            jnp.einsum("ij->j", x),
            jnp.einsum("ij,ij->", x, x),
            jnp.einsum("ii->i", x @ x.T),
        ),
        "f32: a, 4",
        "f32: b, 4",
    ),
    "attention": (
        lambda q, k: jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), k),
        "f32: a, 5, 4",
        "f32: a, b, 4",
    ),
    "tensordot": (
        lambda x, y: (jnp.tensordot(x, y, 1), jnp.kron(x, jnp.ones((2, 2), x.dtype))),
        "f32: a, b",
        "f32: b, 2, 3",
    ),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=_NUMBERS),
        "f32: a, 5, b, 2",
        "f32: 3, 3, 2, 4",
    ),
    "convolution_steps": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2), dimension_numbers=_NUMBERS
        ),
        "f32: a, b + 3, 6, 2",
        "f32: 3, 2, 2, 3",
    ),
    "convolution_groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=_NUMBERS, feature_group_count=2),
        "f32: a, 5, b + 2, 4",
        "f32: 3, 3, 2, 4",
    ),
    "interleave": (lambda x: (jnp.meshgrid(x, x)[0], jnp.vander(x, 3), jnp.diff(x), jnp.ediff1d(x)), "f32: a + 1"),
    "polynomials": (
        lambda x: (jnp.polyval(jnp.arange(3.0), x), jnp.trapezoid(x), jnp.cross(x[:, :3], x[:, :3] + 1)),
        "f32: a, b + 3",
    ),
    "counting": (
        lambda x: (jnp.count_nonzero(x, 1), jnp.nan_to_num(x), jnp.isclose(x, x[::-1]), jnp.signbit(x)),
        "f32 any: a, b",
    ),
    "special": (lambda x: (lax.lgamma(x), lax.digamma(x), lax.erf_inv(x / 9), lax.bessel_i1e(x)), "f32 positive: a, b"),
    "fori": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, s: s * 0.5 + x[i], jnp.zeros(4)), "f32: a, 4"),
    "fori_dynamic_carry": (lambda x: lax.fori_loop(0, 3, lambda i, v: v * 0.5 + i, x), "f32: a, b"),
    "while": (lambda x: lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2, jnp.abs(x) + 1), "f32: a, b"),
    "branches": (
        lambda x: (
            lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
            lax.switch(x.shape[0] % 3, [jnp.sin, jnp.cos, jnp.tanh], x),
        ),
        "f32: a, b",
    ),
    "map": (lambda x: lax.map(lambda row: row.sum(), x), "f32: a, b"),
    "scan_rows": (lambda x: lax.scan(lambda c, r: (c + r.sum(), None), jnp.float32(0), x), "f32: a, b"),
    "gradients": (lambda x, w: jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w), "f32: a, b", "f32: b, 3"),
    "convolution_gradient": (
        lambda x, w: jax.grad(
            lambda w: (lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=_NUMBERS) ** 2).sum()
        )(w),
        "f32: a, 5, 6, 2",
        "f32: 3, 3, 2, 4",
    ),
    "associative_scan": (
        lambda x: (lax.associative_scan(jnp.add, x), lax.associative_scan(jnp.maximum, x, reverse=True)),
        "f32: 8, b",
    ),
    "layer_norm": (
        lambda x, s: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * s,
        "f32: a, b, 4",
        "f32: 4",
    ),
    "mlp": (lambda x, w, v: jax.nn.relu(x @ w) @ v, "f32: a, 4", "f32: 4, b", "f32: b, 3"),
    "dynamic_sum_of_products": (lambda x, y: jax.vmap(jnp.dot)(x, y), "f32: a, b", "f32: a, b"),
    "reduce_precision": (lambda x: (lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7)), "f32: a, b"),
    "barrier": (lambda x, y: lax.optimization_barrier((x, y)), "f32: a", "uint8: b"),
}
_SPECIALIZED: dict[str, tuple[Any, ...]] = {
    "random": (
        lambda k, x: (
            jax.random.bits(k, x.shape),
            jax.random.uniform(k, (x.shape[0],)),
            jax.random.normal(k, (x.shape[0],)),
        ),
        "uint32 small: 2",
        "f32: a, b",
    ),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), -jnp.sort(-x)), "f32: a, b"),
    "sort_types": (lambda x, y: (jnp.sort(x), jnp.sort(y), jnp.lexsort((x,))), "int8: a", "bf16: b"),
    "sort_pairs": (lambda x, y: lax.sort((x, y), num_keys=2), "i32 small: a", "f32: a"),
    "median": (lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.3, 0), jnp.percentile(x, 50)), "f32: a, b"),
    "top_k": (lambda x: lax.top_k(x, 2), "f32: a, b + 2"),
    "scatter_set": (lambda x, i: (x.at[i].set(1.0), x.at[:, i].add(2.0)), "f32: a, b", "i32 index: 3"),
    "scatter_rows": (
        lambda x, y, i: (x.at[i].add(y), x.at[i].max(y), x.at[i].mul(y)),
        "f32: a, 4",
        "f32: b, 4",
        "i32 index: b",
    ),
    "scatter_slices": (lambda x: (x.at[0].set(7.0), x.at[1:, 0].multiply(2.0), x.at[-1, -1].add(1.0)), "f32: a + 1, b"),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, abs(i), 6), "f32: a, b", "i32 small: a"),
    "bincount": (lambda i: (jnp.bincount(abs(i), length=6), jnp.histogram(i, jnp.arange(5.0))[0]), "i32 small: a"),
    "fft": (lambda x: (jnp.fft.fft(x, axis=1), jnp.fft.rfft(x.real), jnp.fft.ifft(x[:, :4])), "c64: a, 8"),
    "scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(x.shape[1], x.dtype), x), "f32: a, b"),
    "two_carries": (lambda x, y: lax.fori_loop(0, 3, lambda i, s: (s[1], s[0] + i), (x, y)), "f32: a, b", "f32: a, b"),
    "gru": (
        lambda x, w: lax.scan(lambda h, r: (jnp.tanh(h @ w + r), h.sum()), jnp.zeros((x.shape[1], 4)), x),
        "f32: a, b, 4",
        "f32 unit: 4, 4",
    ),
    "unscaled": (lambda x: jax.grad(lambda x: (jnp.sort(x) * jnp.arange(x.shape[0])).sum())(x), "f32: a"),
    "max_pool_gradient": (
        lambda x: jax.grad(
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()
        )(x),
        "f32: a, 6, 4, b",
    ),
    "gather_gradient": (lambda x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x), "f32: a, b", "i32 index: 5"),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=4, fill_value=-1), "f32: a, b"),
    "unique": (lambda x: jnp.unique(x, size=3, fill_value=0), "i32 small: a"),
    "batch_norm": (lambda x: jax.nn.standardize(x, axis=0) + jnp.cumsum(x, 0).at[0].set(0), "f32: a, b"),
}
# XLA's client alone has no LAPACK: JAX runs these.
_BY_JAX: dict[str, tuple[Any, ...]] = {
    "cholesky": (lambda x: jnp.linalg.cholesky(jnp.einsum("bij,bkj->bik", x, x) + 3 * jnp.eye(3)), "f32 unit: a, 3, 3"),
    "solve": (
        lambda x, y: (
            jax.scipy.linalg.solve_triangular(x + 4 * jnp.eye(3), y, lower=True),
            jnp.linalg.inv(x + 9 * jnp.eye(3)),
        ),
        "f32 unit: 3, 3",
        "f32: 3, b",
    ),
    "decompositions": (
        lambda x: (jnp.linalg.det(x + 3 * jnp.eye(3)), abs(jnp.linalg.qr(x)[1]), jnp.linalg.eigvalsh(x + x.mT)),
        "f32 unit: a, 3, 3",
    ),
}
