"""Programs of one importer for several sizes, which are the same but for sizes: what depends on which, and how.

Every way in can make the program for given sizes: an importer imports again, StableHLO's refinement evaluates dynamic
shapes. Programs for several sizes are compared here operation by operation. What differs has to be a function of the
open sizes (``sizes.py``); a program of another structure, such as loops that were unrolled, is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of, operations, string_attribute
from hloforge.dialect.program import Program, entry_function
from hloforge.dialect.traits import EFFECTS
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.pipelines.padding.sizes import Fits, Number, Point, Size, fitted_number, sized

CONSTANT = "stablehlo.constant"
ASSERTION = "shape_assertion"
# Larger constants that depend on sizes are compared, and none of their elements is a function of a size.
_MOST_NUMBERS = 64


@dataclass(eq=False)
class Member:
    """An operation of one program, as far as others may have the same.

    Attributes:
        operands: numbers of values: arguments of blocks and results, in the order of the program.
        values: the numbers of its results, and of its regions' arguments.
    """

    op: Any
    operands: tuple[int, ...]
    values: tuple[int, ...]
    regions: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass
class Listing:
    """A program as a list of its operations, inner ones before those that they are in.

    Attributes:
        values: all of them, by number.
    """

    members: list[Member] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)

    def add(self, value: Any) -> int:
        self.numbers[value] = number = len(self.values)
        self.values.append(value)
        return number


def listed(program: Program) -> Listing:
    """The operations of ``main``."""
    listing = Listing()
    entry = entry_function(program.module).operation
    _list_region(entry.regions[0], listing)
    return listing


def _list_region(region: Any, listing: Listing) -> tuple[tuple[int, ...], ...]:
    found = []
    for block in region.blocks:
        found.append(tuple(listing.add(argument) for argument in block.arguments))
        for view in block.operations:
            op = view.operation
            operands = tuple(listing.numbers[operand] for operand in op.operands)
            regions = tuple(_list_region(inner, listing) for inner in op.regions)
            results = tuple(listing.add(result) for result in op.results)
            listing.members.append(Member(op, operands, results, regions))
    return tuple(found)


def prepared(program: Program) -> Program:
    """A copy of a static program in the form in which members of a family are compared.

    Importers and folding share constants that happen to be equal, in some order: each use has its own here, before it.
    What computed sizes alone is gone.
    """
    copy = program.clone()
    normalize(copy.module)
    LowerComposites().run(copy.module)
    with in_context(copy.module):
        entry = entry_function(copy.module).operation
        _drop_assertions(entry)
        _drop_unused(entry)
        _spread_constants(entry)
    return copy


def _drop_unused(entry: Any) -> None:
    """Erase what nothing uses and has no effect."""
    while True:
        found = [op for op in operations(entry) if op.results and op.name not in EFFECTS and not _is_used(op)]
        if not found:
            return
        for op in found:
            op.erase()


def _is_used(op: Any) -> bool:
    return any(True for result in op.results for _ in result.uses)


def _drop_assertions(entry: Any) -> None:
    """Erase what asserts sizes, which hold at those that the program was made for."""
    for op in operations(entry, ["stablehlo.custom_call"]):
        if string_attribute(op, "call_target_name") == ASSERTION and not list(op.results):
            op.erase()


def _spread_constants(entry: Any) -> None:
    constants = set(operations(entry, [CONSTANT]))
    for user in operations(entry):
        if not len(user.operands):
            continue
        with ir.InsertionPoint(user):
            for number, operand in enumerate(user.operands):
                if not isinstance(operand.owner, ir.Block) and operand.owner.operation in constants:
                    user.operands[number] = operand.owner.operation.clone().operation.results[0]
    for op in constants:
        op.erase()


def _dims(value: Any) -> tuple[int, ...]:
    type_ = value.type
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else ()


@dataclass
class _Attributes:
    """Attributes of an operation that hold sizes, by name: what they are in each program."""

    texts: dict[str, str]
    numbers: dict[str, list[list[int]]] = field(default_factory=dict)
    constants: list[np.ndarray[Any, Any]] = field(default_factory=list)


class Family:
    """What is common to the programs for all sizes.

    Attributes:
        fits: the sizes that were looked at.
        dims: of each value, by its number, the sizes of its dimensions.
    """

    def __init__(self, points: Sequence[Point], program_at: Callable[[Point], Program]) -> None:
        """Compare the programs for some sizes.

        Raises:
            UnsupportedError: they differ in more than sizes; names the operation.
            Error: as of ``program_at``.
        """
        self.fits = Fits(points)
        self._first = prepared(program_at(points[0]))
        self._listing = listed(self._first)
        self._shapes: list[list[tuple[int, ...]]] = [[_dims(value)] for value in self._listing.values]
        with in_context(self._first.module):
            self._attributes = [_attributes(member.op) for member in self._listing.members]
        for point in points[1:]:
            other = prepared(program_at(point))
            with in_context(other.module):
                self._compare(listed(other))
        self.dims: list[tuple[Size, ...]] = [()] * len(self._shapes)
        self._sizes: dict[tuple[int, str], list[Size | None]] = {}
        self._numbers: dict[int, tuple[tuple[int, ...], list[Number]]] = {}
        with in_context(self._first.module):
            self._find_sizes()

    def _compare(self, other: Listing) -> None:
        mine = self._listing
        if len(other.members) != len(mine.members) or len(other.values) != len(mine.values):
            for one, two in zip(mine.members, other.members, strict=False):
                if one.op.name != two.op.name:
                    raise _refused(one.op, "another operation follows for other sizes")
            raise _refused(mine.members[-1].op, "the number of operations depends on a size")
        for attributes, one, two in zip(self._attributes, mine.members, other.members, strict=True):
            if one.op.name != two.op.name or one.operands != two.operands:
                raise _refused(one.op, "another operation, or other operands, for other sizes")
            self._compare_attributes(attributes, one.op, two.op)
        for shapes, value in zip(self._shapes, other.values, strict=True):
            dims = _dims(value)
            if len(dims) != len(shapes[0]):
                raise _refused(mine.members[0].op, "an array has more dimensions for other sizes")
            shapes.append(dims)

    def _compare_attributes(self, attributes: _Attributes, one: Any, two: Any) -> None:
        if one.name == CONSTANT:
            array = constant_of(two)
            digest = _digest(array)
            if attributes.constants or digest != attributes.texts["value"]:
                if not attributes.constants:
                    # Those that were compared before were as the first one.
                    attributes.constants = [constant_of(one).copy()] * self._count()
                attributes.constants.append(array.copy())
            return
        texts = {name: str(two.attributes[name]) for name in two.attributes}
        if texts.keys() != attributes.texts.keys():
            raise _refused(one, "other attributes for other sizes")
        for name, text in texts.items():
            if text == attributes.texts[name] and name not in attributes.numbers:
                continue
            before = attributes.numbers.setdefault(name, [_numbers_of(one, name)] * self._count())
            before.append(_numbers_of(two, name))

    def _count(self) -> int:
        """How many programs were compared before the present one."""
        return len(self._shapes[0]) if self._shapes else 1

    def _find_sizes(self) -> None:
        for number, value in enumerate(self._shapes):
            if self._listing.values and len(set(value)) == 1:
                self.dims[number] = tuple(map(sized, value[0]))
        entry = self._listing.values
        arguments = [n for n, value in enumerate(entry) if isinstance(value.owner, ir.Block)]
        for number in arguments:
            self.dims[number] = self._fitted(number, None)
        for place, member in enumerate(self._listing.members):
            attributes = self._attributes[place]
            for name, rows in attributes.numbers.items():
                # A rule says whether it has to know what a number is.
                self._sizes[place, name] = [self.fits.of(column) for column in zip(*rows, strict=True)]
            if attributes.constants:
                self._learn_constant(place, member, attributes.constants)
            for size in _derived(member.op, self, place):
                self.fits.learn(size)
            for number in member.values:
                self.dims[number] = self._fitted(number, member.op)

    def _fitted(self, number: int, op: Any) -> tuple[Size, ...]:
        return tuple(self._size(op, column) for column in zip(*self._shapes[number], strict=True))

    def _size(self, op: Any, values: Sequence[int]) -> Size:
        found = self.fits.of(values)
        if found is None:
            raise _refused(op or self._listing.members[0].op, f"a size is {_listed(values)} for {self._points()}")
        return found

    def _points(self) -> str:
        return ", ".join(str(point[0] if len(point) == 1 else point) for point in self.fits.points)

    def _learn_constant(self, place: int, member: Member, arrays: list[np.ndarray[Any, Any]]) -> None:
        if all(_is_splat(array) for array in arrays):
            number = self._number(member.op, [array.reshape(-1)[0] for array in arrays])
            if number.size.number is None:
                self._numbers[place] = (), [number]
            return
        if len({array.shape for array in arrays}) == 1:
            if arrays[0].size > _MOST_NUMBERS:
                raise _refused(member.op, "the elements of a constant depend on a size")
            columns = zip(*(array.reshape(-1) for array in arrays), strict=True)
            self._numbers[place] = arrays[0].shape, [self._number(member.op, column) for column in columns]
            return
        largest = max(arrays, key=lambda array: array.size)
        for array in arrays:
            corner = tuple(slice(0, size) for size in array.shape)
            whole = largest[corner]
            if whole.shape != array.shape or whole.tobytes() != np.ascontiguousarray(array).tobytes():
                raise _refused(member.op, "the elements of a constant depend on a size")

    def _number(self, op: Any, values: Sequence[Any]) -> Number:
        array = np.array(values)
        if all(value.tobytes() == array[0].tobytes() for value in array):
            return Number("size", sized(0))
        found = fitted_number(self.fits, values)
        if found is None:
            raise _refused(op, f"a constant is {_listed(values)} for {self._points()}")
        return found

    def sizes(self, place: int, name: str) -> list[Size | None] | None:
        """The numbers of an attribute of the operation at a place; None if they do not depend on sizes.

        A number that depends on sizes in no known form is None.
        """
        return self._sizes.get((place, name))

    def rows(self, place: int, name: str) -> list[list[int]]:
        """The numbers of such an attribute at each of the points."""
        return self._attributes[place].numbers[name]

    def numbers(self, place: int) -> tuple[tuple[int, ...], list[Number]] | None:
        """The shape and elements of a constant whose elements depend on sizes; the shape of a splat is empty."""
        return self._numbers.get(place)

    def number_of(self, value: Any) -> int:
        """The number of a value of the first program."""
        return self._listing.numbers[value]

    def is_splat(self, place: int) -> bool:
        """Whether a constant is one number for all sizes."""
        attributes = self._attributes[place]
        return not attributes.constants and attributes.texts["value"].startswith("splat")

    def varies(self, place: int) -> list[str]:
        """The attributes of an operation that depend on sizes."""
        return list(self._attributes[place].numbers)

    def agrees(self, listing: Listing, point: Point) -> None:
        """Check that a further program, for other sizes, is as the family says. Raises UnsupportedError."""
        mine = self._listing
        if len(listing.members) != len(mine.members) or len(listing.values) != len(mine.values):
            raise _refused(mine.members[-1].op, f"the number of operations is another one for {point}")
        for value, dims in zip(listing.values, self.dims, strict=True):
            if _dims(value) != tuple(size.at(point) for size in dims):
                raise _refused(mine.members[0].op, f"the sizes for {point} are others than {list(map(str, dims))}")
        for place, (one, two) in enumerate(zip(mine.members, listing.members, strict=True)):
            if one.op.name != two.op.name or one.operands != two.operands:
                raise _refused(one.op, f"another operation for {point}")
            for name in self.varies(place):
                found = zip(_numbers_of(two.op, name), self._sizes[place, name], strict=True)
                if any(size is not None and size.at(point) != number for number, size in found):
                    raise _refused(one.op, f"its {name} is another one for {point}")


def _attributes(op: Any) -> _Attributes:
    if op.name == CONSTANT:
        return _Attributes({"value": _digest(constant_of(op))})
    return _Attributes({name: str(op.attributes[name]) for name in op.attributes})


def _digest(array: np.ndarray[Any, Any]) -> str:
    if _is_splat(array):
        # Its shape is that of its type, which is compared by itself.
        return f"splat {array.reshape(-1)[:1].tobytes().hex()}"
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return f"{array.shape} {hashlib.blake2b(data.data).hexdigest()}"


def _is_splat(array: np.ndarray[Any, Any]) -> bool:
    if array.size <= 1:
        return True
    if not any(array.strides):
        return True
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return all(bool((part == flat[0]).all()) for part in (flat[:64], flat[64:]))


def _numbers_of(op: Any, name: str) -> list[int]:
    attribute = op.attributes[name]
    try:
        if isinstance(attribute, ir.DenseIntElementsAttr):
            return [int(number) for number in np.asarray(attribute).reshape(-1)]
        if isinstance(attribute, ir.IntegerAttr):
            return [int(attribute.value)]
        return [int(number) for number in attribute]
    except (TypeError, ValueError):
        raise _refused(op, f"its {name} depends on a size") from None


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(str(value) for value in values)


def _refused(op: Any, why: str) -> UnsupportedError:
    return UnsupportedError(f"padding has no rule: {why}", op=op.name, location=location_of(op))


def _derived(op: Any, family: Family, place: int) -> list[Size]:
    """The sizes of windows, which are quotients that no fit would find."""
    from hloforge.pipelines.padding.windows import derived_sizes

    return derived_sizes(op, family, place)
