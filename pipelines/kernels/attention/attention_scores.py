"""The scores of attention: elementwise arithmetic between the product of queries and keys and the softmax.

A score is computed where it is needed, for some queries side by side and one key: its product is given, positions are
known, and arrays of weights or masks are read, with the queries along their last dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, arith, ir
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import full_vector, index, read_vector
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import (
    NUMBERS,
    constant_number,
    filling,
    is_elementwise,
    number_type,
    on_numbers,
)

# Expressions of more operations are left to IREE, and those that read more arrays.
_MOST_OPERATIONS, _MOST_ARRAYS = 32, 8
# The element types of these arrays.
_READ = frozenset(("f32", "f64", "s32", "s64", "pred"))


@dataclass(frozen=True)
class Place:
    """Where scores are: a key, and ``length`` queries from one on.

    Attributes:
        batch: an ``index`` along each dimension of the batch.
        query, key: an ``index`` each.
    """

    batch: Sequence[Any]
    query: Any
    key: Any
    length: int


@dataclass
class Scores:
    """Scores ``[..., queries, keys]``, computed from a product of the same dimensions.

    Attributes:
        root: the array.
        product: what it is computed from.
        arrays: what else it is computed from, and the dimensions of the scores that those of each array are.
    """

    root: Any
    product: Any
    arrays: dict[Any, list[int]] = field(default_factory=dict)
    _operations: int = 0

    @classmethod
    def of(cls, root: Any) -> Scores | None:
        """The scores in an array; None if they are not computed from one product, number by number."""
        products = _products_below(root)
        found = cls(root, products[0]) if len(products) == 1 else None
        return found if found is not None and found._add(root) else None

    @property
    def rank(self) -> int:
        return len(self.root.type.shape)

    def _add(self, value: SSAValue) -> bool:
        """Whether a value can be computed; finds the arrays that it is computed from."""
        self._operations += 1
        if value == self.product:
            return True
        if self._operations > _MOST_OPERATIONS:
            return False
        op = defining_op(value)
        if (op is not None and op.name == "stablehlo.iota") or filling(value) is not None:
            return Value(value).element_type.name in NUMBERS
        if op is not None and is_elementwise(op):
            return all(map(self._add, op.operands))
        if _products_below(value):
            return False
        source, dimensions = _spread(value)
        self.arrays[source] = dimensions
        return Value(source).element_type.name in _READ and len(self.arrays) <= _MOST_ARRAYS

    def operands(self) -> list[Any]:
        """The arrays in memory: the dimension of the queries last, and flags as bytes."""
        return [self._stored(array, dimensions).ir for array, dimensions in self.arrays.items()]

    def _stored(self, array: SSAValue, dimensions: list[int]) -> Value:
        value = Value(array)
        value = ops.reshape(value, [size for size in value.dims if size > 1])
        value = ops.transpose(value, sorted(range(value.rank), key=lambda d: dimensions[d] == self.rank - 2))
        if value.element_type.name == "pred":
            value = ops.convert_element_type(value, "s8")
        return value if value.rank else ops.reshape(value, [1])

    def text(self) -> str:
        """What is computed: equal for scores that equal code computes."""
        arrays = {array: f"{number} {at} {array.type}" for number, (array, at) in enumerate(self.arrays.items())}

        def of(value: Any) -> str:
            op = defining_op(value)
            if value == self.product:
                return "product"
            if (constant := filling(value)) is not None:
                return str(constant.attributes["value"])
            if op is not None and (op.name == "stablehlo.iota" or is_elementwise(op)):
                settings = [f"{name} {op.attributes[name]}" for name in op.attributes]
                return f"{op.name} {settings} {value.type} ({', '.join(map(of, op.operands))})"
            return arrays[_spread(value)[0]]

        return of(self.root)

    def evaluate(self, product: SSAValue, memory: Sequence[SSAValue], place: Place) -> Any:
        """The vector of scores at a place, from that of the product and the contents of the ``operands``."""
        made = {self.product: product}
        contents = dict(zip(self.arrays, memory, strict=True))

        def vector(value: SSAValue) -> Any:
            if value not in made:
                made[value] = compute(value)
            return made[value]

        def compute(value: SSAValue) -> Any:
            op = defining_op(value)
            if op is not None and op.name == "stablehlo.iota":
                return self._positions(op, place)
            if (constant := filling(value)) is not None:
                return constant_number(constant, place.length)
            if op is not None and is_elementwise(op):
                return on_numbers(op, [vector(operand) for operand in op.operands])
            source, dimensions = _spread(value)
            return self._read(source, contents[source], dimensions, place)

        return vector(self.root)

    def _positions(self, op: ir.Operation, place: Place) -> Any:
        dimension = integer(op, "iota_dimension")
        at = [*place.batch, place.query, place.key][dimension]
        element = number_type(op.results[0])
        whole = ir.IntegerType.get_signless(element.width)
        numbers = full_vector(code.cast(arith.index_cast, at, whole), place.length)
        if dimension == self.rank - 2:
            numbers = code.combine(arith.addi, numbers, code.counted(place.length, whole))
        if isinstance(element, ir.IntegerType):
            return numbers
        return code.cast(arith.sitofp, numbers, ir.VectorType.get([place.length], element))

    def _read(self, array: SSAValue, memory: SSAValue, dimensions: Sequence[int], place: Place) -> Any:
        coordinates = [*place.batch, place.query, place.key]
        queries = self.rank - 2
        at = [coordinates[d] for d in dimensions if d != queries] or ([] if queries in dimensions else [index(0)])
        if queries in dimensions:
            found = read_vector(memory, [*at, place.query], place.length)
        else:
            found = full_vector(code.read(memory, *at), place.length)
        if Value(array).element_type.name != "pred":
            return found
        return code.cast(arith.trunci, found, ir.VectorType.get([place.length], ir.IntegerType.get_signless(1)))


def _products_below(value: SSAValue) -> list[SSAValue]:
    """The products of matrices that a value is computed from by elementwise operations."""
    found: dict[Any, None] = {}
    seen: set[Any] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value in seen or isinstance(value.owner, ir.Block) or len(seen) > _MOST_OPERATIONS:
            continue
        seen.add(value)
        if value.owner.name == "stablehlo.dot_general":
            found[value] = None
        elif is_elementwise(value.owner):
            waiting += value.owner.operands
    return list(found)


def _spread(value: SSAValue) -> tuple[Any, list[int]]:
    """The array that a value repeats, and the dimensions of the value that its own of more than one element are."""
    dimensions = list(range(len(value.type.shape)))
    if spread := defining_op(value, "stablehlo.broadcast_in_dim"):
        dimensions = integers(spread, "broadcast_dimensions")
        value = spread.operands[0]
    return value, [at for at, size in zip(dimensions, value.type.shape, strict=True) if int(size) > 1]
