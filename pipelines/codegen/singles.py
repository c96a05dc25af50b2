"""Operations that need an algorithm: StableHLO's attributes as the geometry of ``products/`` and ``algorithms/``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hloforge.dialect.marks import HOST_CALL
from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.operations import string_attribute
from hloforge.pipelines.analysis.forms import sums_16_bit_floats
from hloforge.pipelines.codegen import index as places, panels, sharing
from hloforge.pipelines.codegen.algorithms.byte_tables import VBMI, look_up
from hloforge.pipelines.codegen.algorithms.reduce_window import ReduceWindow
from hloforge.pipelines.codegen.algorithms.scatter import Scatter
from hloforge.pipelines.codegen.algorithms.select_and_scatter import SelectAndScatter
from hloforge.pipelines.codegen.algorithms.windows import Window
from hloforge.pipelines.codegen.block_products import block_product_workgroups, write_block_product
from hloforge.pipelines.codegen.contractions import (
    complex_product_of,
    is_complex_product,
    packed_product,
    product_of,
    write_dot_general,
)
from hloforge.pipelines.codegen.convolutions import convolution_workgroups, write_convolution
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, place_of
from hloforge.pipelines.codegen.factorizations import factorization_workgroups, write_factorization
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.grouped_products import grouped_product_workgroups, write_grouped_product
from hloforge.pipelines.codegen.lang.float_state import usual_floats
from hloforge.pipelines.codegen.lang.values import I1, I32, I64, POINTER, Number, Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.orders import sort_workgroups, write_sort
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.codegen.row_blocks import is_extreme, is_float_sum
from hloforge.pipelines.codegen.scalars import combine
from hloforge.pipelines.codegen.transforms import fft_workgroups, write_fft
from hloforge.pipelines.codegen.updates import write_update

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# Of a cache, in bytes: what workgroups share out; and bytes that one looks up in some 10 µs, by vectors and one by one.
_LINE, _VECTORS_PIECE, _BYTES_PIECE = 64, 1 << 17, 1 << 14
_LEAST_PIECES = 4


def write_with_epilogue(generator: Generator, op: Op, share: Share | None, epilogue: Sequence[Array]) -> None:
    """The code of a product whose sums have no memory, but what is computed of them has."""
    (write_dot_general if op.name == "dot_general" else write_convolution)(generator, op, share, epilogue)


def write(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of an operation whose results have memory.

    Raises:
        RefusedError: there is none for it.
    """
    writer = _WRITERS.get(op.name)
    if writer is None:
        raise RefusedError(f"the operation {op.mlir.name}")
    if op.has_effects or not _is_empty(op):
        writer(generator, op, share)


def update(generator: Generator, op: Op) -> None:
    """Change the result's memory, which holds the operand."""
    if op.name == "scatter":
        _scatter(generator, op)
    else:
        write_update(generator, op)


def workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups an operation is shared out to."""
    counter = _WORKGROUPS.get(op.name)
    return counter(generator, op) if counter and not _is_empty(op) else 1


def _is_empty(op: Op) -> bool:
    """Whether no result has an element, so that there is nothing to compute."""
    return all(result.elements == 0 for result in op.results)


# Updates


def _scatter(generator: Generator, op: Op) -> None:
    numbers = stablehlo.ScatterDimensionNumbers(op.attribute("scatter_dimension_numbers"))
    count = len(op.results)
    slots = [generator.slots[result] for result in op.results]
    starts, *changes = (generator.apart(array, *slots) for array in op.operands[count:])
    geometry = Scatter(
        operand=op.operands[0].shape,
        indices=starts.shape,
        update=changes[0].shape,
        update_window_dims=tuple(numbers.update_window_dims),
        inserted_window_dims=tuple(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(numbers.scattered_dims_to_operand_dims),
        index_vector_dim=numbers.index_vector_dim,
        input_batching_dims=tuple(numbers.input_batching_dims),
        scatter_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
        signed=not starts.element.startswith("u"),
        lanes=generator.machine.vector_bytes // max(elements.size(result.element) for result in op.results),
    )
    emitter = Emitter(generator.writer.function, generator.memory)

    def load(place: Sequence[Number]) -> Value:
        found = emitter.element(starts, place_of(place, starts.shape))
        assert isinstance(found, Value)
        return found

    def joined(current: list[Element], new: list[Element]) -> list[Element]:
        return combine(emitter, op.inner[0], current, new)

    targets = [generator.elements(result) for result in op.results]

    def computed(place: Sequence[Number]) -> list[Element]:
        with emitter.scope():
            return [emitter.element(change, place_of(place, change.shape)) for change in changes]

    is_stored = all(generator.in_memory(change) for change in changes)
    updates = [generator.elements(change) for change in changes] if is_stored else computed
    geometry.write(generator.writer.function, targets, load, updates, joined)


# Windows


def _windows(op: Op, shape: Sequence[int]) -> tuple[Window, ...]:
    rank = len(shape)

    def numbers(name: str, default: int) -> list[int]:
        return list(op.mlir.attributes[name]) if name in op.mlir.attributes else [default] * rank

    padding = np.array(op.attribute("padding")).reshape(rank, 2) if "padding" in op.mlir.attributes else None
    sizes, strides_ = numbers("window_dimensions", 1), numbers("window_strides", 1)
    bases, dilations = numbers("base_dilations", 1), numbers("window_dilations", 1)
    edges = [(0, 0)] * rank if padding is None else [(int(low), int(high)) for low, high in padding]
    return tuple(Window(n, sizes[d], strides_[d], *edges[d], bases[d], dilations[d]) for d, n in enumerate(shape))


def _windows_reduced(generator: Generator, op: Op) -> ReduceWindow:
    operands = op.operands[: len(op.operands) // 2]
    types = tuple(operand.element for operand in operands)
    lanes = generator.machine.vector_bytes // max(elements.size(element) for element in types)
    windows = _windows(op, operands[0].shape)
    return ReduceWindow(windows, types, lanes, sums_16_bit_floats(op.mlir), is_float_sum(op), is_extreme(op))


def _reduce_window(generator: Generator, op: Op, share: Share | None) -> None:
    half = len(op.operands) // 2
    operands, starts = op.operands[:half], op.operands[half:]
    emitter = Emitter(generator.writer.function, generator.memory)
    windows = _windows_reduced(generator, op)

    def joined(one: list[Element], other: list[Element]) -> list[Element]:
        return combine(emitter, op.inner[0], one, other)

    windows.write(
        generator.writer.function,
        [generator.elements(operand) for operand in operands],
        [emitter.element(start, ()) for start in starts],
        [generator.elements(result) for result in op.results],
        joined,
        sharing.scratch(generator, windows.scratch, share),
        sharing.rows_of(share, windows.rows),
    )


def _window_workgroups(generator: Generator, op: Op) -> int:
    """Windows of rows that do not depend on each other, by what the elements that are read cost."""
    windows = _windows_reduced(generator, op)
    reads = windows.reads * sum(elements.size(operand.element) for operand in op.operands) // 8
    return sharing.share_count(reads, windows.rows)


def _select_and_scatter(generator: Generator, op: Op, share: Share | None) -> None:
    operand, source, start = op.operands
    emitter = Emitter(generator.writer.function, generator.memory)
    scatter = SelectAndScatter(_windows(op, operand.shape), operand.element)

    def selects(one: Element, other: Element) -> Value:
        (found,) = combine(emitter, op.inner[0], [one], [other])
        assert isinstance(found, Value)
        return found

    scatter.write(
        generator.writer.function,
        generator.elements(operand),
        generator.elements(source),
        emitter.element(start, ()),
        generator.elements(op.result),
        selects,
        lambda one, other: combine(emitter, op.inner[1], [one], [other])[0],
        generator.required_scratch(scatter.scratch),
    )


def _count_on(generator: Generator, op: Op, share: Share | None) -> None:
    """What the program's count of random blocks is, before so many are added. Calls in other threads count as well."""
    emitter = Emitter(generator.writer.function, generator.memory)
    more = emitter.element(op.operands[0], ())
    count, result = generator.writer.memory(generator.count()).pointer, generator.memory(op.result)
    assert isinstance(more, Value) and result is not None
    held = generator.writer.function.emit(f"atomicrmw add ptr {count.text}, {more} monotonic, align 8", more.kind)
    result.store(held, emitter.value(places.ZERO))


def _host_call(generator: Generator, op: Op, share: Share | None) -> None:
    """Call a function of the host with the addresses of its operands and results; its failure ends the kernel.

    The host computes with subnormal numbers, which kernels do not.
    """
    function = generator.writer.function
    arrays = [generator.pointer(array) for array in (*op.operands, *op.results)]
    number = generator.host_number(string_attribute(op.mlir, HOST_CALL))
    addresses = function.stack(POINTER, max(len(arrays), 1))
    for place, pointer in enumerate(arrays):
        function.do(f"store ptr {pointer.text}, ptr {function.offset(addresses, POINTER, place).text}")
    call = function.emit(f"load ptr, ptr {generator.host().text}", POINTER)
    which = function.emit(f"load i64, ptr {number.text}", I64)
    with usual_floats(function, generator.architecture):
        status = function.emit(f"call i32 {call.text}({which}, ptr {addresses.text})", I32)
    failed, went = function.label(), function.label()
    has_failed = function.emit(f"icmp ne i32 {status.text}, 0", I1)
    function.do(f"br i1 {has_failed.text}, label %{failed}, label %{went}")
    function.begin(failed)
    function.do("ret i32 1")
    function.begin(went)


def _dot_general(generator: Generator, op: Op, share: Share | None) -> None:
    (write_dot_general if op.panel is None else panels.write)(generator, op, share)


def _product_workgroups(generator: Generator, op: Op) -> int:
    if op.panel is not None:
        return panels.panels_of(op, generator.extensions, generator.machine).pieces(generator.machine)
    if is_complex_product(op):
        return complex_product_of(op).workgroups(generator.machine)
    if op.packed is not None:
        return packed_product(op, op.packed, generator.extensions).workgroups(generator.machine)
    return product_of(op, generator.extensions).workgroups(generator.machine)


def _byte_table(generator: Generator, op: Op, share: Share | None) -> None:
    table, codes = op.operands
    function, lines = generator.writer.function, -(-op.result.elements // _LINE)
    first, last = function.index(0), function.index(op.result.elements)
    if share is not None:
        start, stop = ((share.number + more) * lines for more in range(2))
        first = start.udiv(share.count) * _LINE
        last = (stop.udiv(share.count) * _LINE).minimum(op.result.elements)
    by_vectors = _has_vectors_of_tables(generator)
    given, taken, made = map(generator.pointer, (table, codes, op.result))
    look_up(function, given, taken, made, first, last, by_vectors=by_vectors)


def _table_workgroups(generator: Generator, op: Op) -> int:
    pieces = op.result.elements // (_VECTORS_PIECE if _has_vectors_of_tables(generator) else _BYTES_PIECE)
    return min(pieces, 4 * generator.machine.workers) if pieces >= _LEAST_PIECES else 1


def _has_vectors_of_tables(generator: Generator) -> bool:
    return VBMI in generator.extensions and generator.machine.vector_bytes >= _LINE


_Writer = Callable[["Generator", Op, Share | None], None]
_WRITERS: dict[str, _Writer] = {
    "block_product": write_block_product,
    "byte_table": _byte_table,
    "cholesky": write_factorization,
    "convolution": write_convolution,
    "custom_call": write_factorization,
    "dot_general": _dot_general,
    "fft": write_fft,
    "grouped_product": write_grouped_product,
    "host_call": _host_call,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "sort": write_sort,
    "triangular_solve": write_factorization,
    "util.call": _count_on,
}
# How many workgroups an operation is shared out to; one where nothing is said.
_WORKGROUPS: dict[str, Callable[[Generator, Op], int]] = {
    "block_product": block_product_workgroups,
    "byte_table": _table_workgroups,
    "convolution": convolution_workgroups,
    "dot_general": _product_workgroups,
    "fft": fft_workgroups,
    "reduce_window": _window_workgroups,
    "sort": sort_workgroups,
    "grouped_product": grouped_product_workgroups,
    "triangular_solve": factorization_workgroups,
}
