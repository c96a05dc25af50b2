"""Linear algebra as JAX calls it on the CPU: XLA runs LAPACK's functions for it.

Eigenvectors and singular vectors are not unique: what is compared is their product, which costs little beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import Array, Case, lowered

SIZES = (64, 256)


def symmetric(arguments: list[Array]) -> list[Array]:
    """The first argument becomes a symmetric matrix with a diagonal that outweighs each row; so does its triangle."""
    first, *others = arguments
    size = len(first)
    return [(first + first.T + 8 * np.eye(size)).astype(first.dtype), *others]


def shifted(arguments: list[Array]) -> list[Array]:
    """No singular value is so small that its last digits are noise."""
    return [(first + 3 * np.eye(len(first))).astype(first.dtype) for first in arguments]


def jax_cholesky() -> Callable[..., Any]:
    import jax

    return lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False)


def jax_triangular_solve() -> Callable[..., Any]:
    import jax

    return lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


def jax_solve() -> Callable[..., Any]:
    import jax

    return lambda a, b: jax.numpy.linalg.solve(a, b)


def jax_qr() -> Callable[..., Any]:
    import jax

    return lambda a: jax.numpy.linalg.qr(a)


def jax_eigh() -> Callable[..., Any]:
    import jax

    def eigh(a: Any) -> Any:
        values, vectors = jax.numpy.linalg.eigh(a, symmetrize_input=False)
        return values, (vectors * values) @ vectors.T

    return eigh


def jax_svd() -> Callable[..., Any]:
    import jax

    def svd(a: Any) -> Any:
        u, values, vt = jax.numpy.linalg.svd(a, full_matrices=False)
        return values, (u * values) @ vt

    return svd


def torch_linalg(name: str) -> Callable[[Any], Any]:
    """PyTorch's function on the first one or two parameters."""

    def body(nn: Any) -> Any:
        import torch

        a = nn.new("")
        if name == "triangular_solve":
            return torch.linalg.solve_triangular(a, nn.new(""), upper=False)
        if name == "solve":
            return torch.linalg.solve(a, nn.new(""))
        if name == "eigh":
            values, vectors = torch.linalg.eigh(a)
            return values, (vectors * values) @ vectors.mT
        if name == "svd":
            u, values, vt = torch.linalg.svd(a, full_matrices=False)
            return values, (u * values) @ vt
        return getattr(torch.linalg, name)(a)

    return body


def _case(title: str, name: str, function: Callable[[], Any], n: int, arguments: int = 1) -> Case:
    return lowered(
        f"{title} {n}²",
        "linalg",
        function,
        [f"f32[{n},{n}]"] * arguments,
        eager=torch_linalg(name),
        adapt=shifted if name in ("qr", "svd") else symmetric,
        plain_devices=(),
    )


CASES: tuple[Case, ...] = (
    *(_case("cholesky", "cholesky", jax_cholesky, n) for n in SIZES),
    *(_case("triangular solve", "triangular_solve", jax_triangular_solve, n, 2) for n in SIZES),
    *(_case("LU solve", "solve", jax_solve, n, 2) for n in SIZES),
    *(_case("QR", "qr", jax_qr, n) for n in SIZES),
    *(_case("eigh", "eigh", jax_eigh, n) for n in SIZES),
    *(_case("SVD", "svd", jax_svd, n) for n in SIZES),
)
