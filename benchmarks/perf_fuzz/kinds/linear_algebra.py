"""Small linear algebra, alone and in batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import dominant, normal, positive_definite
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _batch(draw: Draw, products: float = 5e6) -> tuple[int, int]:
    """How many matrices, and how large."""
    size = draw.pick(2, 3, 3, 3, 4, 4, 6, 7, 12, 16, draw.size(5, 100))
    return max(1, int(draw.work(1, products / size**3))), size


@kind("linear algebra", gradient=True)
def small_solves(draw: Draw) -> Drawn:
    count, size = _batch(draw)
    dtype = draw.precise_type()

    def function(a: Any, b: Any) -> Any:
        return jnp.linalg.solve(a, b[..., None])[..., 0]

    return drawn(function, dominant(count, size, size, dtype=dtype), normal(count, size, dtype=dtype))


@kind("linear algebra", gradient=True)
def solves_by_rule(draw: Draw) -> Drawn:
    """3×3 systems by Cramer's rule."""
    count = draw.elements(3e5)

    def function(a: Any, b: Any) -> Any:
        x, y, z = a[:, 0], a[:, 1], a[:, 2]
        determinant = jnp.sum(x * jnp.cross(y, z), -1)
        columns = jnp.cross(y, z), jnp.cross(z, x), jnp.cross(x, y)
        return sum(column * b[:, place, None] for place, column in enumerate(columns)) / determinant[:, None]

    return drawn(function, dominant(count, 3, 3), normal(count, 3))


@kind("linear algebra", gradient=True)
def cholesky_solve(draw: Draw) -> Drawn:
    count, size = _batch(draw)
    dtype = draw.precise_type()

    def function(a: Any, b: Any) -> Any:
        factor = jnp.linalg.cholesky(a)
        y = jax.lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)
        return y, 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)

    return drawn(
        function, positive_definite(count, size, size, dtype=dtype),
        normal(count, size, draw.size(1, 4), dtype=dtype),
    )  # fmt: skip


@kind("linear algebra")
def qr_factors(draw: Draw) -> Drawn:
    count, size = _batch(draw, 2e6)
    rows = size + draw.size(1, 20)
    return drawn(lambda a: jnp.linalg.qr(a), normal(count, rows, size))


@kind("linear algebra", gradient=True)
def inverses(draw: Draw) -> Drawn:
    count, size = _batch(draw)
    dtype = draw.precise_type()
    return drawn(lambda a: jnp.linalg.inv(a), dominant(count, size, size, dtype=dtype))


@kind("linear algebra", gradient=True)
def determinants(draw: Draw) -> Drawn:
    count, size = _batch(draw)
    size = min(size, 16)
    return drawn(lambda a: jnp.linalg.det(a), dominant(count, size, size))


@kind("linear algebra", gradient=True)
def triangular_solves(draw: Draw) -> Drawn:
    count, size = _batch(draw)
    columns, is_lower, is_left = draw.size(1, 40), draw.chance(0.5), draw.chance(0.7)

    def function(a: Any, b: Any) -> Any:
        part = jnp.tril(a) if is_lower else jnp.triu(a)
        return jax.lax.linalg.triangular_solve(part, b, left_side=is_left, lower=is_lower)

    return drawn(
        function, dominant(count, size, size), normal(count, *((size, columns) if is_left else (columns, size)))
    )


@kind("linear algebra", gradient=True)
def least_squares(draw: Draw) -> Drawn:
    count, size = _batch(draw, 1e6)
    rows = size + draw.size(5, 300)

    def function(a: Any, b: Any) -> Any:
        gram = jnp.einsum("bri,brj->bij", a, a) + 0.1 * rows * jnp.eye(size)
        return jnp.linalg.solve(gram, jnp.einsum("bri,br->bi", a, b)[..., None])[..., 0]

    return drawn(function, normal(count, rows, size), normal(count, rows))


@kind("linear algebra", gradient=True)
def matrix_powers(draw: Draw) -> Drawn:
    count, size = _batch(draw, 1e7)
    power = draw.size(2, 12)
    return drawn(lambda a: jnp.linalg.matrix_power(a, power), normal(count, size, size, scale=0.7 * size**-0.5))


@kind("linear algebra")
def matrix_exponential(draw: Draw) -> Drawn:
    size = draw.size(2, 60)
    return drawn(lambda a: jax.scipy.linalg.expm(a, max_squarings=4), normal(size, size, scale=0.5 * size**-0.5))


@kind("linear algebra", gradient=True)
def kronecker(draw: Draw) -> Drawn:
    a, b, c, d = draw.shape(4, 3e6)
    return drawn(lambda x, y: jnp.kron(x, y), normal(a, b), normal(c, d))


@kind("linear algebra")
def symmetric_eigenvalues(draw: Draw) -> Drawn:
    count, size = draw.size(1, 8), draw.size(2, 24)
    return drawn(lambda a: jnp.linalg.eigvalsh(a), positive_definite(count, size, size))


@kind("linear algebra", gradient=True)
def rotations(draw: Draw) -> Drawn:
    """Points turned by quaternions."""
    count = draw.elements(1e6)

    def function(q: Any, points: Any) -> Any:
        q = q / (jnp.linalg.norm(q, axis=-1, keepdims=True) + 1e-3)
        axis, real = q[..., :3], q[..., 3:]
        side = 2 * jnp.cross(axis, points)
        return points + real * side + jnp.cross(axis, side)

    return drawn(function, normal(count, 4), normal(count, 3))


@kind("linear algebra", gradient=True)
def chain_of_frames(draw: Draw) -> Drawn:
    """Kinematics: products of small matrices along a chain, for many chains."""
    count, joints = draw.size(1, 5000), draw.size(2, 12)

    def function(angles: Any, offsets: Any) -> Any:
        def step(state: Any, given: Any) -> Any:
            frame, place = state
            angle, offset = given
            sine, cosine = jnp.sin(angle), jnp.cos(angle)
            zero, one = jnp.zeros_like(sine), jnp.ones_like(sine)
            turn = jnp.stack([cosine, -sine, zero, sine, cosine, zero, zero, zero, one], -1).reshape(-1, 3, 3)
            frame = frame @ turn
            return (frame, place + frame @ offset), None

        start = (jnp.broadcast_to(jnp.eye(3), (count, 3, 3)), jnp.zeros((count, 3)))
        return jax.lax.scan(step, start, (angles, offsets))[0][1]

    return drawn(function, normal(joints, count), normal(joints, 3))
