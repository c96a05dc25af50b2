"""Fourier transforms."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.tensors import fill
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


@operator("RFFT2D")
def real_fourier(node: Node) -> Value:
    """Over the last two axes, cut or filled up with zeros to given lengths."""
    x, lengths = node.value(0), node.integers(1)
    room = [lengths[d] - x.dims[x.rank - 2 + d] for d in range(2)]
    x = ops.pad(x, fill([], 0, x.element_type), [(0, 0, 0)] * (x.rank - 2) + [(0, extra, 0) for extra in room])
    if lengths[0] == 1:
        return ops.fft(x, "RFFT", [lengths[1]])
    return ops.fft(x, "RFFT", lengths)
