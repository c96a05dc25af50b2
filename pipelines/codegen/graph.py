"""A function of StableHLO as plain objects: operations, the arrays between them, and who reads these.

MLIR's bindings make an object for each look at an operation. Code generation looks many times, so that a program is
read once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen.refusal import RefusedError

_PREFIXES = ("stablehlo.", "chlo.", "func.")
_RETURNS = frozenset({"return"})
_ELEMENTS = frozenset(
    [
        "i1",
        "i8",
        "i16",
        "i32",
        "i64",
        "ui8",
        "ui16",
        "ui32",
        "ui64",
        "f16",
        "bf16",
        "f32",
        "f64",
        "complex<f32>",
        "complex<f64>",
    ]
)


@dataclass(eq=False, repr=False)
class Array:
    """The result of an operation, or an argument of a block.

    Attributes:
        element: the element type, as MLIR spells it.
        shape: static sizes.
        op: what makes it; None for an argument.
        readers: operations that read it, once for each operand; those in inner blocks too.
        is_result: whether its block gives it back.
    """

    element: str
    shape: tuple[int, ...]
    op: Op | None
    block: Block
    readers: list[Op] = field(default_factory=list)
    is_result: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(eq=False, repr=False)
class Op:
    """An operation.

    Attributes:
        name: without its dialect.
        mlir: the operation, for its attributes.
        inner: the blocks of its regions.
        captured: arrays from outside that these read, each once.
    """

    name: str
    operands: tuple[Array, ...]
    mlir: Any
    block: Block
    results: tuple[Array, ...] = ()
    inner: tuple[Block, ...] = ()
    captured: tuple[Array, ...] = ()

    @property
    def result(self) -> Array:
        (only,) = self.results
        return only

    @cached_property
    def is_splat(self) -> bool:
        """Whether a constant repeats one element."""
        if self.result.elements == 1:
            return True
        if self.result.element.startswith("complex"):
            # The bindings know nothing of its attribute.
            text = self.mlir.get_asm(print_generic_op_form=True)
            text = text[text.index("dense<") :]
        else:
            text = str(self.mlir.attributes["value"])
        return not text.startswith(("dense<[", 'dense<"'))

    def attribute(self, name: str) -> Any:
        return self.mlir.attributes[name]

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(self.mlir.attributes[name])


@dataclass(eq=False, repr=False)
class Block:
    """Operations in order, and what they give back.

    Attributes:
        owner: the operation that has this block; None for a function's.
    """

    owner: Op | None
    arguments: tuple[Array, ...] = ()
    ops: list[Op] = field(default_factory=list)
    results: tuple[Array, ...] = ()

    def inside(self, other: Block) -> bool:
        """Whether this is the other block, or one in it."""
        block: Block | None = self
        while block is not None:
            if block is other:
                return True
            block = block.owner.block if block.owner else None
        return False


def function_of(module: ir.Module) -> Block:
    """The function ``main`` of a module that has no others. Raises RefusedError."""
    functions = list(module.body.operations)
    if len(functions) != 1 or functions[0].operation.name != "func.func":
        raise RefusedError("a module of several functions or globals")
    return _block(functions[0].operation.regions[0].blocks, None, {})


def _block(blocks: Any, owner: Op | None, known: dict[Any, Array]) -> Block:
    if len(blocks) != 1:
        raise RefusedError("control flow between blocks")
    source = blocks[0]
    block = Block(owner)
    arguments = []
    for argument in source.arguments:
        known[argument] = array = _array(argument.type, None, block)
        arguments.append(array)
    block.arguments = tuple(arguments)
    for operation in source.operations:
        _read(operation.operation, block, known)
    return block


def _read(operation: Any, block: Block, known: dict[Any, Array]) -> None:
    name = operation.name
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    operands = tuple(known[operand] for operand in operation.operands)
    if name in _RETURNS:
        block.results = operands
        for array in operands:
            array.is_result = True
        return
    if name == "optimization_barrier":
        known.update(zip(operation.results, operands, strict=True))
        return
    op = Op(name, operands, operation, block)
    for array in operands:
        array.readers.append(op)
    if len(operation.regions):
        op.inner = tuple(_block(region.blocks, op, known) for region in operation.regions)
        op.captured = tuple(dict.fromkeys(_captured(op)))
        for array in op.captured:
            array.readers.append(op)
    results = []
    for result in operation.results:
        known[result] = array = _array(result.type, op, block)
        results.append(array)
    op.results = tuple(results)
    block.ops.append(op)


def _captured(op: Op) -> Iterator[Array]:
    def visit(block: Block) -> Iterator[Array]:
        for inner in block.ops:
            yield from inner.operands
            for deeper in inner.inner:
                yield from visit(deeper)
        yield from block.results

    for block in op.inner:
        for array in visit(block):
            if not any(array.block.inside(inside) for inside in op.inner):
                yield array


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


def count(block: Block) -> Mapping[str, int]:
    """How many operations of each name there are, inner ones included."""
    found: dict[str, int] = {}

    def visit(block: Block) -> None:
        for op in block.ops:
            found[op.name] = found.get(op.name, 0) + 1
            for inner in op.inner:
                visit(inner)

    visit(block)
    return found
