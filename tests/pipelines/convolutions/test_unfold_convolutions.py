"""Convolutions as products of their windows, against XLA's own convolutions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from hloforge import Builder, Computation, Value, ops, read
from hloforge.dialect.operations import operations
from hloforge.pipelines.convolutions.few_outputs import by_places
from hloforge.pipelines.convolutions.space_to_depth import by_window_rows
from hloforge.pipelines.convolutions.unfold_convolutions import UnfoldConvolutions
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.patterns import apply_patterns
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
        arguments = {"window_strides": [1] * space, "padding": [(0, 0)] * space} | options
        return builder.build(_applied(x, w, numbers, arguments))


def _applied(x: Value, w: Value, numbers: str, arguments: dict[str, Any]) -> Value:
    return ops.conv_with_general_padding(
        x, w, dimension_numbers=ops.ConvolutionDimensionNumbers.parse(numbers), **arguments
    )


def unfolded(program: Computation) -> Any:
    copy = program.clone()
    PassManager([UnfoldConvolutions()]).run(copy.module)
    return copy


UNFOLDED = {
    "same": convolution("f32[2,6,5,8]", "f32[3,3,8,9]", padding=[(1, 1), (1, 1)]),
    "strides": convolution("f32[2,9,8,8]", "f32[3,2,8,9]", window_strides=[2, 3], padding=[(1, 0), (0, 2)]),
    "channels first": convolution("f32[2,8,6,5]", "f32[9,8,3,3]", NCHW, padding=[(1, 1), (0, 0)]),
    "negative padding": convolution("f32[1,9,9,8]", "f32[3,3,8,9]", padding=[(-2, 1), (1, -1)]),
    "dilations": convolution("f32[1,7,7,8]", "f32[3,2,8,9]",
        lhs_dilation=[2, 1], rhs_dilation=[1, 3], padding=[(1, 2), (0, 3)]),
    "one dimension": convolution("f32[2,30,8]", "f32[5,8,9]", "b0f_0io->b0f"),
    "three dimensions": convolution("f32[1,4,5,6,8]", "f32[2,2,3,8,9]", "b012f_012io->b012f", window_strides=[1, 2, 1]),
    "bf16": convolution("bf16[2,6,5,8]", "bf16[3,3,8,9]", padding=[(1, 1), (1, 1)]),
    "f16": convolution("f16[2,6,5,8]", "f16[3,3,8,9]", window_strides=[2, 1]),
    "complex": convolution("c64[2,6,5,3]", "c64[3,3,3,4]", window_strides=[2, 1], padding=[(1, 1), (2, 0)]),
    "one feature": convolution("f32[2,9,8,1]", "f32[3,2,1,8]", window_strides=[2, 1]),
    "groups of many channels": convolution("f32[1,6,5,40]", "f32[3,3,20,6]", padding=[(1, 1), (0, 1)],
        feature_group_count=2),
    "complex groups": convolution("c64[2,5,5,6]", "c64[2,2,3,4]", feature_group_count=2),
    "complex groups of batches": convolution("c64[6,4,5,3]", "c64[6,4,2,3]", NCHW,
        padding=[(0, 1), (1, 3)], batch_group_count=3),
}  # fmt: skip
FEATURES_FIRST = {
    "one image": convolution("f32[1,8,6,5]", "f32[4,8,1,1]", NCHW),
    "more images": convolution("f32[3,16,7,5]", "f32[9,16,1,1]", NCHW),
    "inputs first": convolution("f32[2,8,6,5]", "f32[8,12,1,1]", "bf01_io01->bf01"),
    "space around": convolution("f64[1,8,30]", "f64[1,8,5]", "bf0_0io->bf0"),
}
# With the sizes of the windows and the features that they become.
IN_ROWS = {
    "strides": (
        convolution("f32[2,300,1]", "f32[96,1,8]", "b0f_0io->b0f", window_strides=[4], padding=[(5, 2)]), [3, 32]),
    "rows that do not lie side by side": (
        convolution("f32[1,1,30,31]", "f32[8,1,33,9]", NCHW, window_strides=[1, 2], padding=[(3, 9), (-1, 2)]),
        [3, 9, 11]),
    "wide strides": (convolution("f32[2,1,500]", "f32[8,1,80]", "bf0_oi0->bf0", window_strides=[32]), [1, 80]),
    "whole strides": (convolution("f32[4,1,500]", "f32[8,1,96]", "bf0_oi0->bf0", window_strides=[48]), [1, 96]),
    "dilations along another dimension": (
        convolution("f32[2,12,40,1]", "f32[3,30,1,9]", lhs_dilation=[2, 1], rhs_dilation=[3, 1]), [3, 1, 30]),
    "bf16": (convolution("bf16[1,400,1]", "bf16[96,1,16]", "b0f_0io->b0f"), [3, 32]),
}  # fmt: skip
BY_PLACES = {
    "one": convolution("f32[2,8,7,6]", "f32[1,8,3,3]", NCHW, padding=[(1, 2), (0, 1)]),
    "steps": convolution("f32[2,9,8,8]", "f32[3,2,8,3]",
        window_strides=[2, 3], rhs_dilation=[1, 2], padding=[(1, -1), (0, 2)]),
    "dilated image": convolution("f64[3,5,4,8]", "f64[2,3,8,2]", lhs_dilation=[2, 1]),
    "another order": convolution("f32[8,6,2,5]", "f32[3,4,2,8]", "f0b1_0o1i->01bf", window_strides=[1, 2]),
    "one dimension": convolution("bf16[2,30,16]", "bf16[5,16,1]", "b0f_0io->b0f", padding=[(2, 2)]),
    "f16": convolution("f16[1,8,6,5]", "f16[7,8,2,2]", NCHW),
}  # fmt: skip
SPLIT = {
    "groups": convolution("f32[2,6,5,8]", "f32[3,3,2,8]", padding=[(1, 1), (1, 1)], feature_group_count=4),
    "more results": convolution("f32[1,9,8,6]", "f32[3,2,3,8]",
        window_strides=[2, 3], padding=[(1, 0), (0, 2)], feature_group_count=2),
    "fewer results": convolution("f32[1,9,8,12]", "f32[3,2,4,3]", rhs_dilation=[2, 1], feature_group_count=3),
    "groups, channels first": convolution("f64[2,8,6,5]", "f64[4,4,3,3]", NCHW,
        lhs_dilation=[1, 2], padding=[(1, -1), (0, 0)], feature_group_count=2),
    "bf16 groups": convolution("bf16[2,5,4,8]", "bf16[2,3,2,8]", padding=[(0, 0), (1, 1)], feature_group_count=4),
    "f16 groups, any order": convolution("f16[8,5,4,2]", "f16[2,2,3,12]", "f01b_i01o->01bf", feature_group_count=4),
    "groups in a wider type": convolution("bf16[1,4,5,4]", "bf16[2,2,2,4]",
        preferred_element_type="f32", feature_group_count=2),
}  # fmt: skip
FEATURES_LAST = {
    "few features": convolution("f32[2,3,9,8]", "f32[16,3,3,3]", NCHW, window_strides=[2, 1], padding=[(1, 1), (1, 0)]),
    "depthwise": convolution("f32[1,16,8,7]", "f32[16,1,3,3]", NCHW, feature_group_count=16, rhs_dilation=[1, 2]),
    "f64": convolution("f64[1,8,6,5]", "f64[9,8,3,3]", NCHW, padding=[(1, -1), (0, 0)]),
    "integers": convolution("s8[1,8,6,5]", "s8[4,8,3,3]", NCHW, preferred_element_type="s32"),
    "batch groups": convolution("f32[4,3,5,6]", "f32[8,3,2,2]", NCHW, batch_group_count=2),
    "one dimension, any order": convolution("bf16[9,2,3]", "bf16[3,2,5]", "0bf_i0o->fb0"),
    "reversed channels": convolution("f32[1,5,6,3]", "f32[3,2,1,3]", feature_group_count=3,
        window_reversal=[True, True]),
    "kernel alone": convolution("f32[1,6,5,3]", "f32[4,3,3,3]", "b01f_oi01->b01f"),
}  # fmt: skip
LEFT = {
    "places of a prime number": convolution("f32[1,300,1]", "f32[67,1,8]", "b0f_0io->b0f"),
    "few features": convolution("f32[1,8,8,3]", "f32[3,3,3,8]"),
    "window of one": convolution("f32[1,8,8,8]", "f32[1,1,8,8]"),
    "depthwise": convolution("f32[1,8,8,16]", "f32[3,3,1,16]", feature_group_count=16),
    "batch groups": convolution("f32[4,8,8,8]", "f32[3,3,8,4]", batch_group_count=2),
    "f64": convolution("f64[1,8,8,8]", "f64[3,3,8,9]"),
    "features first, padded": convolution("f64[1,8,8,8]", "f64[4,8,1,1]", NCHW, padding=[(1, 0), (0, 0)]),
    "features first, other space": convolution("f32[1,8,6,6]", "f32[4,8,1,1]", "bf01_oi01->bf10"),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", UNFOLDED)
def test_unfolded_is_the_same(name: str, xla: ReferenceEngine) -> None:
    program = UNFOLDED[name]
    product = unfolded(program)
    assert not operations(product.module, ["stablehlo.convolution"])
    arguments = random_inputs(program.signature, 3)
    report = compare(xla.prepare(product)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


def test_complex_groups_of_batches_compile(xla: ReferenceEngine) -> None:
    """IREE's compiler crashes on padded complex ones."""
    program = UNFOLDED["complex groups of batches"]
    arguments = random_inputs(program.signature, 3)
    report = compare(program.compile(cache=False)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


@pytest.mark.parametrize("name", FEATURES_FIRST)
def test_products_of_features_are_the_same(name: str, xla: ReferenceEngine) -> None:
    program = FEATURES_FIRST[name]
    product = unfolded(program)
    assert not operations(product.module, ["stablehlo.convolution"])
    assert len(operations(product.module, ["stablehlo.transpose"])) <= 1
    arguments = random_inputs(program.signature, 3)
    report = compare(xla.prepare(product)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", IN_ROWS)
def test_long_windows_lie_in_rows(name: str, xla: ReferenceEngine) -> None:
    program, window = IN_ROWS[name]
    rows = program.clone()
    apply_patterns(rows.module, by_window_rows)
    (left,) = operations(rows.module, ["stablehlo.convolution"])
    assert list(left.operands[1].type.shape)[:-1] == window
    image, kernel = random_inputs(program.signature, 3)
    report = compare(xla.prepare(rows)(image, kernel), xla.prepare(program)(image, kernel))
    assert report.agrees, report.text()


def test_infinite_elements_in_rows(xla: ReferenceEngine) -> None:
    """Zeros that fill up a window would make NaN of them."""
    program, _ = IN_ROWS["wide strides"]
    image, kernel = random_inputs(program.signature, 3)
    image[:, :, 80] = np.inf
    expected = xla.prepare(program)(image, np.abs(kernel) + 1)
    result = program.compile(cache=False)(image, np.abs(kernel) + 1)
    assert np.isfinite(expected).any()
    assert compare(result, expected).agrees


@pytest.mark.parametrize("name", BY_PLACES)
def test_few_outputs_are_sums_over_places(name: str, xla: ReferenceEngine) -> None:
    program = BY_PLACES[name]
    places = program.clone()
    apply_patterns(places.module, by_places)
    assert not operations(places.module, ["stablehlo.convolution"])
    arguments = random_inputs(program.signature, 3)
    report = compare(xla.prepare(places)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


def test_few_outputs_compile(xla: ReferenceEngine) -> None:
    program = BY_PLACES["one"]
    arguments = random_inputs(program.signature, 3)
    report = compare(program.compile(cache=False)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


@pytest.mark.parametrize("name", SPLIT)
def test_groups_by_channels_are_the_same(name: str, xla: ReferenceEngine) -> None:
    program = SPLIT[name]
    parts = unfolded(program)
    left = operations(parts.module, ["stablehlo.convolution"])
    assert {op.operands[1].type.shape[2] for op in left} == {1}
    arguments = random_inputs(program.signature, 3)
    expected = xla.prepare(program)(*arguments)
    report = compare(xla.prepare(parts)(*arguments), expected)
    assert report.agrees, report.text()
    compiled = compare(program.compile(cache=False)(*arguments), expected)
    assert compiled.agrees, compiled.text()


@pytest.mark.parametrize("name", FEATURES_LAST)
def test_features_are_moved_behind_the_space(name: str, xla: ReferenceEngine) -> None:
    program = FEATURES_LAST[name]
    moved = unfolded(program)
    (left,) = operations(moved.module, ["stablehlo.convolution"])
    assert re.search(r"#stablehlo.conv<\[b, .*f\]x\[.*i, o\]->\[b, .*f\]>", str(left.attributes["dimension_numbers"]))
    arguments = random_inputs(program.signature, 3)
    expected = xla.prepare(program)(*arguments)
    report = compare(xla.prepare(moved)(*arguments), expected)
    assert report.agrees, report.text()


@pytest.mark.parametrize("name", ["few features", "integers", "reversed channels"])
def test_moved_features_compile(name: str, xla: ReferenceEngine) -> None:
    """IREE leaves out the reversal of convolutions by channels, and answers wrongly."""
    program = FEATURES_LAST[name]
    arguments = random_inputs(program.signature, 3)
    report = compare(program.compile(cache=False)(*arguments), xla.prepare(program)(*arguments))
    assert report.agrees, report.text()


def test_reversed_windows(xla: ReferenceEngine) -> None:
    """XLA's builder has no reversal, which gradients of frameworks need; a reversed kernel is the same."""
    program = UNFOLDED["same"]
    text = re.sub(r"window = \{.*?\}", "window = {pad = [[1, 1], [1, 1]], reverse = [true, false]}", program.text())
    turned = read(text)
    image, kernel = random_inputs(program.signature, 5)
    expected = xla.prepare(program)(image, kernel[::-1].copy())
    copy = turned.clone()
    PassManager([UnfoldConvolutions()]).run(copy.module)
    report = compare(xla.prepare(copy)(image, kernel), expected)
    assert report.agrees, report.text()


@pytest.mark.parametrize("name", LEFT)
def test_left_to_iree(name: str) -> None:
    assert operations(unfolded(LEFT[name]).module, ["stablehlo.convolution"])


def test_complex_convolutions_compile(xla: ReferenceEngine) -> None:
    program = UNFOLDED["complex"]
    arguments = random_inputs(program.signature, 4)
    result = program.compile()(*arguments)
    assert np.isfinite(result).all()
    assert compare(result, xla.prepare(program)(*arguments)).agrees
