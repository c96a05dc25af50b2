"""Convolutions of dilated images phase by phase, against XLA's own convolutions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import hloforge
from hloforge import Builder, Computation, ops
from hloforge.dialect.errors import OperationError
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.program import Program
from hloforge.pipelines.convolutions.polyphase_convolutions import PolyphaseConvolutions
from hloforge.pipelines.framework.manager import PassManager
from hloforge.runtime.data.random_inputs import random_inputs
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.engines import ReferenceEngine
from tests.engines import shared_reference

NHWC, NCHW = "b01f_01io->b01f", "bf01_oi01->bf01"


@pytest.fixture(scope="module")
def xla() -> ReferenceEngine:
    return shared_reference("xla")


def convolution(image: str, kernel: str, numbers: str = NHWC, **options: Any) -> Computation:
    with Builder("convolution") as builder:
        x, w = builder.parameter(0, image, "x"), builder.parameter(1, kernel, "w")
        space = x.rank - 2
        arguments: dict[str, Any] = {"window_strides": [1] * space, "padding": [(0, 0)] * space} | options
        return builder.build(ops.conv_with_general_padding(x, w, dimension_numbers=numbers, **arguments))


def in_phases(program: Computation, worth: int = 0) -> Program:
    copy = program.clone()
    PassManager([PolyphaseConvolutions(worth)]).run(copy.module)
    return copy


def convolutions(program: Program) -> list[Any]:
    return operations(program.module, ["stablehlo.convolution"])


def dilated(program: Program) -> list[Any]:
    return [op for op in convolutions(program) if set(integers(op, "lhs_dilation")) - {1}]


def multiplications(program: Program) -> int:
    """Of all convolutions; their kernels have one input feature."""
    return sum(prod(op.results[0].type.shape) * prod(op.operands[1].type.shape[:-2]) for op in convolutions(program))


# By the number of convolutions that are left.
CASES = {
    "2x2": (1, convolution("f32[2,5,6,8]", "f32[2,2,8,4]", lhs_dilation=[2, 2], padding=[(1, 1), (1, 1)])),
    "4x4": (4, convolution("f32[1,5,6,4]", "f32[4,4,4,16]", lhs_dilation=[2, 2], padding=[(2, 2), (2, 2)])),
    "gradient of 3x3": (4, convolution("f32[1,5,6,4]", "f32[3,3,4,16]", lhs_dilation=[2, 2], padding=[(1, 2), (1, 2)])),
    "gradient of 1x1": (1, convolution("f32[1,5,6,4]", "f32[1,1,4,3]", lhs_dilation=[2, 2], padding=[(0, 1), (0, 1)])),
    "few features": (1, convolution("f32[1,5,6,4]", "f32[4,4,4,3]", lhs_dilation=[2, 2], padding=[(2, 2), (2, 2)])),
    "channels first": (4, convolution("f32[2,4,5,6]", "f32[16,4,3,3]", NCHW,
        lhs_dilation=[2, 2], padding=[(1, 2), (1, 2)])),
    "channels first, 2x2": (1, convolution("f32[2,4,5,6]", "f32[3,4,2,2]", NCHW,
        lhs_dilation=[2, 2], padding=[(1, 1), (1, 1)])),
    "window below dilation": (2, convolution("f32[1,5,4]", "f32[2,4,3]", "b0f_0io->b0f",
        lhs_dilation=[4], padding=[(0, 3)])),
    "strides and dilations": (3, convolution("f32[1,9,7,2]", "f32[3,5,2,16]",
        window_strides=[2, 3], lhs_dilation=[3, 2], rhs_dilation=[2, 2], padding=[(1, 4), (-1, 3)])),
    "complex": (1, convolution("c64[1,5,6,2]", "c64[3,3,2,3]", lhs_dilation=[2, 2], padding=[(1, 2), (1, 2)])),
    "bf16": (4, convolution("bf16[1,5,6,8]", "bf16[3,3,8,16]", lhs_dilation=[2, 2], padding=[(1, 2), (1, 2)])),
    "bytes in integers": (4, convolution("s8[1,5,6,8]", "s8[3,3,8,16]", lhs_dilation=[2, 2],
        padding=[(-1, 2), (1, -2)], preferred_element_type="s32")),
    "channels": (4, convolution("f64[1,5,6,8]", "f64[3,3,1,8]", lhs_dilation=[2, 2], feature_group_count=8,
        padding=[(1, 2), (1, 2)])),
}  # fmt: skip


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", CASES)
def test_phases_are_the_convolution(name: str, xla: ReferenceEngine) -> None:
    count, program = CASES[name]
    phases = in_phases(program)
    assert not dilated(phases) and len(convolutions(phases)) == count
    arguments = random_inputs(program.signature, 3)
    report = compare(xla.prepare(phases)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_phases_compile(name: str, xla: ReferenceEngine) -> None:
    _, program = CASES[name]
    arguments = random_inputs(program.signature, 4)
    result = hloforge.compile(in_phases(program), cache=False)(*arguments)
    report = compare(result, xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


@st.composite
def any_convolution(draw: Any) -> Computation:
    """Of one to three dimensions in any order, with any steps, paddings and groups."""
    space = draw(st.sampled_from([1, 1, 2, 2, 3]))
    most = {1: 6, 2: 4, 3: 3}[space]

    def each(least: int, largest: int) -> list[int]:
        return list(draw(st.lists(st.integers(least, largest), min_size=space, max_size=space)))

    groups, kind = draw(st.sampled_from([(1, ""), (1, ""), (2, "feature"), (2, "batch")]))
    features, outputs = draw(st.sampled_from([1, 3])), draw(st.sampled_from([1, 2, 17])) * groups
    batch = draw(st.sampled_from([1, 2])) * (groups if kind == "batch" else 1)
    sizes = {"b": batch, "f": features * (groups if kind == "feature" else 1), "i": features, "o": outputs}
    places = [str(d) for d in range(space)]
    image, kernel, result = (draw(st.permutations([*names, *places])) for names in ("bf", "io", "bf"))
    of_image = sizes | dict(zip(places, each(1, most), strict=True))
    of_kernel = sizes | dict(zip(places, each(1, most), strict=True))
    element = draw(st.sampled_from(["f32", "f32", "f64", "s32", "c64"]))
    if kind == "batch" or element == "c64":
        # XLA's client has no groups of complex numbers, and few of batches.
        assume(element == "f32" or not kind)
    try:
        return convolution(
            f"{element}[{','.join(str(of_image[name]) for name in image)}]",
            f"{element}[{','.join(str(of_kernel[name]) for name in kernel)}]",
            f"{''.join(image)}_{''.join(kernel)}->{''.join(result)}",
            window_strides=each(1, 3),
            padding=list(zip(each(-2, 4), each(-2, 4), strict=True)),
            lhs_dilation=each(1, 4),
            rhs_dilation=each(1, 3),
            window_reversal=[flag == 1 for flag in each(0, 1)],
            **({f"{kind}_group_count": groups} if kind else {}),
        )
    except OperationError:
        assume(False)
        raise


@settings(max_examples=20, deadline=None)
@given(program=any_convolution())
def test_any_phases_are_the_convolution(program: Computation, xla: ReferenceEngine) -> None:
    phases = in_phases(program)
    assume(phases.text() != program.text())
    arguments = random_inputs(program.signature, 5)
    # XLA's client multiplies by a 1x1 window what negative padding leaves out: an image of one pixel, pad = [-1, 1].
    found = shared_reference("interpreter").prepare(phases)(*arguments)
    report = compare(found, xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


def test_zeros_are_not_multiplied() -> None:
    """3x3 places of a kernel meet 9 elements in four results, not 36."""
    program = CASES["gradient of 3x3"][1]
    assert multiplications(program) == 4 * multiplications(in_phases(program))


def test_what_saves_little_is_left() -> None:
    small = CASES["2x2"][1]
    left = in_phases(small, worth=1 << 16)
    assert dilated(left)
    plain = convolution("f32[1,5,6,8]", "f32[3,3,8,16]", padding=[(1, 1), (1, 1)])
    assert in_phases(plain).text() == plain.text()


def test_a_long_dilation_makes_one_convolution() -> None:
    program = convolution("f32[1,7,7,4]", "f32[8,8,4,16]", lhs_dilation=[8, 8], padding=[(7, 7), (7, 7)])
    phases = in_phases(program)
    (left,) = convolutions(phases)
    assert left.operands[1].type.shape == [1, 1, 4, 64 * 16]


def test_elements_are_exact_integers(xla: ReferenceEngine) -> None:
    """Of numbers whose sums are exact, each result is XLA's bit by bit."""
    program = convolution("f32[1,9,9,4]", "f32[5,5,4,16]", lhs_dilation=[3, 2], padding=[(2, 5), (4, 1)])
    random = np.random.default_rng(0)
    arguments = [random.integers(-8, 8, p.shape.dimensions).astype(np.float32) for p in program.signature.parameters]
    np.testing.assert_array_equal(xla.prepare(in_phases(program))(*arguments), xla.prepare(program)(*arguments))
