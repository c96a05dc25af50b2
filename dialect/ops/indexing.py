"""Gather and scatter: slices of an array at indices known at run time.

Source: XLA "Gather", "Scatter"; StableHLO specification "gather", "scatter".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

from hloforge.dialect import rules
from hloforge.dialect.computations import Computation, check_closed, named, trace_region
from hloforge.dialect.emission import create, emit, flag, i64s, mlir_type_of, one_or_tuple, results_of
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.op import ARRAY, op
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value


@dataclass(frozen=True)
class GatherDimensionNumbers:
    """How the dimensions of an array, of positions in it and of the slices taken there belong together.

    Attributes:
        offset_dims: of the result, those that run through a slice, ascending; its others run through the positions.
        collapsed_slice_dims: of the operand, those that the result lacks, ascending; slices have size 1 there.
        start_index_map: of the operand, the dimension that each number of a position is an index of.
        index_vector_dim: of the places, that along which the numbers of one place are; their rank, if every place is
            one number.
        operand_batching_dims: of the operand, those that the result lacks because the positions run through them too.
        start_indices_batching_dims: of the places, the dimensions that do so, in the same order.
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    index_vector_dim: int
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()

    def check(self, operand: Shape, start_indices: Shape) -> None:
        """Raises OperationError, if they do not fit the shapes or each other."""
        _check_operand(
            operand,
            ("offset_dims", self.offset_dims),
            ("collapsed_slice_dims", self.collapsed_slice_dims),
            ("operand_batching_dims", self.operand_batching_dims),
            ("start_index_map", self.start_index_map),
        )
        _check_indices(
            operand,
            ("start_indices", start_indices),
            self.index_vector_dim,
            ("start_index_map", self.start_index_map),
            ("operand_batching_dims", self.operand_batching_dims),
            ("start_indices_batching_dims", self.start_indices_batching_dims),
        )
        rank = len(self.offset_dims) + len(_places(start_indices, self.index_vector_dim))
        _ascending("offset_dims", self.offset_dims, rank, "the result")

    def attribute(self) -> Any:
        """``#stablehlo.gather<…>``."""
        return stablehlo.GatherDimensionNumbers.get(
            offset_dims=list(self.offset_dims),
            collapsed_slice_dims=list(self.collapsed_slice_dims),
            operand_batching_dims=list(self.operand_batching_dims),
            start_indices_batching_dims=list(self.start_indices_batching_dims),
            start_index_map=list(self.start_index_map),
            index_vector_dim=self.index_vector_dim,
        )


@dataclass(frozen=True)
class ScatterDimensionNumbers:
    """How the dimensions of arrays, of positions in them and of the updates for these belong together.

    Attributes:
        update_window_dims: of the updates, those that run through a slice, ascending; the others run through the
            positions.
        inserted_window_dims: of the operand, those that the updates lack, ascending; slices have size 1 there.
        scatter_dims_to_operand_dims: of the operand, the dimension that each number of a position is an index of.
        index_vector_dim: of the places, that along which the numbers of one place are; their rank, if every place is
            one number.
        input_batching_dims: of the operand, those that the updates lack because the positions run through them too.
        scatter_indices_batching_dims: of the places, the dimensions that do so, in the same order.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    index_vector_dim: int
    input_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()

    def check(self, operand: Shape, scatter_indices: Shape, updates: Shape) -> None:
        """Raises OperationError, if they do not fit the shapes or each other."""
        _check_operand(
            operand,
            ("update_window_dims", self.update_window_dims),
            ("inserted_window_dims", self.inserted_window_dims),
            ("input_batching_dims", self.input_batching_dims),
            ("scatter_dims_to_operand_dims", self.scatter_dims_to_operand_dims),
        )
        _check_indices(
            operand,
            ("scatter_indices", scatter_indices),
            self.index_vector_dim,
            ("scatter_dims_to_operand_dims", self.scatter_dims_to_operand_dims),
            ("input_batching_dims", self.input_batching_dims),
            ("scatter_indices_batching_dims", self.scatter_indices_batching_dims),
        )
        self._check_updates(operand, scatter_indices, updates)

    def _check_updates(self, operand: Shape, scatter_indices: Shape, updates: Shape) -> None:
        places = _places(scatter_indices, self.index_vector_dim)
        rank = len(self.update_window_dims) + len(places)
        if updates.rank != rank:
            raise OperationError(
                f"updates of {updates} must have {rank} dimensions: {len(self.update_window_dims)} of a slice, and "
                f"{len(places)} of the index vectors in {scatter_indices}"
            )
        _ascending("update_window_dims", self.update_window_dims, rank, "the updates")
        for d, bound in zip(self.update_window_dims, _kept(operand, self._lacking()), strict=True):
            if updates.dimensions[d] > operand.dimensions[bound] >= 0:
                raise OperationError(
                    f"slices of {updates.dimensions[d]} in dimension {d} of the updates {updates} exceed dimension "
                    f"{bound} of {operand}"
                )
        over_places = [d for d in range(rank) if d not in self.update_window_dims]
        for d, place in zip(over_places, places, strict=True):
            _same_size(("updates", updates, d), ("scatter_indices", scatter_indices, place))

    def _lacking(self) -> set[int]:
        return {*self.inserted_window_dims, *self.input_batching_dims}

    def attribute(self) -> Any:
        """``#stablehlo.scatter<…>``."""
        return stablehlo.ScatterDimensionNumbers.get(
            update_window_dims=list(self.update_window_dims),
            inserted_window_dims=list(self.inserted_window_dims),
            input_batching_dims=list(self.input_batching_dims),
            scatter_indices_batching_dims=list(self.scatter_indices_batching_dims),
            scattered_dims_to_operand_dims=list(self.scatter_dims_to_operand_dims),
            index_vector_dim=self.index_vector_dim,
        )


class GatherFields(TypedDict, total=False):
    """The fields of ``GatherDimensionNumbers``."""

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    index_vector_dim: int
    operand_batching_dims: Sequence[int]
    start_indices_batching_dims: Sequence[int]


class ScatterFields(TypedDict, total=False):
    """The fields of ``ScatterDimensionNumbers``."""

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    index_vector_dim: int
    input_batching_dims: Sequence[int]
    scatter_indices_batching_dims: Sequence[int]


# A list of dimension numbers with its name, for messages.
_Named = tuple[str, Sequence[int]]


def _check_operand(operand: Shape, window: _Named, removed: _Named, batching: _Named, mapped: _Named) -> None:
    """Every dimension of the operand is in a slice, removed or a batch; and the mapped ones are no batch."""
    for name, numbers in (removed, batching):
        _ascending(name, numbers, operand.rank, "the operand")
    rank = sum(len(numbers) for _, numbers in (window, removed, batching))
    if rank != operand.rank:
        raise OperationError(
            f"{window[0]}, {removed[0]} and {batching[0]} must together be as many as the {operand.rank} dimensions of "
            f"{operand}, not {rank}"
        )
    _distinct(mapped[0], mapped[1], operand.rank, "the operand")
    for name, numbers in (removed, mapped):
        shared = set(numbers) & set(batching[1])
        if shared:
            raise OperationError(f"dimension {min(shared)} is in both {name} and {batching[0]}")


def _check_indices(
    operand: Shape,
    indices: tuple[str, Shape],
    index_vector_dim: int,
    mapped: _Named,
    batching: _Named,
    indices_batching: _Named,
) -> None:
    """The numbers of a position are as many as the mapped dimensions, and batches have equal sizes."""
    name, shape = indices
    if shape.element is None or not shape.element.is_integer:
        raise OperationError(f"{name} must be integers, not {shape}")
    if not 0 <= index_vector_dim <= shape.rank:
        raise OperationError(f"index_vector_dim {index_vector_dim} is out of range for {name} of {shape}")
    size = 1 if index_vector_dim == shape.rank else shape.dimensions[index_vector_dim]
    if size >= 0 and size != len(mapped[1]):
        raise OperationError(
            f"{mapped[0]} {list(mapped[1])} must have as many entries as an index vector, which is "
            f"{size} in {shape} along dimension {index_vector_dim}"
        )
    _distinct(indices_batching[0], indices_batching[1], shape.rank, name)
    if index_vector_dim in indices_batching[1]:
        raise OperationError(
            f"{indices_batching[0]} {list(indices_batching[1])} has index_vector_dim {index_vector_dim}"
        )
    if len(batching[1]) != len(indices_batching[1]):
        raise OperationError(f"{batching[0]} and {indices_batching[0]} must have equal lengths")
    for mine, theirs in zip(batching[1], indices_batching[1], strict=True):
        _same_size(("operand", operand, mine), (name, shape, theirs))


def _ascending(name: str, numbers: Sequence[int], rank: int, of: str) -> None:
    _distinct(name, numbers, rank, of)
    if list(numbers) != sorted(numbers):
        raise OperationError(f"{name} {list(numbers)} must ascend")


def _distinct(name: str, numbers: Sequence[int], rank: int, of: str) -> None:
    for number in numbers:
        if not 0 <= number < rank:
            raise OperationError(f"{name} {list(numbers)} must be dimensions of {of}, from 0 to {rank - 1}")
    if len(set(numbers)) != len(numbers):
        raise OperationError(f"{name} {list(numbers)} names a dimension twice")


def _same_size(one: tuple[str, Shape, int], other: tuple[str, Shape, int]) -> None:
    sizes = [shape.dimensions[number] for _, shape, number in (one, other)]
    if sizes[0] != sizes[1] and min(sizes) >= 0:
        raise OperationError(
            f"dimension {one[2]} of {one[0]} {one[1]} and dimension {other[2]} of {other[0]} {other[1]} must have "
            "equal sizes"
        )


def _places(indices: Shape, index_vector_dim: int) -> list[int]:
    """The dimensions that run through the positions."""
    return [d for d in range(indices.rank) if d != index_vector_dim]


def _kept(operand: Shape, lacking: set[int]) -> list[int]:
    return [d for d in range(operand.rank) if d not in lacking]


@op("Gather", emits="stablehlo.gather", on=ARRAY)
def gather(
    operand: Value,
    start_indices: Value,
    dimension_numbers: GatherDimensionNumbers | None = None,
    slice_sizes: Sequence[int] = (),
    indices_are_sorted: bool = False,
    **numbers: Unpack[GatherFields],
) -> Value:
    """Slices of one size out of an array, each starting at a position known at run time, put together.

    A position is clamped so that its slice lies in the array.

    Args:
        operand: the array.
        start_indices: integers: the places, each a vector of indices.
        dimension_numbers: what their dimensions are.
        slice_sizes: the slices' size in each dimension of the operand.
        indices_are_sorted: a promise that the positions ascend, in the order of the operand's elements.
        numbers: the fields of ``GatherDimensionNumbers`` by name instead; those left out are empty, and the index
            vectors are along the last dimension.

    Returns:
        An array of the operand's element type. Its ``offset_dims`` have the slices' sizes, collapsed and batching
        dimensions left out, the others those of ``start_indices`` without the index vectors.

    Raises:
        OperationError: indices are no integers, the dimension numbers do not fit the shapes or each other, or a slice
            is larger than the operand, or than 1 where it is collapsed or a batch.

    Example:
        >>> x = constant([[1, 2], [3, 4], [5, 6]], "s32")
        >>> places = constant([[2], [0]], "s32")
        >>> gather(x, places, offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], slice_sizes=[1, 2])
        [[5 6]
         [1 2]]
    """
    found = _numbers(GatherDimensionNumbers, dimension_numbers, numbers, start_indices)
    found.check(operand.shape, start_indices.shape)
    lacking = {*found.collapsed_slice_dims, *found.operand_batching_dims}
    sizes = _checked_sizes(operand.shape, slice_sizes, lacking)
    return emit(
        "stablehlo.gather",
        [operand, start_indices],
        _gathered(operand.shape, start_indices.shape, found, sizes, lacking),
        dimension_numbers=found.attribute(),
        slice_sizes=i64s(sizes),
        indices_are_sorted=flag(indices_are_sorted),
    )


def _numbers(kind: Any, given: Any, by_name: Any, indices: Value) -> Any:
    """The dimension numbers, or those made of their fields."""
    if given is not None and by_name:
        raise OperationError("dimension_numbers come as one argument or field by field, not both")
    if given is not None:
        return given
    names = [field.name for field in fields(kind)]
    unknown = sorted(set(by_name) - set(names))
    if unknown:
        raise OperationError(f"{kind.__name__} has no field {unknown[0]}", hint=f"its fields are {', '.join(names)}")
    defaults: dict[str, Any] = dict.fromkeys(names, ())
    defaults["index_vector_dim"] = max(indices.rank - 1, 0)
    return kind(**{**defaults, **by_name})


def _checked_sizes(operand: Shape, slice_sizes: Sequence[int], lacking: set[int]) -> list[int]:
    sizes = rules.one_per_dimension(slice_sizes, operand.rank, "slice_sizes")
    for d, (size, bound) in enumerate(zip(sizes, operand.dimensions, strict=True)):
        if size < 0 or size > bound >= 0:
            raise OperationError(f"slice size {size} in dimension {d} of {operand} must be from 0 to {bound}")
        if d in lacking and size > 1:
            raise OperationError(f"slice size {size} in dimension {d}, which is collapsed or a batch, must be 1")
    return sizes


def _gathered(
    operand: Shape, indices: Shape, numbers: GatherDimensionNumbers, sizes: Sequence[int], lacking: set[int]
) -> Shape:
    inside, places = iter(_kept(operand, lacking)), iter(_places(indices, numbers.index_vector_dim))
    rank = len(numbers.offset_dims) + len(_places(indices, numbers.index_vector_dim))
    dimensions, dynamic = [], []
    for d in range(rank):
        if d in numbers.offset_dims:
            source = next(inside)
            dimensions.append(sizes[source])
            # A whole dynamic dimension stays dynamic.
            dynamic.append(operand.dynamic[source] and sizes[source] == operand.dimensions[source])
        else:
            place = next(places)
            dimensions.append(indices.dimensions[place])
            dynamic.append(indices.dynamic[place])
    return Shape(operand.element, tuple(dimensions), tuple(dynamic))


@op("Scatter", emits="stablehlo.scatter", on=ARRAY)
def scatter(
    operands: Value | Sequence[Value],
    scatter_indices: Value,
    updates: Value | Sequence[Value],
    update_computation: Computation,
    dimension_numbers: ScatterDimensionNumbers | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    **numbers: Unpack[ScatterFields],
) -> Value:
    """An array in which slices, each starting at a position known at run time, are combined with updates.

    Elements of a slice that lie outside the array are left out. Updates of one element are applied in any order.

    Args:
        operands: one array, or several of equal sizes, which are updated together.
        scatter_indices: integers: the places, each a vector of indices.
        updates: the slices to combine with what is there, for each operand one of its element type.
        update_computation: from an element of each operand and its update, ``(old0, old1, …, new0, new1, …)``, all
            scalars, to the new elements.
        dimension_numbers: what the dimensions are.
        indices_are_sorted: a promise that the positions ascend, in the order of the operand's elements.
        unique_indices: a promise that no element is updated twice.
        numbers: the fields of ``ScatterDimensionNumbers`` by name instead; those left out are empty, and the index
            vectors are along the last dimension.

    Returns:
        The operands, updated; a tuple if there are several.

    Raises:
        OperationError: operands and updates are not as many or differ in sizes or element types, indices are no
            integers, the dimension numbers do not fit the shapes or each other, a slice is larger than the operand, or
            the computation takes or returns anything else, or uses values from around it.

    Example:
        >>> x, places = constant([10, 20, 30], "s32"), constant([[2], [0], [2]], "s32")
        >>> numbers = {"inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
        >>> scatter(x, places, constant([1, 2, 3], "s32"), add, **numbers)
        [12 20 34]
    """
    arrays, news = _as_list(operands), _as_list(updates)
    _check_arrays(arrays, news)
    found = _numbers(ScatterDimensionNumbers, dimension_numbers, numbers, scatter_indices)
    found.check(arrays[0].shape, scatter_indices.shape, news[0].shape)
    shapes = [array.shape for array in arrays]
    scattering = create(
        "stablehlo.scatter",
        [*arrays, scatter_indices, *news],
        map(mlir_type_of, shapes),
        1,
        scatter_dimension_numbers=found.attribute(),
        indices_are_sorted=flag(indices_are_sorted),
        unique_indices=flag(unique_indices),
    )
    scalars = [Shape.array(array.element_type) for array in arrays]
    trace_region(scattering, 0, [*scalars, *scalars], update_computation, scalars)
    check_closed(scattering, f"its computation{named(update_computation)}")
    return one_or_tuple(results_of(scattering, shapes))


def _as_list(values: Value | Sequence[Value]) -> list[Value]:
    return [values] if isinstance(values, Value) else list(values)


def _check_arrays(operands: Sequence[Value], updates: Sequence[Value]) -> None:
    if not operands or len(operands) != len(updates):
        raise OperationError(f"{len(operands)} operands with {len(updates)} updates: one of each is needed")
    rules.same_dimensions(*operands)
    rules.same_dimensions(*updates)
    for pair in zip(operands, updates, strict=True):
        rules.same_element_type(*pair)
