"""``stablehlo.fft`` as transforms of ``algorithms/`` along one dimension after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen import sharing
from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.bluestein import Bluestein, complex_fft
from hloforge.pipelines.codegen.algorithms.fft import FFT
from hloforge.pipelines.codegen.algorithms.real_fft import RealFFT
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.refusal import RefusedError

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

_Transform = FFT | Bluestein | RealFFT
# Multiplications of a point in each doubling of the length: butterflies, and what moves points.
_EACH = 4


def write_fft(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a ``stablehlo.fft``."""
    function = generator.writer.function
    found = list(_transforms(op, generator.machine.vector_bytes))
    if not op.result.elements:
        return
    if not op.operands[0].elements:
        raise RefusedError("a transform of nothing")
    source, result = generator.elements(op.operands[0]), generator.elements(op.result)
    between = [name for _, name in found[:-1]]
    # Transforms of all but the last dimension go to and fro between two arrays.
    most = max((transform_points(transform) * elements.size(name) for transform, name in found[:-1]), default=0)
    rooms = [generator.required_scratch(most) for _ in range(min(2, len(between)))]
    for number, (transform, _) in enumerate(found):
        is_last = number == len(found) - 1
        target = result if is_last else Elements(rooms[number % 2], between[number])
        table = generator.writer.memory(generator.constant(transform.table or bytes(1))).pointer
        memory = sharing.scratch(generator, transform.scratch, share)
        with accessing(function, ""):
            transform.write(function, source, target, memory, table, sharing.rows_of(share, transform.rows))
        source = target


def fft_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups a transform is shared out to; those of several dimensions wait for each other."""
    machine = generator.machine
    found = list(_transforms(op, machine.vector_bytes))
    if len(found) != 1 or not op.result.elements:
        return 1
    transform, _ = found[0]
    length = transform.n
    work = _EACH * transform_points(transform) * max(1.0, math.log2(length))
    return sharing.pieces(transform.rows, work, machine.vector_bytes // 4, machine)


def transform_points(transform: _Transform) -> int:
    """How many elements a transform has, at least as many as go in or come out."""
    if isinstance(transform, RealFFT):
        return transform.outer * max(transform.n, transform.count)
    return transform.outer * transform.n * transform.inner


def _transforms(op: Op, vector_bytes: int) -> Iterator[tuple[_Transform, str]]:
    """In order, each with the element type of what it makes."""
    kind = stablehlo.FftTypeAttr(op.attribute("fft_type")).value
    lengths = op.integers("fft_length")
    (operand,), result = op.operands, op.result
    is_inverse = kind in ("IFFT", "IRFFT")
    rank = len(lengths)
    # Of complex numbers: whichever of both is the half spectrum of real ones.
    shape = list(operand.shape if kind == "IRFFT" else result.shape)
    name = operand.element if kind == "IRFFT" else result.element
    outer = math.prod(shape[:-1])
    if kind == "RFFT":
        yield RealFFT(outer, lengths[-1], operand.element, vector_bytes=vector_bytes), name
    for d in reversed(range(rank if kind in ("FFT", "IFFT") else rank - 1)):
        along = len(shape) - rank + d
        before, after = math.prod(shape[:along]), math.prod(shape[along + 1 :])
        yield complex_fft(before, shape[along], after, name, inverse=is_inverse, vector_bytes=vector_bytes), name
    if kind == "IRFFT":
        yield RealFFT(outer, lengths[-1], result.element, True, vector_bytes), result.element
