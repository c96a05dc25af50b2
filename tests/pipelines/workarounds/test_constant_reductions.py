"""legalize-constant-reductions: sums of one number, beside sums of an array and by themselves; judged by XLA."""

from __future__ import annotations

from string import Template
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.workarounds.constant_reductions import LegalizeConstantReductions
from hloforge.runtime.reference.engines import reference


def weighted(x: Any) -> Any:
    return jnp.cov(x, aweights=jnp.full(4, 0.25))


def test_constant_weights_are_weights() -> None:
    x = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    found = hloforge.compile(jax.jit(weighted).lower(x), cache=False).load()(x)
    np.testing.assert_allclose(found, np.cov(x.astype(np.float64), aweights=np.full(4, 0.25)), rtol=1e-5)


def total(x: Any) -> Any:
    return jax.lax.reduce(x, np.float32(0), jax.lax.add, (0,))


def test_only_arrays_of_one_known_number_are_hidden() -> None:
    def sums(x: Any) -> Any:
        return total(x), total(jax.lax.iota(jnp.float32, 4)), total(jnp.abs(jax.lax.full((4,), np.float32(2))))

    program = read(jax.jit(sums).lower(np.ones(4, np.float32)).as_text())
    LegalizeConstantReductions().run(program.module)
    assert program.module.operation.verify()
    assert len(operations(program.module, {"stablehlo.optimization_barrier"})) == 1


def test_complex_constants_are_hidden() -> None:
    program = read(jax.jit(lambda: jax.lax.reduce(np.full(4, 1 + 2j), 0j, jax.lax.add, (0,))).lower().as_text())
    LegalizeConstantReductions().run(program.module)
    assert len(operations(program.module, {"stablehlo.optimization_barrier"})) == 1


ZERO, ONE, WIDTH, NAN = "dense<0>", "dense<1>", "dense<32>", "dense<0x7FC00000>"
# Functions that are true for every element, whatever it is: element type, what computes %r of %x, its constant.
TRUE = {
    "unsigned": ("ui8", "%r = stablehlo.compare GE, %x, %c : ($T, $T) -> $M", ZERO),
    "unsigned_mirrored": ("ui8", "%r = stablehlo.compare LE, %c, %x : ($T, $T) -> $M", ZERO),
    "least": ("i32", "%r = stablehlo.compare GE, %x, %c : ($T, $T) -> $M", "dense<-2147483648>"),
    "itself": ("i32", "%r = stablehlo.compare EQ, %x, %x : ($T, $T) -> $M", ZERO),
    "remainder": (
        "i32",
        "%a = stablehlo.remainder %x, %c : $T\n%r = stablehlo.compare LT, %a, %c : ($T, $T) -> $M",
        ONE,
    ),
    "times_zero": (
        "i32",
        "%a = stablehlo.multiply %x, %c : $T\n%r = stablehlo.compare EQ, %a, %c : ($T, $T) -> $M",
        ZERO,
    ),
    "shifted_out": (
        "ui32",
        "%a = stablehlo.shift_right_logical %x, %c : $T\n%r = stablehlo.compare LT, %a, %c : ($T, $T) -> $M",
        WIDTH,
    ),
    "shifted_far": (
        "i32",
        "%a = stablehlo.shift_left %x, %c : $T\n%r = stablehlo.compare GT, %a, %c : ($T, $T) -> $M",
        "dense<-2147483648>",
    ),
    "nothing_shifted": (
        "i32",
        "%a = stablehlo.shift_right_arithmetic %c, %x : $T\n%r = stablehlo.compare GE, %a, %c : ($T, $T) -> $M",
        ZERO,
    ),
    "no_nan": ("f32", "%r = stablehlo.compare NE, %x, %c : ($T, $T) -> $M", NAN),
    "one_or_the_other": (
        "f32",
        "%a = stablehlo.compare EQ, %x, %c : ($T, $T) -> $M\n%b = stablehlo.not %a : $M\n%r = stablehlo.or %a, %b : $M",
        "dense<1.0>",
    ),
}


def counted(of: str, by: str, constant: str) -> Any:
    """Sums of ``%r``: all together, along rows, and in windows."""
    body = Template(by).substitute(T=f"tensor<4x5x{of}>", M="tensor<4x5xi1>")
    return read(f"""func.func @main(%x: tensor<4x5x{of}>) -> (tensor<i32>, tensor<4xi32>, tensor<3x4xi32>) {{
      %i = stablehlo.constant dense<0> : tensor<i32>
      %c = stablehlo.constant {constant} : tensor<4x5x{of}>
      {body}
      %v = stablehlo.convert %r : (tensor<4x5xi1>) -> tensor<4x5xi32>
      %s = stablehlo.reduce(%v init: %i) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<4x5xi32>, tensor<i32>) -> tensor<i32>
      %t = stablehlo.reduce(%v init: %i) applies stablehlo.add across dimensions = [1]
        : (tensor<4x5xi32>, tensor<i32>) -> tensor<4xi32>
      %w = "stablehlo.reduce_window"(%v, %i) <{{window_dimensions = array<i64: 2, 2>}}> ({{
        ^bb0(%p: tensor<i32>, %q: tensor<i32>):
          %u = stablehlo.add %p, %q : tensor<i32>
          stablehlo.return %u : tensor<i32>
      }}) : (tensor<4x5xi32>, tensor<i32>) -> tensor<3x4xi32>
      return %s, %t, %w : tensor<i32>, tensor<4xi32>, tensor<3x4xi32> }}""")


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_of_each_element_counts_each(name: str) -> None:
    program = counted(*TRUE[name])
    x = np.arange(20).reshape(4, 5).astype(program.signature.parameters[0].shape.element.dtype)
    expected = reference("xla", isolated=False).prepare(program)(x)
    for one, other in zip(hloforge.compile(program, cache=False).load()(x), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_products_of_constants_that_only_iree_finds() -> None:
    program = read("""func.func @main() -> tensor<1xf32> {
      %c = stablehlo.constant dense<0.5> : tensor<3xf32>
      %f = stablehlo.is_finite %c : (tensor<3xf32>) -> tensor<3xi1>
      %a = stablehlo.sine %c : tensor<3xf32>
      %s = stablehlo.select %f, %a, %c : tensor<3xi1>, tensor<3xf32>
      %t = stablehlo.reshape %s : (tensor<3xf32>) -> tensor<1x3xf32>
      %d = stablehlo.dot_general %s, %t, contracting_dims = [0] x [1]
        : (tensor<3xf32>, tensor<1x3xf32>) -> tensor<1xf32>
      return %d : tensor<1xf32> }""")
    found = hloforge.compile(program, cache=False).load()()
    np.testing.assert_allclose(found, reference("xla", isolated=False).prepare(program)(), rtol=1e-6)


def test_masks_of_other_numbers_stay() -> None:
    def sums(x: Any, n: Any) -> Any:
        seen = jnp.where(x > 0, x, 0).sum() + (n >= 0).sum() + (n & 7).sum() + jax.nn.relu(x).sum()
        return seen + (jnp.arange(4) < n).sum() + jnp.dot(x, jnp.ones(4)) + (n % 10).sum()

    program = read(jax.jit(sums).lower(np.ones(4, np.float32), np.ones(4, np.int32)).as_text())
    LegalizeConstantReductions().run(program.module)
    assert not operations(program.module, {"stablehlo.optimization_barrier"})


def test_parts_of_equal_numbers_compile() -> None:
    """IREE fills the array in workgroups, beside the copy of its part, and refuses that."""

    def program(start: Any, x: Any, factor: Any) -> Any:
        part = jax.lax.dynamic_slice(jnp.negative(x - x), (np.int8(0), start, start), (1, 2, 1))
        wide = jnp.einsum("ijk,ijk->ik", part, factor, preferred_element_type=jnp.uint32)
        return part, wide, jax.lax.dynamic_slice(jnp.full((3, 4), 7), (start, start), (2, 2))

    arguments = np.int8(1), np.full((1, 2, 2), 9, np.uint8), np.full((1, 2, 1), 200, np.uint8)
    found = hloforge.compile(jax.jit(program).lower(*arguments), cache=False).load()(*arguments)
    for got, want in zip(found, jax.jit(program)(*arguments), strict=True):
        np.testing.assert_array_equal(got, want)
