"""``dispatch-fft``: Fourier transforms of rows or columns as one dispatch per axis.

Before (``decompose-fft`` leaves transforms that are large enough)::

    %y = stablehlo.fft %x, type = FFT, length = [64, 1000] : tensor<64x1000xcomplex<f32>>

After::

    %r = dispatch { for row in some of 64 rows: all stages of a transform of 1000 points }        many workgroups
    %y = dispatch { all stages of transforms of 64 points, of some columns }                      many workgroups

A workgroup keeps its rows in the nearest caches from the first stage to the last one, and the code of a stage is a loop
whose size does not grow with the length. A vector holds points of one row, or one point of several columns; rows whose
length is no multiple of a vector's are turned into columns and back. Real and imaginary parts are in vectors of their
own: complex numbers are taken apart where the first stage reads them, and put together where the last one writes them.
Between, stages write in turn into the result's memory and some of their own, or two of their own: the dispatch's stack
if they are small, else a result that nobody reads.
Source: Van Loan, "Computational Frameworks for the FFT", 1992; Frigo and Johnson, "The Design and Implementation of
FFTW3", 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect.constants import constant
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework import patterns
from hloforge.pipelines.framework.builders import create
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.kernels.fft import fft_stages, fft_steps
from hloforge.pipelines.kernels.fft.fft_stages import Table
from hloforge.pipelines.kernels.fft.fft_work import Work


@register
@dataclass(frozen=True)
class DispatchFft(MachinePass):
    """Make dispatches of transforms that ``decompose-fft`` leaves; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-fft"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.fft"}):
                if not is_static(op):
                    continue
                with ir.InsertionPoint(op), op.location:
                    patterns.replace(op, [Value(_transformed(op, self.machine))])


def _transformed(op: Any, machine: Machine) -> Any:
    """The axes one after the other; half spectra of the last one are made first and read last."""
    x, lengths = op.operands[0], [int(length) for length in op.attributes["fft_length"]]
    kind = stablehlo.FftTypeAttr(op.attributes["fft_type"]).value
    others = "IFFT" if kind in ("IFFT", "IRFFT") else "FFT"
    axes = [(x.type.rank - 1 - number, kind if number == 0 else others) for number in range(len(lengths))]
    for axis, each in reversed(axes) if kind == "IRFFT" else axes:
        if (length := lengths[axis - x.type.rank]) > 1:
            x = _axis(x, each, axis, length, machine)
    return x


def _axis(x: Any, kind: str, axis: int, length: int, machine: Machine) -> Any:
    """One axis of an array; the last one by rows, and others by columns."""
    dims, element = list(x.type.shape), x.type.element_type
    is_last = axis == len(dims) - 1
    real: Any = element.element_type if isinstance(element, ir.ComplexType) else element
    result = [*dims[:axis], length // 2 + 1 if kind == "RFFT" else length, *dims[axis + 1 :]]
    table, transforms = Table(), prod(dims[:axis])
    turned = _turned(kind, length, transforms, real.width, machine) if is_last else 1
    work = Work(
        steps=fft_steps.steps(kind, length, table, along=is_last, turned=turned > 1),
        kind=kind,
        transforms=transforms,
        height=1 if is_last else length,
        turned=turned,
        given=_floats(dims[axis:] if is_last else dims[axis + 1 :], is_real=kind == "RFFT"),
        wanted=_floats(result[axis:] if is_last else result[axis + 1 :], is_real=kind == "IRFFT"),
    )
    given = _bitcast(x, [work.transforms * work.height, work.given], real)
    made = work.dispatch(given, constant(table.numbers, str(real)).ir, machine)
    return _bitcast(made, result, real if kind == "IRFFT" else ir.ComplexType.get(real))


def _turned(kind: str, length: int, rows: int, bits: int, machine: Machine) -> int:
    """How many rows are better transformed together: where vectors along one would not be whole; 1 for each alone."""
    radices = fft_stages.radices(length)
    is_whole = radices is None or radices[0] == 8
    # They fit the second cache together, twice: a vector each of the real and the imaginary parts of a point.
    is_long = length * 2 * machine.half_line * 2 > machine.l2_bytes
    if is_whole or kind not in ("FFT", "IFFT") or is_long:
        return 1
    return min(rows, machine.half_line * 8 // bits)


def _floats(dims: Sequence[int], *, is_real: bool) -> int:
    return prod(dims) * (1 if is_real else 2)


def _bitcast(array: Any, dims: Sequence[int], element: Any) -> Any:
    """The bytes of an array, as one of other sizes and elements."""
    segments = ir.DenseI32ArrayAttr.get([1, 0, 0])
    type_ = ir.RankedTensorType.get(dims, element)
    return create("flow.tensor.bitcast", [array], [type_], operandSegmentSizes=segments).results[0]
