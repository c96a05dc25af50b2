"""legalize-complex-reductions: barriers behind single numbers; tests/cuda_emulator/cuda_sessions.py runs some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.complex_reductions import LegalizeComplexReductions
from tests.engines import interpret

_RNG = np.random.default_rng(0)


def _is_held(x: np.ndarray, combine: Callable[[Value, Value], Value], dimensions: list[int]) -> bool:
    """Whether there is a barrier behind the reduction, with the same numbers."""
    with hloforge.Builder("program") as builder:
        given = builder.parameter(0, hloforge.Shape.array("c64" if x.dtype.kind == "c" else "f32", *x.shape), "x")
        reduced = ops.reduce(given, ops.constant(x.dtype.type(1)), combine, dimensions)
        negative = ops.neg(reduced)
        # The interpreter's bindings return no complex numbers.
        program = builder.build(ops.sub(ops.real(negative), ops.imag(negative)))
    copy = program.clone()
    LegalizeComplexReductions().run(copy.module)
    np.testing.assert_array_equal(interpret(copy.module, x)[0], interpret(program.module, x)[0])
    (negation,) = operations(copy.module, ["stablehlo.negate"])
    return bool(negation.operands[0].owner.name == "stablehlo.optimization_barrier")


@pytest.mark.parametrize("combine", [ops.add, ops.mul])
@pytest.mark.parametrize(
    ("shape", "dimensions", "held"),
    [((8,), [0], True), ((3, 8), [0, 1], True), ((1, 8), [1], True), ((3, 8), [1], False)],
)
def test_reductions(
    combine: Callable[[Value, Value], Value], shape: tuple[int, ...], dimensions: list[int], held: bool
) -> None:
    x = (_RNG.integers(-3, 4, shape) + 1j * _RNG.integers(-3, 4, shape)).astype(np.complex64)
    assert _is_held(x, combine, dimensions) == held
    assert not _is_held(np.ascontiguousarray(x.real), combine, dimensions)


def test_cuda_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeComplexReductions.name in found] == ["cuda"]
