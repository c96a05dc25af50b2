"""legalize-product-forms: products that kernels do not take as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.passes.product_forms import LegalizeProductForms
from tests.pipelines.codegen.jax_programs import check, normal


@pytest.mark.parametrize(
    ("labels", "left", "right"),
    [
        ("abcd,cea->bde", (3, 4, 5, 6), (5, 7, 3)),
        ("abcd,ebd->ace", (3, 4, 5, 6), (7, 4, 6)),
        ("abc,cab->b", (3, 4, 5), (5, 3, 4)),
        ("abc,abd->acd", (3, 4, 5), (3, 4, 6)),
        ("bqhd,bkhd->bhqk", (2, 5, 3, 4), (2, 6, 3, 4)),
        ("ab,cd->acbd", (3, 4), (5, 6)),
        ("ab,bc->ac", (3, 0), (0, 4)),
        ("ab,bc->ac", (0, 3), (3, 4)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_products_by_labels(labels: str, left: Any, right: Any, dtype: Any) -> None:
    check(lambda x, y: jnp.einsum(labels, x, y), normal(*left, dtype=dtype), normal(*right, dtype=dtype))


def test_booleans() -> None:
    x, y = (np.random.default_rng(number).random(shape) < 0.2 for number, shape in enumerate(((5, 300), (300, 7))))
    check(lambda x, y: jax.lax.dot(x, y), x, y)


def test_the_order_of_terms_is_free() -> None:
    # The third dimension before the second of both operands: no array has to move.
    types = "(tensor<2x3x4xf32>, tensor<3x4x5xf32>) -> tensor<2x5xf32>"
    text = f"""func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<3x4x5xf32>) -> tensor<2x5xf32> {{
      %r = stablehlo.dot_general %x, %y, contracting_dims = [2, 1] x [1, 0] : {types}
      return %r : tensor<2x5xf32> }}"""
    module = hloforge.read(text.encode()).module
    LegalizeProductForms().run(module)
    assert not operations(module, {"stablehlo.transpose"})


_ORDERS = {2: (1, 0), 3: (0, 2, 1)}


@pytest.mark.parametrize("dims", [(70, 40), (3, 70, 40)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_what_is_computed_of_transposed_factors(dims: tuple[int, ...], dtype: Any) -> None:
    """Weights with scales and zero points, masked, in any order of the operations."""
    w = (10 * normal(*dims)).astype(dtype)
    x, scales, zeros = normal(*dims[:-2], 5, dims[-1]), normal(*dims[:-1]), np.round(normal(*dims[:-1]))
    order = _ORDERS[len(dims)]

    def product(x: Any, w: Any, scales: Any, zeros: Any) -> Any:
        factor = (w.transpose(order).astype(jnp.float32) - zeros[..., None, :]) * scales[..., None, :]
        return x @ factor, x @ jnp.where(w.transpose(order) > 1, factor, 0)

    check(product, x, w, scales, zeros)
