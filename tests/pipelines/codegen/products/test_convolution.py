"""Convolutions of all orders of dimensions, against sums over windows in numpy, in memory with guards on both sides."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, lanes_of, vector_of
from hloforge.pipelines.codegen.products import convolution as convolution_module, phased_tiles, tile_registers
from hloforge.pipelines.codegen.products.convolution import Convolution
from hloforge.pipelines.codegen.products.direct_windows import DirectWindows
from hloforge.pipelines.codegen.products.images import Axis, Image, Kernel
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import AVX2, AVX512, Machine
from tests.pipelines.codegen.kernel_text import Kernel as Text

from .gemms import DTYPES, TOLERANCES
from .jit import EXTENSIONS, HOST, TILED, WITH_TILES, compiled, machine_of, skip_unless_made
from .memory import Guarded


def axis(
    size: int, window: int, *, stride: int = 1, dilation: int = 1, base: int = 1, low: int = 0, high: int = 0
) -> Axis:
    seen = (size - 1) * base + 1 + low + high - (window - 1) * dilation
    return Axis(size, (seen - 1) // stride + 1, window, stride, dilation, low, base)


def strides_of(sizes: dict[str, int], order: str) -> dict[str, int]:
    """Of dimensions by their letters, the first one of ``order`` outermost."""
    found, step = {}, 1
    for letter in reversed(order):
        found[letter] = step
        step *= sizes[letter]
    return found


def convolution(
    batch: int,
    axes: Sequence[Axis],
    inputs: int,
    outputs: int,
    *,
    groups: int = 1,
    orders: tuple[str, str, str] = ("NSC", "SIO", "NSC"),
    kind: str = "float",
    out: str = "",
    extensions: frozenset[str] = frozenset(),
) -> Convolution:
    """``orders`` are those of the image, the kernel and the result; S stands for all spatial dimensions."""
    letters = "xyz"[: len(axes)]
    image_order, kernel_order, out_order = (order.replace("S", letters) for order in orders)
    sizes = {"N": batch, "C": groups * inputs} | {letter: one.size for letter, one in zip(letters, axes, strict=True)}
    image = strides_of(sizes, image_order)
    sizes = {"N": batch, "C": groups * outputs} | {letter: one.out for letter, one in zip(letters, axes, strict=True)}
    result = strides_of(sizes, out_order)
    sizes = {"I": inputs, "O": groups * outputs} | {
        letter: one.window for letter, one in zip(letters, axes, strict=True)
    }
    weights = strides_of(sizes, kernel_order)
    return Convolution(
        batch,
        groups,
        inputs,
        outputs,
        tuple(axes),
        Image(kind, image["N"], tuple(image[letter] for letter in letters), image["C"], image["C"] * inputs),
        Kernel(kind, tuple(weights[letter] for letter in letters), weights["I"], weights["O"], weights["O"] * outputs),
        Image(
            out or kind, result["N"], tuple(result[letter] for letter in letters), result["C"], result["C"] * outputs
        ),
        extensions,
    )


def _viewed(
    flat: np.ndarray[Any, Any], shape: Sequence[int], strides: Sequence[int], start: int = 0
) -> np.ndarray[Any, Any]:
    return np.lib.stride_tricks.as_strided(flat[start:], shape, [stride * flat.itemsize for stride in strides])


def reference(one: Convolution, image: np.ndarray[Any, Any], kernel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``[batch, *spatial, features]`` of ``[batch, *spatial, features]`` and ``[*window, inputs, features]``."""
    rank = len(one.axes)
    padded = [max(a.padded, a.low + (a.size - 1) * a.base + 1) for a in one.axes]
    room = np.zeros((one.batch, *padded, one.groups * one.inputs), image.dtype)
    for place in itertools.product(*(range(a.size) for a in one.axes)):
        at = [p * a.base + a.low for p, a in zip(place, one.axes, strict=True)]
        if all(0 <= p < limit for p, limit in zip(at, padded, strict=True)):
            room[(slice(None), *at)] = image[(slice(None), *place)]
    out = np.zeros((one.batch, *(a.out for a in one.axes), one.groups * one.outputs), image.dtype)
    for window in itertools.product(*(range(a.window) for a in one.axes)):
        seen = tuple(
            slice(w * a.dilation, w * a.dilation + (a.out - 1) * a.stride + 1, a.stride)
            for w, a in zip(window, one.axes, strict=True)
        )
        for group in range(one.groups):
            inputs = slice(group * one.inputs, (group + 1) * one.inputs)
            outputs = slice(group * one.outputs, (group + 1) * one.outputs)
            part = room[(slice(None), *seen, inputs)]
            out[(..., outputs)] += np.tensordot(part, kernel[(*window, slice(None), outputs)], ([rank + 1], [0]))
    return out


def check(
    one: Convolution,
    *,
    machine: Machine | None = None,
    at_end: bool = True,
    biased: bool = False,
    apart: bool = False,
    seed: int = 0,
) -> None:
    """Compare with ``reference``.

    Args:
        at_end: whether arrays end where memory ends that is not to be touched, or begin there.
        apart: whether the kernel is packed before.
    """
    if machine is None:
        machine = machine_of(one.extensions)
        skip_unless_made(machine, one.image.kind)
    random = np.random.default_rng(seed)
    image_shape = (one.batch, *(a.size for a in one.axes), one.groups * one.inputs)
    kernel_shape = (*(a.window for a in one.axes), one.inputs, one.groups * one.outputs)
    out_shape = (one.batch, *(a.out for a in one.axes), one.groups * one.outputs)

    def numbers(shape: Sequence[int], kind: str) -> np.ndarray[Any, Any]:
        dtype = DTYPES[kind]
        if kind.startswith("i"):
            return random.integers(-128, 127, int(np.prod(shape)), np.int8, endpoint=True).astype(dtype)
        return random.standard_normal(int(np.prod(shape))).astype(dtype)

    flat_image, flat_kernel = numbers(image_shape, one.image.kind), numbers(kernel_shape, one.kernel.kind)
    out = np.zeros(int(np.prod(out_shape)), DTYPES[one.out.kind])
    bias = random.standard_normal(one.groups * one.outputs + 64).astype(np.float32)
    packing, strips = None, np.zeros(0, np.uint8)
    if apart:
        packing, strips = Text(6, machine.vector_bytes), np.full(one.packed_bytes(machine), 0xFF, np.uint8)
        function, pointers, (workgroup,) = packing.part(packing.arrays, [packing.workgroup])
        one.pack(function, pointers[1], pointers[5], workgroup, machine=machine)
        packers = one.pack_workgroups(machine)
        one = replace(one, apart=True)
    text = Text(6, machine.vector_bytes)
    function, pointers, (workgroup,) = text.part(text.arrays, [text.workgroup])
    hooks = {"epilogue": _bias(function, pointers[4], one)} if biased else {}
    if apart:
        hooks["packed"] = pointers[5]
    one.emit(Work(function, *pointers[:4], workgroup, machine, **hooks))
    scratch = np.full(-(-one.scratch(machine) // 64) * 64, 0xFF, np.uint8)
    arrays = [flat_image, flat_kernel, out, scratch, bias, strips]
    rooms = [Guarded(array.nbytes, at_end=at_end) for array in arrays]
    placed = [room.array(array) for room, array in zip(rooms, arrays, strict=True)]
    if packing is not None:
        compiled(packing.text()).run(placed, packers)
    compiled(text.text()).run(placed, one.workgroups(machine))
    assert all(room.is_intact for room in rooms), "bytes beside an array were written"

    image = _viewed(flat_image, image_shape, (one.image.batch, *one.image.spatial, one.image.feature))
    strides = (*one.kernel.spatial, one.kernel.input, one.kernel.output)
    kernel = _viewed(flat_kernel, kernel_shape, strides, one.kernel.start)
    found = _viewed(placed[2], out_shape, (one.out.batch, *one.out.spatial, one.out.feature))
    if one.out.kind == "i32":
        image, kernel = (
            array if side.signed else array.view(f"u{array.dtype}")
            for array, side in ((image, one.image), (kernel, one.kernel))
        )
        expected = reference(one, image.astype(np.int32), kernel.astype(np.int32))
        np.testing.assert_array_equal(found, expected)
        return
    wide_image, wide_kernel = image.astype(np.float64), kernel.astype(np.float64)
    expected = reference(one, wide_image, wide_kernel)
    if biased:
        expected = np.maximum(expected + bias[: expected.shape[-1]], 0)
    # Below its smallest normal number f16 has fewer bits.
    least = 2.0**-14 if one.out.kind == "half" else 1e-30
    scale = reference(one, abs(wide_image), abs(wide_kernel)) + abs(expected) + least
    error = float((abs(found.astype(np.float64) - expected) / scale).max())
    assert error < TOLERANCES[one.out.kind], f"relative error {error:.2g}"


def _bias(function: Function, bias: Value, one: Convolution) -> Any:
    """``max(sums + bias[feature], 0)``."""

    def epilogue(sums: Value, places: Sequence[Value]) -> Value:
        assert len(places) == len(one.axes) + 2
        lanes = lanes_of(sums.kind)
        along_features = one.out.feature == 1 and one.groups * one.outputs > 1
        kind = vector_of("float", lanes) if along_features else "float"
        return (sums + function.load(function.offset(bias, "float", places[-1]), kind)).maximum(0.0)

    return epilogue


PIXELS = ("NSC", "SIO", "NSC")
PLANES = ("NCS", "OIS", "NCS")
CASES = {
    "3x3": ([axis(9, 3, low=1, high=1), axis(11, 3, low=1, high=1)], 5, 19),
    "valid": ([axis(9, 3), axis(12, 2)], 16, 33),
    "1x1": ([axis(7, 1), axis(6, 1)], 12, 20),
    "1x1/2": ([axis(7, 1, stride=2), axis(6, 1, stride=2)], 12, 20),
    "7x7/2": ([axis(20, 7, stride=2, low=3, high=3), axis(22, 7, stride=2, low=3, high=3)], 3, 32),
    "dilated": ([axis(14, 3, dilation=2, low=2, high=2), axis(13, 3, dilation=3, low=2, high=3)], 4, 17),
    "transposed": ([axis(6, 4, base=2, low=2, high=2), axis(5, 3, base=3, low=1, high=2)], 6, 16),
    "phases": ([axis(6, 4, base=2, low=2, high=2), axis(5, 3, base=2, low=1, high=2)], 6, 16),
    "phases of one weight": ([axis(6, 1, base=2, high=1), axis(5, 2, base=3, low=1, high=2)], 6, 16),
    "phases beside strides": ([axis(9, 3, stride=2, low=1, high=1), axis(5, 3, base=2, low=4, high=1)], 6, 16),
    "phases of a cropped image": ([axis(7, 3, base=2, low=-1, high=2), axis(7, 3, base=2, low=-3, high=0)], 4, 17),
    "cropped": ([axis(12, 3, low=-2, high=-1), axis(16, 3, low=-1, high=1, stride=2)], 8, 16),
    "one dimension": ([axis(40, 5, low=2, high=2)], 7, 18),
    "three dimensions": ([axis(5, 3, low=1, high=1), axis(6, 2), axis(7, 3, low=1, stride=2)], 4, 16),
    "aligned": ([axis(10, 3, low=1, high=1), axis(24, 3, low=1, high=1)], 16, 64),
    "one feature of wide rows": ([axis(8, 3), axis(19, 3)], 3, 1),
    "a product": ([axis(8, 1), axis(19, 1)], 7, 20),
    "a product of one feature": ([axis(8, 1), axis(19, 1)], 70, 1),
    "one feature": ([axis(8, 3), axis(9, 3)], 3, 1),
}


@pytest.mark.wide(3)
@pytest.mark.parametrize(
    "orders", [PIXELS, PLANES, ("NCS", "SIO", "NSC"), ("NSC", "OIS", "NSC"), ("SNC", "IOS", "NCS")]
)
@pytest.mark.parametrize("case", CASES)
def test_orders(case: str, orders: tuple[str, str, str]) -> None:
    axes, inputs, outputs = CASES[case]
    one = convolution(2, axes, inputs, outputs, orders=orders)
    check(one)
    check(one, at_end=False, biased=True)


@pytest.mark.parametrize("orders", [PIXELS, PLANES])
@pytest.mark.parametrize("sizes", [(1, 1, 20), (1, 2, 9), (4, 4, 8), (3, 5, 4)], ids=str)
def test_groups(sizes: tuple[int, int, int], orders: tuple[str, str, str]) -> None:
    inputs, outputs, groups = sizes
    for axes in (CASES["3x3"][0], CASES["7x7/2"][0], CASES["dilated"][0]):
        check(convolution(2, axes, inputs, outputs, groups=groups, orders=orders), biased=True)


@pytest.mark.parametrize("orders", [PIXELS, PLANES])
@pytest.mark.parametrize("kind", ["double", "half", "bfloat", "i8", "i32"])
def test_types(kind: str, orders: tuple[str, str, str]) -> None:
    for case in ("3x3", "valid", "1x1"):
        axes, inputs, outputs = CASES[case]
        for has in (frozenset[str](), EXTENSIONS & {"avx512vnni", "avx512bf16"}, EXTENSIONS & {"avx2"}):
            out = "i32" if kind == "i8" else kind
            check(convolution(2, axes, inputs, outputs, orders=orders, kind=kind, out=out, extensions=has))


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("kind", ["i8", "bfloat"])
@pytest.mark.parametrize(
    ("axes", "inputs", "outputs", "groups"),
    [
        ((axis(9, 3, low=1, high=1), axis(20, 3, low=1, high=1)), 16, 40, 1),
        ((axis(11, 5, stride=2, low=2, high=1), axis(7, 3, dilation=2)), 9, 41, 2),
        ((axis(13, 1), axis(6, 1)), 65, 33, 1),
        ((axis(40, 7, low=3),), 20, 16, 1),
        ((axis(5, 2), axis(6, 3), axis(7, 2, high=1)), 8, 20, 1),
    ],
    ids=str,
)
def test_tile_registers(
    axes: tuple[Axis, ...],
    inputs: int,
    outputs: int,
    groups: int,
    kind: str,
    allowed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes and bf16 by laid out windows; and by vectors where Linux does not lend the registers."""
    if not allowed:
        monkeypatch.setattr(tile_registers, "_REQUEST", 0)
    out = "i32" if kind == "i8" else kind
    one = convolution(2, axes, inputs, outputs, groups=groups, kind=kind, out=out, extensions=WITH_TILES)
    whole = one._in_planes()
    assert one.form() == "matrix" or whole._registers(TILED) is not None
    check(one)
    # Few rows at a time, of one image.
    monkeypatch.setattr(convolution_module, "_LAID_BYTES", 1 << 14)
    check(one, machine=replace(TILED, l2_bytes=1 << 14), at_end=False)


@pytest.mark.wide(8)
@pytest.mark.parametrize("kind", ["i8", "bfloat"])
@pytest.mark.parametrize(
    ("batch", "axes", "outputs", "groups"),
    [
        (2, (axis(9, 3, low=1, high=1), axis(28, 3, low=1, high=1)), 40, 1),
        (3, (axis(5, 3, low=1, high=1), axis(17, 3, low=1, high=1)), 64, 1),
        (2, (axis(8, 3, stride=2, low=1), axis(35, 3, stride=2, low=1)), 33, 2),
        (2, (axis(7, 2), axis(27, 5, dilation=2)), 16, 1),
        (2, (axis(37, 3, low=1, high=1),), 32, 1),
        (1, (axis(5, 2), axis(6, 3, low=1, high=1), axis(13, 2, high=1)), 48, 1),
        (1, (axis(15, 1, stride=2), axis(39, 1, stride=2)), 32, 1),
        (1, (axis(1, 1), axis(91, 1, low=1, high=1)), 32, 1),
        (2, (axis(9, 3, low=1, high=1), axis(28, 3, low=1, high=1)), 8, 1),
        (2, (axis(9, 3, low=1, high=1), axis(27, 3, low=1, high=1)), 13, 2),
    ],
    ids=str,
)
def test_tile_registers_of_windows_in_place(
    batch: int, axes: tuple[Axis, ...], outputs: int, groups: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features that fill blocks of terms, by rows of pixels that registers divide and that they do not."""
    inputs, out = 64 if kind == "i8" else 32, "i32" if kind == "i8" else kind
    for orders in (PIXELS, ("NSC", "OSI", "NSC"), ("NCS", "OIS", "NSC")):
        one = convolution(
            batch, axes, inputs, outputs, groups=groups, orders=orders, kind=kind, out=out, extensions=WITH_TILES
        )
        registers = one._in_planes()._registers(TILED)
        assert registers is not None
        assert isinstance(registers[1].left, DirectWindows)
        check(one, biased=groups == 1 and kind == "bfloat")
        check(_reversed(one), at_end=False)
    # Few rows at a time.
    monkeypatch.setattr(convolution_module, "_LAID_BYTES", 1 << 12)
    check(one, machine=replace(TILED, workers=3))


@pytest.mark.wide(2)
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("kernel", ["OIS", "SIO"])
@pytest.mark.parametrize("sizes", [(3, 7, 32, 40, 1), (2, 20, 16, 48, 2), (5, 9, 5, 33, 1)], ids=str)
def test_kernels_packed_apart(
    sizes: tuple[int, int, int, int, int], kernel: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strips are packed once for all pieces of the work, which read the kernel itself without the registers."""
    if not allowed:
        monkeypatch.setattr(tile_registers, "_REQUEST", 0)
    batch, size, inputs, outputs, groups = sizes
    axes = [axis(size, 3, low=1, high=1), axis(size, 3, stride=2, low=1, high=1)]
    orders = ("NSC", kernel, "NSC")
    one = convolution(batch, axes, inputs, outputs, groups=groups, orders=orders, kind="bfloat", extensions=WITH_TILES)
    check(one, apart=True)
    monkeypatch.setattr(convolution_module, "_PACKED_PIECE", 1 << 10)
    monkeypatch.setattr(convolution_module, "_LAID_BYTES", 1 << 14)
    check(one, apart=True, at_end=False, biased=groups == 1)


def test_which_kernels_are_packed_apart() -> None:
    """Those that several pieces would pack again, if it is more than a little."""
    for batch, size, features, expected in ((8, 7, 512, True), (8, 14, 256, True), (1, 8, 32, False)):
        axes = [axis(size, 3, low=1, high=1)] * 2
        one = convolution(batch, axes, features, features, kind="bfloat", extensions=WITH_TILES)
        assert one.packs_apart(AVX512) is expected


@pytest.mark.parametrize("orders", [PIXELS, ("NCS", "OIS", "NSC"), ("NSC", "OIS", "NSC")])
@pytest.mark.parametrize("batch", [1, 3])
def test_tile_registers_of_few_features(batch: int, orders: tuple[str, str, str]) -> None:
    """Features of an image that fill no group are a dimension of windows, with any kernel that is a matrix so."""
    for axes in (CASES["7x7/2"][0], [axis(9, 3, dilation=2), axis(14, 3, dilation=2, low=2, high=1)]):
        one = convolution(batch, axes, 5, 32, orders=orders, kind="bfloat", extensions=WITH_TILES)
        assert one._registers(TILED) is not None
        check(one, biased=True)
        check(_reversed(one), at_end=False)


@pytest.mark.parametrize("kind", ["i8", "bfloat"])
@pytest.mark.parametrize("kernel", ["OIS", "IOS"])
def test_tile_registers_of_windows(kernel: str, kind: str) -> None:
    """Positions of a window that follow each other, in blocks of terms that are filled and that are not."""
    axes = [axis(9, 3, low=1, high=1), axis(7, 3, low=1, high=1)]
    for inputs, outputs in ((32, 40), (20, 17), (9, 33)):
        one = convolution(
            *(2, axes, inputs, outputs),
            orders=("NSC", kernel, "NSC"),
            kind=kind,
            out="i32" if kind == "i8" else kind,
            extensions=WITH_TILES,
        )
        assert (one._registers(TILED) is not None) == (inputs % 4 == 0 or kernel == "OIS")
        check(one)
        check(_reversed(one), at_end=False)


@pytest.mark.wide(4)
@pytest.mark.parametrize("kernel", ["OIS", "IOS", "SIO", "SOI"])
@pytest.mark.parametrize("kind", ["float", "bfloat", "i8"])
def test_packed_windows(kind: str, kernel: str) -> None:
    """Weights in any order and both directions, of features that fill groups of terms and buffers and do not."""
    for axes in (CASES["3x3"][0], [axis(60, 49)], [axis(5, 2), axis(6, 3), axis(7, 2, high=1)]):
        for inputs, outputs in ((5, 19), (33, 40), (130, 16)):
            out = "i32" if kind == "i8" else kind
            one = convolution(
                *(1, axes, inputs, outputs), orders=("NSC", kernel, "NSC"), kind=kind, out=out, extensions=EXTENSIONS
            )
            check(one)
            check(_reversed(one), at_end=False)


def _reversed(one: Convolution) -> Convolution:
    spatial = one.kernel.spatial
    start = sum((a.window - 1) * stride for a, stride in zip(one.axes, spatial, strict=True))
    return replace(one, kernel=replace(one.kernel, spatial=tuple(-stride for stride in spatial), start=start))


@pytest.mark.parametrize("orders", [PIXELS, PLANES])
def test_reversed_windows(orders: tuple[str, str, str]) -> None:
    axes, inputs, outputs = CASES["3x3"]
    check(_reversed(convolution(1, axes, inputs, outputs, orders=orders)))


@pytest.mark.parametrize("kind", ["float", "i8", "bfloat"])
def test_terms_in_blocks(kind: str) -> None:
    small = replace(HOST, l2_bytes=1 << 15)
    for case in ("aligned", "valid", "phases", "3x3"):
        axes, inputs, outputs = CASES[case]
        for depth in (1, 5, 24):
            out = "i32" if kind == "i8" else kind
            one = convolution(1, axes, depth * inputs, outputs, kind=kind, out=out, extensions=EXTENSIONS)
            check(one, machine=small, biased=kind == "float")


def test_zeros_are_not_multiplied() -> None:
    axes, inputs, outputs = CASES["phases"]
    one = convolution(1, axes, inputs, outputs)
    pixels, weights = (axes[0].out * axes[1].out), (4 // 2) * (3 / 2)
    assert one.multiplications <= pixels * weights * inputs * outputs


@st.composite
def _axes(draw: st.DrawFn) -> Axis:
    window, dilation, stride = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size, base = draw(st.integers(1, 14)), draw(st.sampled_from([1, 1, 1, 2, 3]))
    least = (window - 1) * dilation + 1
    low, high = draw(st.integers(-2, 3)), draw(st.integers(-2, 3))
    high += max(0, least - ((size - 1) * base + 1 + low + high))
    return axis(size, window, stride=stride, dilation=dilation, base=base, low=low, high=high)


@pytest.mark.parametrize("orders", [PIXELS, PLANES, ("NCS", "SIO", "NSC"), ("NSC", "IOS", "NCS")])
@pytest.mark.parametrize("outputs", [6, 32])
def test_the_stride_of_one_feature_means_nothing(orders: tuple[str, str, str], outputs: int) -> None:
    """It was taken for that of the weights, which were read beyond the image's end."""
    for at_end in (False, True):
        check(convolution(2, [axis(9, 4)], 1, outputs, orders=orders), at_end=at_end)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 2), st.lists(_axes(), min_size=1, max_size=3), st.integers(1, 9), st.integers(1, 37),
    st.sampled_from([1, 1, 2, 5]), st.sampled_from([PIXELS, PLANES, ("NCS", "SIO", "NSC"), ("NSC", "IOS", "NCS")]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_random_convolutions(
    batch: int, axes: list[Axis], inputs: int, outputs: int, groups: int, orders: tuple[str, str, str], biased: bool,
    at_end: bool,
) -> None:  # fmt: skip
    one = convolution(batch, axes, inputs, outputs, groups=groups, orders=orders)
    check(one, biased=biased, at_end=at_end)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_lines(data: st.DataObject) -> None:
    """One spatial dimension, whose chunks are pieces of the line."""
    window, stride, dilation = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 3), st.integers(1, 2)), "window")
    base, size = data.draw(st.sampled_from([1, 1, 2]), "base"), data.draw(st.integers(20, 400), "size")
    low, high = data.draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), "edges")
    line = axis(size, window, stride=stride, dilation=dilation, base=base, low=low, high=high)
    assume(line.out > 0)
    inputs, outputs = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 50)), "features")
    groups, batch = data.draw(st.tuples(st.sampled_from([1, 1, 3]), st.sampled_from([1, 1, 2])), "counts")
    orders = data.draw(st.sampled_from([PIXELS, PLANES, ("NCS", "SIO", "NSC"), ("NSC", "IOS", "NCS")]), "orders")
    kind = data.draw(st.sampled_from(["float", "float", "double", "bfloat", "i8"]), "kind")
    one = convolution(
        batch, [line], inputs, outputs, groups=groups, orders=orders, kind=kind, out="i32" if kind == "i8" else ""
    )
    # Caches of a few kilobytes hold a small piece.
    small = replace(HOST, l2_bytes=data.draw(st.sampled_from([1 << 12, 1 << 14, HOST.l2_bytes]), "cache"))
    check(one, machine=small, at_end=data.draw(st.booleans(), "end"), biased=kind == "float")


@pytest.mark.parametrize("orders", [PIXELS, ("CNS", "SIO", "NSC"), ("NCS", "OIS", "NSC")])
def test_few_pixels_of_many_images(orders: tuple[str, str, str]) -> None:
    """Gradients of a line's weights: images are rows of one, in which tiles are full."""
    for images, inputs in ((32, 4), (7, 1), (2, 9), (1, 4)):
        one = convolution(images, [axis(90, 88, low=1, high=1)], inputs, 48, orders=orders)
        check(one, biased=True, at_end=images < 8)
        check(convolution(images, [axis(90, 88, low=1, high=1)], inputs, 48, orders=orders, kind="i8", out="i32"))


def test_a_line_has_pieces() -> None:
    for orders in (PIXELS, PLANES):
        one = convolution(1, [axis(3000, 3, low=1, high=1)], 80, 96, orders=orders)
        assert one.workgroups(AVX512) > 1
        check(one)


@pytest.mark.wide(4)
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("window", [(2, 3), (3, 3), (5, 5), (7, 7), (4, 9)], ids=str)
def test_rows_of_depthwise_planes(window: tuple[int, int], strides: tuple[int, int], dilation: int) -> None:
    """Some rows at once, with and without padding, of rows that do and do not fill vectors."""
    for sizes, low in (((19, 41), 3), ((17, 32), 0), ((23, 77), -1)):
        axes = [
            axis(size, side, stride=stride, dilation=dilation, low=low, high=max(low, 0) + 2)
            for size, side, stride in zip(sizes, window, strides, strict=True)
        ]
        for kind in ("float", "bfloat"):
            check(convolution(1, axes, 1, 1, groups=3, orders=PLANES, kind=kind), at_end=low == 0)


@settings(max_examples=25, deadline=None)
@given(st.lists(_axes(), min_size=1, max_size=2), st.integers(2, 40), st.sampled_from(["bfloat", "half"]))
def test_random_depthwise_convolutions_of_16_bits(axes: list[Axis], groups: int, kind: str) -> None:
    """Elements that are read where they lie become f32 there; sums become bf16 by the processor's instruction."""
    for orders in (PIXELS, ("NSC", "OIS", "NSC")):
        one = convolution(2, axes, 1, 1, groups=groups, orders=orders, kind=kind, extensions=EXTENSIONS)
        check(one, at_end=groups % 2 == 0)
        check(one, biased=True)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 2), st.lists(_axes(), min_size=1, max_size=2), st.integers(2, 40), st.booleans())
def test_random_depthwise_convolutions(batch: int, axes: list[Axis], groups: int, at_end: bool) -> None:
    for orders in (PIXELS, PLANES, ("NSC", "OIS", "NSC")):
        check(convolution(batch, axes, 1, 1, groups=groups, orders=orders), at_end=at_end, biased=True)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_depthwise_convolutions_of_bytes(data: st.DataObject) -> None:
    """By an instruction for four of them, or one by one, with and without signs."""
    batch, groups = data.draw(st.integers(1, 2), "batch"), data.draw(st.integers(2, 70), "groups")
    axes = data.draw(st.lists(_axes(), max_size=2), "axes")
    window, stride = data.draw(st.integers(2, 9), "window"), data.draw(st.integers(1, 4), "stride")
    low, high = data.draw(st.tuples(st.integers(-2, 3), st.integers(-2, 3)), "edges")
    size = data.draw(st.integers(4 + window, 30), "size")
    axes.append(axis(size, window, stride=stride, low=low, high=high))
    one = convolution(batch, axes, 1, 1, groups=groups, kind="i8", out="i32", extensions=EXTENSIONS)
    signed, also = data.draw(st.tuples(st.booleans(), st.booleans()), "signed")
    one = replace(one, image=replace(one.image, signed=signed), kernel=replace(one.kernel, signed=also))
    check(one, at_end=data.draw(st.booleans()))


@pytest.mark.parametrize("orders", [PIXELS, PLANES])
def test_pieces(orders: tuple[str, str, str]) -> None:
    axes = [axis(40, 3, low=1, high=1), axis(41, 3, low=1, high=1)]
    one = convolution(2, axes, 24, 70, orders=orders)
    assert one.workgroups(AVX512) > 1
    check(one)


@pytest.mark.parametrize("orders", [PIXELS, PLANES])
def test_narrow_vectors(orders: tuple[str, str, str]) -> None:
    for case in CASES.values():
        check(convolution(1, *case, orders=orders), machine=AVX2)


@pytest.mark.wide(4)
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize(
    ("batch", "axes", "inputs", "outputs", "groups"),
    [
        # Gradients of strided windows by the image: of 3x3 and 5x5, and of an image of odd sizes.
        (2, (axis(8, 3, base=2, low=1, high=2), axis(20, 3, base=2, low=1, high=2)), 32, 40, 1),
        (1, (axis(9, 5, base=2, low=2, high=2), axis(10, 5, base=2, low=2, high=2)), 64, 16, 1),
        (2, (axis(4, 4, base=2, low=2, high=2), axis(4, 4, base=2, low=2, high=2)), 40, 33, 1),
        (3, (axis(5, 2, base=2, low=1, high=1), axis(9, 2, base=2, low=1, high=1)), 24, 8, 1),
        (2, (axis(7, 3, stride=2, low=1, dilation=2), axis(17, 7, base=3, low=4, high=3)), 8, 16, 2),
        (2, (axis(37, 4, base=2, low=2, high=3),), 32, 24, 1),
        # Of features that fill half of a block, weights of a phase lie as far apart as whole blocks would.
        (1, (axis(6, 4, base=2, low=2, high=2), axis(11, 4, base=2, low=2, high=2)), 16, 32, 1),
        # Chunks that begin with rows that some phases do not have.
        (3, (axis(10, 3, base=2, low=1, high=1), axis(10, 3, base=2, low=1, high=1)), 64, 32, 1),
        (1, (axis(3, 2, base=2), axis(4, 3, base=2, low=-1), axis(13, 2, base=2, low=1, high=1)), 16, 16, 1),
    ],
    ids=str,
)
def test_phases_by_tile_registers(
    batch: int,
    axes: tuple[Axis, ...],
    inputs: int,
    outputs: int,
    groups: int,
    allowed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of images with zeros between their pixels, whose phases read windows in place, or are computed by vectors."""
    if not allowed:
        monkeypatch.setattr(tile_registers, "_REQUEST", 0)
    one = convolution(batch, axes, inputs, outputs, groups=groups, kind="bfloat", extensions=WITH_TILES)
    assert one._phased(TILED) is not None
    check(one, biased=True, apart=True)
    check(replace(_reversed(one), out=replace(one.out, kind="float")), at_end=False)
    if not allowed:
        return
    orders = ("NCS", "OIS", "NSC")
    one = convolution(batch, axes, inputs, outputs, groups=groups, orders=orders, kind="bfloat", extensions=WITH_TILES)
    # Few rows at a time.
    monkeypatch.setattr(phased_tiles, "_COPIED_BYTES", 1 << 11)
    check(one, machine=replace(TILED, workers=3), apart=True)
