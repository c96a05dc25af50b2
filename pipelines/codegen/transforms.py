"""``stablehlo.fft`` as transforms of ``algorithms/`` along one dimension after the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen import sharing
from hloforge.pipelines.codegen.algorithms.bluestein import Bluestein, complex_fft
from hloforge.pipelines.codegen.algorithms.fft import FFT
from hloforge.pipelines.codegen.algorithms.real_fft import RealFFT
from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.refusal import RefusedError

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

_Transform = FFT | Bluestein | RealFFT
# Multiplications of a point in each doubling of the length: butterflies, and what moves points.
_EACH = 4


def one_by_one(block: Block) -> None:
    """Let a transform of several dimensions be one operation after the other, each of which is shared out."""
    for op in list(block.ops):
        for inner in op.inner:
            one_by_one(inner)
        count = len(op.integers("fft_length")) if op.name == "fft" else 1
        if count == 1 or not op.result.elements or not op.operands[0].elements:
            continue
        (source,) = op.operands
        is_whole = stablehlo.FftTypeAttr(op.attribute("fft_type")).value != "IRFFT"
        between = op.result if is_whole else source
        source.readers.remove(op)
        for stage in range(count - 1):
            step = Op("fft", (source,), op.mlir, block, stage=stage)
            source.readers.append(step)
            source = Array(between.element, between.shape, step, block)
            step.results = (source,)
            block.ops.insert(block.ops.index(op), step)
        op.operands, op.stage = (source,), count - 1
        source.readers.append(op)


def write_fft(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a ``stablehlo.fft`` along one dimension."""
    if not op.result.elements:
        return
    if not op.operands[0].elements:
        raise RefusedError("a transform of nothing")
    transform = _transform(op, generator.machine.vector_bytes)
    source, target = generator.elements(op.operands[0]), generator.elements(op.result)
    table = generator.writer.memory(generator.constant(transform.table or bytes(1))).pointer
    memory = sharing.scratch(generator, transform.scratch, share)
    function = generator.writer.function
    with accessing(function, ""):
        transform.write(function, source, target, memory, table, sharing.rows_of(share, transform.rows))


def fft_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups a transform along one dimension is shared out to."""
    machine = generator.machine
    if not op.result.elements:
        return 1
    transform = _transform(op, machine.vector_bytes)
    work = _EACH * transform_points(transform) * max(1.0, math.log2(transform.n))
    return sharing.pieces(transform.rows, work, machine.vector_bytes // 4, machine)


def transform_points(transform: _Transform) -> int:
    """How many elements a transform has, at least as many as go in or come out."""
    if isinstance(transform, RealFFT):
        return transform.outer * max(transform.n, transform.count)
    return transform.outer * transform.n * transform.inner


def _transform(op: Op, vector_bytes: int) -> _Transform:
    """The transform of an operation's stage: of real numbers first, or last if they are the result."""
    kind = stablehlo.FftTypeAttr(op.attribute("fft_type")).value
    lengths = op.integers("fft_length")
    (operand,), result = op.operands, op.result
    rank = len(lengths)
    # Of complex numbers: whichever of both is the half spectrum of real ones.
    spectrum = operand if kind == "IRFFT" else result
    shape, outer = spectrum.shape, math.prod(spectrum.shape[:-1])
    if kind == "RFFT" and op.stage == 0:
        return RealFFT(outer, lengths[-1], operand.element, vector_bytes=vector_bytes)
    if kind == "IRFFT" and op.stage == rank - 1:
        return RealFFT(outer, lengths[-1], result.element, True, vector_bytes)
    along = len(shape) - 1 - op.stage - (kind == "IRFFT")
    before, after = math.prod(shape[:along]), math.prod(shape[along + 1 :])
    is_inverse = kind in ("IFFT", "IRFFT")
    return complex_fft(before, shape[along], after, spectrum.element, inverse=is_inverse, vector_bytes=vector_bytes)
