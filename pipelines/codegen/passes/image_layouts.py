"""``legalize-image-layouts``: images whose features are the last dimension, through all of a program that gains by it.

Before::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
      : (tensor<1x3x224x224xf32>, tensor<64x3x7x7xf32>) -> tensor<1x64x112x112xf32>
    %m = stablehlo.maximum %r, %zeros : tensor<1x64x112x112xf32>
    %s = stablehlo.convolution(%m, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1] ...

After: an image of few features is read as it lies, and what is known is exchanged here::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, 0, 1, f]
      : (tensor<1x3x224x224xf32>, tensor<7x7x3x64xf32>) -> tensor<1x112x112x64xf32>
    %m = stablehlo.maximum %r, %zeros : tensor<1x112x112x64xf32>
    %s = stablehlo.convolution(%m, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] ...

Vectors of features are whole and need no gaps between rows, and a window's pixels lie next to each other. So are lines
and volumes, of one and three dimensions of space. Images that
operations tie together are one part, which is exchanged if its convolutions gain more time than copies at its borders
take. Borders are operations that name dimensions otherwise: reshapes, products, loops, the program's own arguments and
results. Source: oneDNN, "Understanding Memory Formats".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.analysis.memory_elements import element_in_memory
from hloforge.pipelines.codegen.passes.image_operations import (
    Reorder,
    first,
    images_of,
    is_made_known,
    is_turned,
    last,
    moves_nothing,
    reordered,
)
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import Pass, register

_CONVOLUTION, _TRANSPOSE = "stablehlo.convolution", "stablehlo.transpose"
# What features-last saves of each multiplication and addition, in nanoseconds of a core with vectors of 64 bytes: of
# windows, of single pixels, of a feature alone. Measured beside each other with the weights known.
_WINDOWS, _PIXELS, _DEPTHWISE = 0.0025, 0.005, 0.02
# The same of images with gaps between their pixels, whose phases are windows of few pixels each.
_GAPS = 0.005
# The same where features of a group fill no vector, and of groups: features-first is faster.
_NARROW, _GROUPED = -0.008, -0.02
# The same of bf16 beside f32, because features of pixels are multiplied in pairs, or by registers for tiles.
_PAIRS = 0.004
# Output features that fill vectors, and those from which on windows gain as well.
_VECTOR, _WHOLE = 16, 48
# A copy of an element with its dimensions in another order, and an element of weights that is exchanged in each call.
_COPIED, _PACKED = 0.4, 0.2


def _saved(op: ir.Operation) -> float:
    """Nanoseconds that a convolution gains by features-last."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel, result = Value(op.operands[1]), Value(op.results[0])
    window = math.prod(kernel.dims[d] for d in numbers.kernel_spatial_dimensions)
    inputs = kernel.dims[numbers.kernel_input_feature_dimension]
    groups = integer(op, "feature_group_count")
    outputs = result.dims[1] // groups
    terms = result.shape.element_count * window * inputs / math.prod(integers(op, "lhs_dilation") or [1])
    packed = 0 if is_made_known(kernel) else kernel.shape.element_count * _PACKED
    is_of_bf16 = all(element_in_memory(factor) == "bf16" for factor in op.operands)
    pairs = _PAIRS if inputs > 1 and is_of_bf16 else 0.0
    if groups > 1:
        if inputs == outputs == 1:
            return terms * _DEPTHWISE
        if pairs and outputs >= _VECTOR:
            return terms * pairs - packed
        return terms * (_GROUPED if outputs < _WHOLE else 0)
    if outputs < _VECTOR:
        # Pairs that fill half of a vector take as long as vectors of pixels, and registers for tiles a fifth: that is
        # worth no copies of images, but these keep the order that they have.
        is_half = pairs and outputs >= _VECTOR // 2 and inputs % (2 * _VECTOR) == 0
        return terms * (0 if is_half else _NARROW) - packed
    if window == 1:
        return terms * (_PIXELS + pairs) - packed
    if any(step > 1 for step in integers(op, "lhs_dilation")):
        return terms * (_GAPS + pairs) - packed
    return terms * ((_WINDOWS if outputs >= _WHOLE else 0) + pairs) - packed


@dataclass
class _Part:
    """Images that have one order of their dimensions, and the operations that tie them."""

    images: list[SSAValue] = field(default_factory=list)
    ops: list[ir.Operation] = field(default_factory=list)

    @property
    def gains(self) -> bool:
        """Whether convolutions save more time than copies at the borders take."""
        convolutions = [op for op in self.ops if op.name == _CONVOLUTION]
        if not convolutions or any(not _is_taken(op) for op in convolutions):
            return False
        return sum(map(_saved, convolutions)) > sum(self._border(image) for image in self.images)

    def _border(self, image: SSAValue) -> float:
        """Nanoseconds of copies of an image that somebody else makes or reads."""
        dims, inside = Value(image).dims, set(self.ops)
        if moves_nothing(dims):
            return 0
        copy, total = math.prod(dims) * _COPIED, 0.0
        made = defining_op(image)
        if made not in inside:
            total += 0 if made is not None and is_made_known(Value(image)) else _turn(made, first(len(dims))) * copy
        readers = dict.fromkeys(use.owner.operation for use in image.uses)
        outside = [op for op in readers if made in inside and (op not in inside or image not in images_of(op))]
        others = [op for op in outside if _turn(op, last(len(dims))) > 0]
        return total + copy * bool(others) - copy * (len(outside) - len(others))


def _turn(op: ir.Operation | None, order: tuple[int, ...]) -> int:
    """-1 for a transposition that the other order undoes, else 1."""
    return -1 if is_turned(op, order) else 1


def _is_taken(op: ir.Operation) -> bool:
    result = Value(op.results[0])
    return result.element_type.name == "f32" and is_static(op) and not multiplies_nothing(op)


def _parts(block: ir.Block) -> Iterator[_Part]:
    """The images of a block, by what ties them together."""
    above: dict[SSAValue, SSAValue] = {}

    def top(value: SSAValue) -> SSAValue:
        while (parent := above.setdefault(value, value)) != value:
            above[value] = value = above[parent]
        return value

    tied = []
    for op in (one.operation for one in block.operations):
        # What is known has either order.
        images = [value for value in images_of(op) if not is_made_known(Value(value))]
        if images:
            tied.append((op, images))
            for image in images[1:]:
                above[top(image)] = top(images[0])
    parts: dict[SSAValue, _Part] = {}
    for op, images in tied:
        parts.setdefault(top(images[0]), _Part()).ops.append(op)
    for image in list(above):
        parts[top(image)].images.append(image)
    yield from parts.values()


def _exchange(part: _Part) -> list[ir.Operation]:
    """Write the part's operations for features-last, with copies at its borders. Returns transpositions of these."""
    readers: list[ir.Operation] = []
    exchanged: dict[SSAValue, Value] = {}

    def image(value: SSAValue) -> Value:
        if value not in exchanged:
            exchanged[value] = reordered(Value(value), last(Value(value).rank))
        return exchanged[value]

    def plain(value: SSAValue) -> Value:
        if value in exchanged and defining_op(value) in inside:
            return reordered(exchanged[value], first(exchanged[value].rank))
        return Value(value)

    inside = set(part.ops)
    for op in part.ops:
        result = op.results[0]
        with ir.InsertionPoint(op), op.location:
            made = Reorder(image, plain).write(op)
            if result not in images_of(op):
                result.replace_all_uses_with(made.ir)
                continue
            exchanged[result] = made
            outside = [use.owner.operation for use in result.uses if use.owner.operation not in inside]
            if outside:
                back = reordered(made, first(made.rank))
                result.replace_all_uses_except(back.ir, part.ops)
                readers += [op for op in outside if op.name == _TRANSPOSE]
    for op in reversed(part.ops):
        op.erase()
    return readers


def _read_through(reader: ir.Operation) -> None:
    """A transposition of a transposition is one, or none."""
    with ir.InsertionPoint(reader), reader.location:
        found = reordered(Value(reader.operands[0]), integers(reader, "permutation"))
    reader.results[0].replace_all_uses_with(found.ir)
    reader.erase()


@register
@dataclass(frozen=True)
class LegalizeImageLayouts(Pass):
    """Let the features of images be their last dimension where that is faster."""

    name: ClassVar[str] = "legalize-image-layouts"
    requires: ClassVar[Facts] = NORMALIZED
    needs: ClassVar[frozenset[str]] = frozenset({_CONVOLUTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            blocks = dict.fromkeys(op.block for op in operations(module, {_CONVOLUTION}))
            parts = [part for block in blocks for part in _parts(block) if part.gains]
            for reader in dict.fromkeys(reader for part in parts for reader in _exchange(part)):
                _read_through(reader)
