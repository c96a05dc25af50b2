"""A function of StableHLO read into plain objects.

MLIR's bindings make an object for each look at an operation. Code generation looks many times, so that a program is
read once. What is computed in a loop of nothing that the loop changes is read before it (``hoisting.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hloforge.dialect.marks import (
    BLOCK_PRODUCT,
    BYTE_TABLE,
    GROUPED_CONTRACTION,
    GROUPED_PRODUCT,
    HOST_CALL,
    KEY,
    RNG_BLOCKS,
)
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import string_attribute
from hloforge.dialect.program import entry_function
from hloforge.pipelines.codegen.dead_code import captured, eliminate
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.hoisting import hoist
from hloforge.pipelines.codegen.narrow_factors import PRODUCTS, unwidened
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.library_calls.registry import target_of

_PREFIXES = ("stablehlo.", "chlo.", "func.")
_RETURN = "return"
# The variable of ``decompose-rng``, and the function that takes some of it.
_COUNT = frozenset({RNG_BLOCKS, f"{RNG_BLOCKS}.take"})
_ELEMENTS = frozenset(
    {
        *("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"),
        *("f16", "bf16", "f32", "f64", "complex<f32>", "complex<f64>"),
    }
)


def function_of(module: ir.Module) -> Block:
    """The function ``main`` of a module that has no globals but weights and the program's count of random blocks.

    Functions beside it are what inlining left of those that others may call.

    Raises:
        RefusedError: it has other globals, or something in ``main`` is not read.
    """
    known = _Known()
    for op in module.body.operations:
        if op.operation.name == "func.func":
            continue
        name = string_attribute(op.operation, "sym_name")
        if KEY in op.operation.attributes:
            known.weights[name] = string_attribute(op.operation, KEY)
        elif name not in _COUNT:
            raise RefusedError("a module with globals")
    try:
        block = _block(entry_function(module).operation.regions[0].blocks, None, known)
    except RefusedError:
        forget(known.ops)
        raise
    eliminate(block)
    return block


def forget(ops: Iterable[Op]) -> None:
    """Let go of MLIR's operations, which keep their context alive.

    Operations and arrays refer to each other. Until Python collects such garbage, maybe in a forked child, where a
    context waits for ever for its threads, they keep what they refer to.
    """
    for op in ops:
        op.mlir = None
        for block in op.inner:
            forget(block.ops)


class _Known(dict[Any, Array]):
    """The arrays of MLIR's values.

    Attributes:
        ops: all operations that were read.
        weights: the names of arrays in a file of weights, by those of their globals.
        views: reshaped arrays of outer blocks, as inner ones have them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self.weights: dict[str, str] = {}
        self.views: dict[tuple[Array, Block], Array] = {}


def _block(
    blocks: Any,
    owner: Op | None,
    known: _Known,
    arguments: Sequence[int] | None = None,
    results: Sequence[int] | None = None,
) -> Block:
    """A block with those of its arguments and results whose numbers are given; None for all."""
    if len(blocks) != 1:
        raise RefusedError("control flow between blocks")
    source = blocks[0]
    block = Block(owner)
    for number in range(len(source.arguments)) if arguments is None else arguments:
        argument = source.arguments[number]
        known[argument] = array = _array(argument.type, None, block)
        block.arguments = (*block.arguments, array)
    for operation in source.operations:
        if operation.name.endswith(_RETURN):
            given = list(operation.operation.operands)
            asked = range(len(given)) if results is None else results
            block.results = tuple(known[given[number]] for number in asked)
            for array in block.results:
                array.is_result = True
        else:
            _read(operation.operation, block, known)
    return block


def _inside(array: Array, block: Block, known: _Known) -> Array:
    """A reshaped array of a block outside as a view of this one's: what inner blocks read of others has memory."""
    if array.block is block or array.op is None or array.op.name != "reshape":
        return array
    if (array, block) not in known.views:
        (base,) = array.op.operands
        view = Op("reshape", (_inside(base, block, known),), array.op.mlir, block)
        known.ops.append(view)
        view.operands[0].readers.append(view)
        view.results = (Array(array.element, array.shape, view, block),)
        block.ops.append(view)
        known.views[array, block] = view.result
    return known.views[array, block]


def _bits(array: Array) -> Array:
    """What an array has the bits of."""
    return array.op.operands[0] if array.op is not None and array.op.name == "bitcast_convert" else array


def _read(operation: Any, block: Block, known: _Known) -> None:
    name = operation.name
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    operands = tuple(_inside(known[operand], block, known) for operand in operation.operands)
    if name == "optimization_barrier":
        known.update(zip(operation.results, operands, strict=True))
        return
    if name == "util.global.load" and (key := known.weights.get(operation.attributes["global"].value)) is not None:
        known[operation.results[0]] = _weight(key, operation.results[0].type, block)
        return
    if HOST_CALL in operation.attributes:
        name = "host_call"
    if BYTE_TABLE in operation.attributes:
        name, operands = "byte_table", tuple(map(_bits, operands))
    if name == "custom_call" and target_of(operation) in (GROUPED_PRODUCT, GROUPED_CONTRACTION):
        name = "grouped_product"
    if name == "custom_call" and target_of(operation) == BLOCK_PRODUCT:
        name = "block_product"
    if name in PRODUCTS:
        # Convolutions of f16 read what was widened once (legalize-half-convolutions).
        narrow = tuple(map(unwidened, operands))
        operands = narrow if name != "convolution" or any(one.element != "f16" for one in narrow) else operands
    op = Op(name, operands, operation, block)
    known.ops.append(op)
    results = list(operation.results)
    if name == "while":
        changed = _changed(operation)
        known.update(zip(results, operands, strict=True))
        op.operands, results = tuple(operands[n] for n in changed), [results[n] for n in changed]
        for region in operation.regions:
            known.update(zip(region.blocks[0].arguments, operands, strict=True))
        condition, body = operation.regions
        op.inner = (
            _block(condition.blocks, op, known, changed),
            _block(body.blocks, op, known, changed, changed),
        )
        for inner in op.inner:
            hoist(inner, block)
    elif len(operation.regions):
        op.inner = tuple(_block(region.blocks, op, known) for region in operation.regions)
    op.captured = tuple(dict.fromkeys(captured(op)))
    for array in (*op.operands, *op.captured):
        array.readers.append(op)
    for result in results:
        known[result] = _array(result.type, op, block)
    op.results = tuple(known[result] for result in results)
    block.ops.append(op)


def _weight(key: str, type_: Any, block: Block) -> Array:
    """The weight of a name, which is an array of the whole function."""
    while block.owner is not None:
        block = block.owner.block
    return block.weights.setdefault(key, _array(type_, None, block))


def _changed(operation: Any) -> list[int]:
    """The numbers of a loop's carries that its body changes. Others are what they were before the loop."""
    body = operation.regions[1].blocks[0]
    returned = list(list(body.operations)[-1].operation.operands)
    return [number for number, argument in enumerate(body.arguments) if returned[number] != argument]


def _array(type_: Any, op: Op | None, block: Block) -> Array:
    element, shape = shape_of(type_)
    return Array(element, shape, op, block)


def shape_of(type_: Any) -> tuple[str, tuple[int, ...]]:
    """The element type and the sizes of an array's type. Raises RefusedError for others."""
    if not isinstance(type_, ir.RankedTensorType):
        raise RefusedError(f"a value of type {type_}")
    if not type_.has_static_shape:
        raise RefusedError(f"dynamic sizes: {type_}")
    element = str(type_.element_type)
    if element not in _ELEMENTS:
        raise RefusedError(f"elements of type {element}")
    return element, tuple(type_.shape)
