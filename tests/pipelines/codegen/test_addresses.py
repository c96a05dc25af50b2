"""Addresses in innermost loops: what a loop does not change is added up before it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax.numpy as jnp

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lang.addresses import with_bases
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal


def _changed(body: str, local: frozenset[str] = frozenset()) -> tuple[list[str], list[str]] | None:
    """Of a loop that counts ``%i`` inside of one that counts ``%row``."""
    names = itertools.count()
    lines = [f"  {line.strip()}" for line in body.strip().splitlines()]
    return with_bases(lines, ["%i"], local, lambda: f"%new{next(names)}")


def _geps(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if "getelementptr" in line]


_READ = """
    %a = mul nsw i64 %row, 40
    %b = add nsw i64 %a, %i
    %c = add nsw i64 %b, 3
    %p = getelementptr inbounds float, ptr %x, i64 %b
    %q = getelementptr inbounds float, ptr %x, i64 %c
    %v = load float, ptr %p, align 4
    %w = load float, ptr %q, align 4
"""


def test_a_row_begins_at_one_number() -> None:
    found = _changed(_READ)
    assert found is not None
    before, body = found
    assert before == [
        "  %new0 = mul i64 %row, 40",
        "  %new1 = getelementptr float, ptr %x, i64 %new0",
        '  %new2 = call ptr asm "", "=r,0"(ptr %new1) memory(none) willreturn',
    ]
    assert _geps(body) == [
        "%p = getelementptr nusw float, ptr %new2, i64 %i",
        "%q = getelementptr nusw float, ptr %new2, i64 %new3",
    ]
    assert "  %new3 = add i64 %i, 3" in body


def test_what_is_written_at_two_rows_keeps_its_addresses() -> None:
    other = "%d = mul i64 %row, 8\n%e = add i64 %d, %i\n%r = getelementptr inbounds float, ptr %x, i64 %e\n"
    assert _changed(_READ + other) is not None
    assert _changed(_READ + other + "store float %v, ptr %r, align 4") is None
    assert _changed(_READ + "store float %v, ptr %q, align 4") is not None


def test_addresses_that_stay() -> None:
    assert _changed(_READ, frozenset({"%x"})) is None
    assert _changed(_READ.replace("%x", "%y") + "%y = load ptr, ptr %place, align 8") is None
    assert _changed(_READ.replace("%row", "%i")) is None


def test_kernels() -> None:
    """A sum of rows that are read at other places, in a loop that changes them where they are."""

    def step(x: jnp.ndarray) -> jnp.ndarray:
        rolled = x[1:, 1:] * 2 + x[:-1, :-1]
        return x.at[1:, 1:].add(rolled / (1 + jnp.abs(rolled).sum(0)))

    check(lambda x: step(step(x)), normal(23, 131))
    text = "func.func @main(%x: tensor<9x70xf32>, %y: tensor<9xf32>) -> tensor<9x70xf32> {\n"
    text += "  %z = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<9xf32>) -> tensor<9x70xf32>\n"
    text += "  %r = stablehlo.reverse %x, dims = [1] : tensor<9x70xf32>\n"
    text += "  %a = stablehlo.add %r, %z : tensor<9x70xf32>\n  return %a : tensor<9x70xf32>\n}\n"
    program = hloforge.read(text)
    lower(program.module)
    (kernel,) = generate(program.module, Machine()).kernels
    assert kernel.count("asm") == 2
