"""Scalar code of dispatches: loops, reads, writes and integer arithmetic over elements and rows of arrays.

IREE compiles them to machine code as it finds them. An array that a loop carries is written in its place, so that each
iteration must return the array it was given, with elements written into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hloforge.dialect.marks import WORK
from hloforge.dialect.mlir import SSAValue, arith, dense_elements, ir, scf, vector_dialect
from hloforge.pipelines.framework.builders import Builder, constant, create, empty, for_range, index
from hloforge.pipelines.kernels.lang.executables import code_of, once, return_counts

_DISPATCH_TENSOR = "!iree_tensor_ext.dispatch.tensor"
# A result that is no operand's memory.
_NEW = -1
# Represents an offset that an operand gives.
_DYNAMIC = -(2**63)


def number(value: int, type_: Any) -> Any:
    """A constant of an integer type."""
    return constant(ir.IntegerAttr.get(type_, value))


def float_number(value: float, type_: ir.Type) -> Any:
    """A constant of a float type."""
    return constant(ir.FloatAttr.get(type_, value))


def counted(length: int, element: Any) -> Any:
    """The vector ``0, 1, ..., length - 1`` of an integer type."""
    numbers = np.arange(length, dtype=f"int{element.width}")
    return constant(dense_elements(numbers, ir.VectorType.get([length], element)))


def combine(build: Builder, one: SSAValue, other: Any) -> Any:
    """An operation of ``arith`` on two numbers of one type; ``other`` may be an int."""
    return build(one, _like(other, one))


def compare(predicate: str, one: Any, other: Any) -> Any:
    """A flag by a predicate of ``arith.cmpi``, such as ``eq`` or ``slt``; ``other`` of a number may be an int.

    Vectors make a vector of flags.
    """
    return arith.cmpi(arith.CmpIPredicate[predicate], one, _like(other, one))


def compare_floats(predicate: str, one: SSAValue, other: SSAValue) -> Any:
    """A flag, or a vector of them, by a predicate of ``arith.cmpf``: ``OEQ`` and ``OGT`` are false of NaN."""
    return arith.cmpf(arith.CmpFPredicate[predicate], one, other)


def cast(build: Builder, value: SSAValue, type_: ir.Type) -> Any:
    """A conversion of ``arith`` to a type; the value itself if it has that type."""
    return value if value.type == type_ else build(type_, value)


def clamped(number_: Any, size: int) -> Any:
    """An integer as the nearest ``index`` into so many positions."""
    return cast(arith.index_cast, combine(arith.minsi, combine(arith.maxsi, number_, 0), size - 1), ir.IndexType.get())


def choose(flag: SSAValue, one: SSAValue, other: SSAValue) -> Any:
    """``one`` if the flag is set, else ``other``."""
    return arith.select(flag, one, other)


def least(vector: Any) -> Any:
    """The least of a vector of signed integers."""
    return reduced("MINSI", vector)


def reduced(kind: str, vector: Any, **settings: Any) -> Any:
    """The reduction of a vector by a ``CombiningKind`` of the dialect, such as ``MAXIMUMF``."""
    return vector_dialect.reduction(vector.type.element_type, vector_dialect.CombiningKind[kind], vector, **settings)


def _like(value: Any, other: SSAValue) -> Any:
    if not isinstance(value, int):
        return value
    return index(value) if isinstance(other.type, ir.IndexType) else number(value, other.type)


def read(array: Any, *position: Any) -> Any:
    """The element at an index for each dimension."""
    return create("tensor.extract", [array, *position], [array.type.element_type]).result


def write(value: SSAValue, array: SSAValue, *position: SSAValue) -> Any:
    """The array with one element replaced."""
    return create("tensor.insert", [value, array, *position], [array.type]).result


# From the number of an iteration and the carried values to the values of the next iteration.
Turn = Callable[..., Sequence[Any]]


def for_each(stop: Any, carried: Sequence[SSAValue], body: Turn, *, start: Any = 0, step: int = 1) -> list[SSAValue]:
    """``for i in range(start, stop, step): carried = body(i, *carried)``; the bounds are ints or of type ``index``."""
    first, last = (index(bound) if isinstance(bound, int) else bound for bound in (start, stop))
    return for_range(first, last, index(step), carried, body)


def in_steps(stop: int, step: int, carried: Sequence[SSAValue], body: Turn) -> list[SSAValue]:
    """``for i in range(0, stop, step): carried = body(i, step, *carried)``, and the rest with a shorter step."""
    full = stop // step * step
    if full:
        carried = for_each(full, carried, lambda at, *values: body(at, step, *values), step=step)
    return list(body(index(full), stop - full, *carried)) if stop > full else list(carried)


def while_(
    carried: Sequence[SSAValue], condition: Callable[..., Any], body: Callable[..., Sequence[Any]]
) -> list[SSAValue]:
    """``while condition(*carried): carried = body(*carried)``."""
    types = [value.type for value in carried]
    loop = scf.WhileOp(types, carried)
    before, after = (ir.Block.create_at_start(region, types) for region in loop.regions)
    with ir.InsertionPoint(before):
        scf.condition(condition(*before.arguments), list(before.arguments))
    with ir.InsertionPoint(after):
        scf.yield_(body(*after.arguments))
    return list(loop.results)


def over_rows(
    arrays: Sequence[SSAValue],
    scalars: Sequence[Any],
    results: Sequence[ir.RankedTensorType],
    group: int,
    body: Callable[..., Sequence[Any]],
) -> list[SSAValue]:
    """One dispatch whose workgroups share out the rows of arrays.

    Args:
        arrays: static tensors ``[rows, n]`` of signless integers.
        scalars: numbers that every workgroup gets.
        results: the types of the results, ``[rows, m]``.
        group: how many rows a workgroup takes; divides ``rows``.
        body: from the arrays ``[group, n]``, the scalars and the results' buffers ``[group, m]`` to the results.
    """
    rows = int(results[0].shape[0])

    def run(
        places: Sequence[SSAValue], sources: Sequence[SSAValue], inside: Sequence[Any], targets: Sequence[SSAValue]
    ) -> None:
        first = combine(arith.muli, places[0], group)
        parts = [load(source, _part(a.type, group), [first, 0]) for source, a in zip(sources, arrays, strict=True)]
        buffers = [empty(_part(result, group)) for result in results]
        for part, target in zip(body(*parts, *inside, *buffers), targets, strict=True):
            store(part, target, [first, 0])

    return workgroups([rows // group], arrays, scalars, results, run)


# From the position of a workgroup along each axis, the memory of the arrays, the scalars and the memory of the results.
Work = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[Any]], None]


def workgroups(
    counts: Sequence[int],
    arrays: Sequence[SSAValue],
    scalars: Sequence[Any],
    results: Sequence[ir.Type],
    run: Work,
    *,
    scratch: Sequence[Any] = (),
    work: int = 0,
    key: str = "",
) -> list[SSAValue]:
    """One dispatch of many workgroups.

    Args:
        counts: of workgroups along one to three axes.
        arrays: what they read, static tensors; ``load`` reads a part.
        scalars: numbers that every workgroup gets.
        results: the types of what they write, with ``store``.
        run: the work of one of them.
        scratch: the types of further results, whose memory is read as well: what ``load`` finds there is any numbers,
            and what is made of it has to be stored. IREE leaves out unused results, but not these.
        work: multiplications of all of them, where these say more than the size of the arrays (``WORK``).
        key: what ``run`` depends on beside the types, where one code shall serve all dispatches of a module that have
            the same key and types; empty for code of its own.
    """
    ends = len(arrays), len(arrays) + len(scalars)

    def body(memory: Sequence[SSAValue]) -> None:
        places = [_place(axis) for axis in range(len(counts))]
        run(places, memory[: ends[0]], memory[ends[0] : ends[1]], memory[ends[1] :])

    types = [_memory("readonly", array.type) for array in arrays]
    types += [scalar.type for scalar in scalars] + [_memory("writeonly", result) for result in results]
    types += [_memory("readwrite", part) for part in scratch]
    made = [*results, *scratch]
    dispatch = _Dispatch(counts, [*arrays, *scalars], types, made, [_NEW] * len(made), work)
    return dispatch.shared(key, body) if key else dispatch.own(body)


@cache
def imbalance(groups: int, workers: int) -> float:
    """How many times as long workers take for this many equal workgroups as if they shared them evenly.

    IREE 3.13 hands out one at a time while there are fewer than 8 for each worker, then 8 at a time.
    """
    at_once = 8 if groups >= workers * 8 else 1
    loads = [0] * workers
    for first in range(0, groups, at_once):
        loads[loads.index(min(loads))] += min(at_once, groups - first)
    return max(loads) * workers / groups


def in_place(array: Any, others: Sequence[Any], run: Callable[..., Any], *, work: int) -> Any:
    """One dispatch of one workgroup that rewrites an array where it lies.

    Args:
        array, others: static tensors.
        run: from the contents of all of them to the array, with elements written into it.
        work: as of ``workgroups``.
    """
    everything = [array, *others]

    def body(memory: Sequence[Any]) -> None:
        starts = [[0] * len(value.type.shape) for value in everything]
        parts = [load(m, v.type, at) for m, v, at in zip(memory, everything, starts, strict=True)]
        store(run(*parts), memory[0], starts[0])

    types = [_memory("readwrite", array.type), *(_memory("readonly", other.type) for other in others)]
    return _Dispatch([1], everything, types, [array.type], [0], work).own(body)[0]


@dataclass(frozen=True)
class _Dispatch:
    """A dispatch whose workgroups see ``memory``; each result is the operand it is tied to, or ``_NEW``."""

    counts: Sequence[int]
    operands: Sequence[Any]
    memory: Sequence[Any]
    results: Sequence[Any]
    tied: Sequence[int]
    work: int

    def own(self, body: Callable[[Sequence[Any]], None]) -> list[SSAValue]:
        """The results of a dispatch with code of its own."""
        op = self._create("flow.dispatch.workgroups", 2)
        with ir.InsertionPoint(ir.Block.create_at_start(op.regions[0], list(self.memory))) as point:
            body(list(point.block.arguments))
            create("flow.return", (), ())
            once(point.block, op.regions[0])
        with ir.InsertionPoint(
            ir.Block.create_at_start(op.regions[1], [ir.IndexType.get()] * len(self.counts))
        ) as point:
            return_counts(point.block)
        return list(op.results)

    def shared(self, key: str, body: Callable[[Sequence[Any]], None]) -> list[SSAValue]:
        """The results of a dispatch whose code others may run too."""
        whole = f"{key} {self.counts} {', '.join(map(str, self.memory))}"
        name = code_of(whole, len(self.counts), self.memory, body)
        return list(self._create("flow.dispatch", 0, entry_points=ir.ArrayAttr.get([name])).results)

    def _create(self, name: str, regions: int, **attributes: Any) -> Any:
        number, work = ir.IndexType.get(), ir.IntegerType.get_signless(64)
        return create(
            name,
            [*map(index, self.counts), *self.operands],
            self.results,
            regions,
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(self.counts), len(self.operands), 0, 0]),
            tied_operands=ir.ArrayAttr.get([ir.IntegerAttr.get(number, operand) for operand in self.tied]),
            **{WORK: ir.IntegerAttr.get(work, self.work)},
            **attributes,
        )


def _place(axis: int) -> Any:
    number = ir.IntegerAttr.get(ir.IndexType.get(), axis)
    return create("flow.dispatch.workgroup.id", (), [ir.IndexType.get()], dimension=number).result


def _memory(access: str, type_: ir.Type) -> ir.Type:
    return ir.Type.parse(f"{_DISPATCH_TENSOR}<{access}:{type_}>")


def _part(type_: ir.RankedTensorType, rows: int) -> ir.RankedTensorType:
    return ir.RankedTensorType.get([rows, int(type_.shape[1])], type_.element_type)


def load(memory: SSAValue, part: ir.Type, start: Sequence[Any]) -> Any:
    """A part of an array, of this type; its start is an ``index`` or an int along each dimension."""
    offsets = [at for at in start if not isinstance(at, int)]
    counts = ir.DenseI32ArrayAttr.get([1, 0, len(offsets), 0, 0])
    name = "iree_tensor_ext.dispatch.tensor.load"
    attributes = _window(part, start)
    return create(name, [memory, *offsets], [part], operandSegmentSizes=counts, **attributes).result


def store(part: SSAValue, memory: SSAValue, start: Sequence[Any]) -> None:
    """Write a part of an array; its start as of ``load``."""
    offsets = [at for at in start if not isinstance(at, int)]
    counts = ir.DenseI32ArrayAttr.get([1, 1, 0, len(offsets), 0, 0])
    name = "iree_tensor_ext.dispatch.tensor.store"
    create(name, [part, memory, *offsets], (), operandSegmentSizes=counts, **_window(part.type, start))


def _window(part: Any, start: Sequence[Any]) -> dict[str, Any]:
    """Where a part lies in the whole."""
    return {
        "static_offsets": ir.DenseI64ArrayAttr.get([at if isinstance(at, int) else _DYNAMIC for at in start]),
        "static_sizes": ir.DenseI64ArrayAttr.get([int(size) for size in part.shape]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(start)),
    }
