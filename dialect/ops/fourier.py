"""Fourier transforms.

Source: XLA "Fft"; StableHLO specification "fft".
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.emission import emit, enum, i64s
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import COMPLEX, op
from hloforge.dialect.shapes import Layout, Shape
from hloforge.dialect.values import Value

_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
_REAL_OF = {"c64": "f32", "c128": "f64"}
_COMPLEX_OF = {real: name for name, real in _REAL_OF.items()}


@op("Fft", emits="stablehlo.fft", on=COMPLEX | {"f32", "f64"})
def fft(operand: Value, fft_type: str, fft_length: Sequence[int]) -> Value:
    """Fourier transforms along the last one, two or three dimensions.

    A transform of several dimensions is a sequence of transforms of one. The last dimension is the one that changes
    its size: RFFT keeps ``n // 2 + 1`` of ``n`` frequencies, as the others are their conjugates, and IRFFT takes as
    many.

    Args:
        operand: complex; of f32 or f64 for RFFT.
        fft_type: FFT, IFFT (divided by the number of elements), RFFT (of real numbers) or IRFFT (to real numbers).
        fft_length: the sizes of the transformed dimensions on the side of time. They tell IRFFT whether the result has
            an even or an odd size.

    Returns:
        An array of the operand's sizes except for the last one of RFFT and IRFFT; complex, or real for IRFFT.

    Raises:
        OperationError: there is no such type of transform, it takes other element types, the rank is too low, there
            are not one to three lengths, or they do not fit the operand's sizes.

    Example:
        >>> fft(constant([1.0, 0.0, -1.0, 0.0], "f32"), "RFFT", [4])
        [0.+0.j 2.+0.j 0.+0.j]
        >>> fft(constant([0.0, 2.0, 0.0], "c64"), "IRFFT", [4])
        [ 1.  0. -1.  0.]
    """
    kind, lengths = fft_type.upper(), list(fft_length)
    if kind not in _TYPES:
        raise OperationError(f"fft_type {fft_type!r} must be one of {', '.join(_TYPES)}")
    if not 1 <= len(lengths) <= 3 or min(lengths) < 0:
        raise OperationError(f"fft_length {lengths} must be one to three sizes")
    if operand.rank < len(lengths):
        raise OperationError(f"{operand.shape} must have a dimension for each of the lengths {lengths}")
    if operand.element_type.is_complex == (kind == "RFFT"):
        wanted = "real" if kind == "RFFT" else "complex"
        raise OperationError(f"{kind} takes {wanted} numbers, not {operand.shape}")
    _check_lengths(operand, kind, lengths)
    result = _result(operand, kind, lengths[-1])
    return emit("stablehlo.fft", [operand], result, fft_type=enum("fft_type", kind), fft_length=i64s(lengths))


def _check_lengths(operand: Value, kind: str, lengths: list[int]) -> None:
    """The transformed dimensions of the operand; its frequencies may be empty where no time is left."""
    expected = [*lengths[:-1], _frequencies(lengths[-1]) if kind == "IRFFT" else lengths[-1]]
    first = operand.rank - len(lengths)
    for d, (size, wanted) in enumerate(zip(operand.dims[first:], expected, strict=True), first):
        if 0 <= size != wanted:
            raise OperationError(
                f"for {kind} of the lengths {lengths}, dimension {d} of {operand.shape} must have the size {wanted}"
            )


def _frequencies(length: int) -> int:
    """How many frequencies represent real numbers."""
    return length // 2 + 1 if length else 0


def _result(operand: Value, kind: str, length: int) -> Shape:
    shape = operand.shape
    if kind in ("FFT", "IFFT"):
        return shape
    last = length if kind == "IRFFT" else _frequencies(length)
    sizes, dynamic = (*shape.dimensions[:-1], last), (*shape.dynamic[:-1], False)
    layout = None if shape.layout is None else Layout(shape.layout.minor_to_major)
    return Shape(_other(operand.element_type), sizes, dynamic, layout)


def _other(row: ElementType) -> ElementType:
    """The real numbers of complex ones, and the reverse."""
    return element_type(_REAL_OF.get(row.name) or _COMPLEX_OF[row.name])
