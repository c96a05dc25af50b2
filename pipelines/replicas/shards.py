"""How arrays lie on devices: into how many parts each dimension is cut, and which device has which part.

::

    rows = Sharding((8, 6), (2, 1), (0, 0, 1, 1))     # four devices in two pairs; each pair has half of the rows
    rows.part(x, 2)                                   # x[4:8]
    rows.whole([a, a, b, b])                          # a above b

Parts are numbered row by row. Where a dimension is no multiple of its parts, the last ones are filled up with zeros, as
XLA's partitioner expects, and what it leaves there is dropped. Source: XLA ``HloSharding`` (tile assignment).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hloforge.dialect.abi import physical_shape
from hloforge.dialect.marks import SHARDED
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import string_attribute
from hloforge.dialect.program import Alias, Signature
from hloforge.dialect.shapes import Shape


@dataclass(frozen=True)
class Sharding:
    """How one array lies on devices.

    Attributes:
        sizes: of the whole array.
        tiles: how many parts each dimension has.
        places: the number of each device's part.
        terms: of an unreduced array: each part is a sum, of which each device has the term of this number. Empty if no
            part is.
    """

    sizes: tuple[int, ...]
    tiles: tuple[int, ...]
    places: tuple[int, ...]
    terms: tuple[int, ...] = ()

    @property
    def local(self) -> tuple[int, ...]:
        """The sizes of a part."""
        return tuple(-(-size // count) for size, count in zip(self.sizes, self.tiles, strict=True))

    def part(self, array: np.ndarray[Any, Any], device: int) -> np.ndarray[Any, Any]:
        """What a device has of an array: a view, unless zeros follow the array's end."""
        if self.terms and self.terms[device]:  # the first term is the array, the others are nothing
            return np.zeros(self.local, array.dtype)
        shard: np.ndarray[Any, Any] = array[self._slices(self.places[device])]
        if shard.shape == self.local:
            return shard
        filled = np.zeros(self.local, array.dtype)
        filled[tuple(map(slice, shard.shape))] = shard
        return filled

    def whole(self, parts: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """The array of which each device has a part; of devices with one part, or one term of it, the first counts."""
        array = np.empty(self.sizes, parts[0].dtype)
        terms = self.terms or (0,) * len(parts)
        last_first = zip(reversed(terms), reversed(self.places), reversed(parts), strict=True)
        firsts = {(term, place): part for term, place, part in last_first}
        for (term, place), part in sorted(firsts.items(), key=lambda one: one[0]):
            target = array[self._slices(place)]
            own = part[tuple(map(slice, target.shape))]
            target[...] = target + own if term else own
        return array

    def _slices(self, place: int) -> tuple[Any, ...]:
        """Where a part lies in the array; with an ellipsis, so that a scalar's is a view as well."""
        at = np.unravel_index(place, self.tiles) if self.tiles else ()
        starts = [int(index) * size for index, size in zip(at, self.local, strict=True)]
        return *(slice(start, start + size) for start, size in zip(starts, self.local, strict=True)), ...


@dataclass(frozen=True)
class Sharded:
    """How the arguments and results of a partitioned program lie on its devices.

    Attributes:
        parameters, results: of the leaves of the signature, in order.
    """

    parameters: tuple[Sharding, ...]
    results: tuple[Sharding, ...]

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return len((*self.parameters, *self.results)[0].places)

    def local(self, signature: Signature) -> Signature:
        """The signature of one device's program, from that of the whole: parts lie as the whole arrays did.

        What is donated stays so where the part of the result has the size of the argument's; else another result that
        has may take its place.
        """
        made = _resized(signature, (one.local for one in self.parameters), (one.local for one in self.results))
        return replace(made, aliases=_fitting(signature.aliases, made))

    def whole(self, signature: Signature) -> Signature:
        """The signature of a call with whole arrays, from that of a program of parts; donation ends."""
        return _resized(signature, (one.sizes for one in self.parameters), (one.sizes for one in self.results))

    def attach(self, module: ir.Module) -> None:
        """Write it onto a module."""
        with in_context(module):
            module.operation.attributes[SHARDED] = ir.StringAttr.get(json.dumps(self.to_json()))

    @classmethod
    def of(cls, module: Any) -> Sharded | None:
        """What a module says; None if its program is not partitioned."""
        text = string_attribute(module.operation, SHARDED)
        return cls.from_json(json.loads(text)) if text else None

    def to_json(self) -> Any:
        return [[_fields(one) for one in leaves] for leaves in (self.parameters, self.results)]

    @classmethod
    def from_json(cls, fields: Any) -> Sharded:
        return cls(*(tuple(Sharding(*map(tuple, one)) for one in leaves) for leaves in fields))


def _fields(one: Sharding) -> list[tuple[int, ...]]:
    return [one.sizes, one.tiles, one.places, *([one.terms] if one.terms else [])]


def _resized(
    signature: Signature, parameters: Iterator[tuple[int, ...]], results: Iterator[tuple[int, ...]]
) -> Signature:
    made = tuple(replace(one, shape=_with_sizes(one.shape, parameters)) for one in signature.parameters)
    return Signature(made, _with_sizes(signature.result, results))


def _with_sizes(shape: Shape, sizes: Iterator[tuple[int, ...]]) -> Shape:
    if shape.elements is not None:
        return Shape.tuple_of(*(_with_sizes(element, sizes) for element in shape.elements))
    if shape.is_token:
        next(sizes)
        return shape
    layout = shape.layout if shape.layout is not None and shape.layout.is_plain else None
    return Shape(shape.element, next(sizes), layout=layout)


def _fitting(aliases: tuple[Alias, ...], signature: Signature) -> tuple[Alias, ...]:
    """Which parameters and results, all of them arrays, share a buffer: of one shape, else of one size in bytes; those
    that say so already before others."""
    results: dict[tuple[int, ...], Shape] = {(): signature.result}
    if signature.result.elements is not None:
        results = {(number,): shape for number, shape in enumerate(signature.result.elements)}
    left = {alias: signature.parameters[alias.parameter_number].shape for alias in aliases if not alias.parameter_index}
    kept: list[Alias] = []
    for fits in (_same_shape, _same_size):
        for own in (True, False):
            for alias, shape in list(left.items()):
                free = [place for place, result in results.items() if fits(result, shape)]
                place = next((place for place in free if place == alias.output_index or not own), None)
                if place is not None:
                    del left[alias], results[place]
                    kept.append(replace(alias, output_index=place))
    return tuple(kept)


def _same_shape(one: Shape, other: Shape) -> bool:
    return one == other


def _same_size(one: Shape, other: Shape) -> bool:
    return one.is_array and other.is_array and physical_shape(one).byte_size == physical_shape(other).byte_size
