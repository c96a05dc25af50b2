"""A part of a program as a program of its own: what it takes from the rest becomes parameters.

Before, keeping the ``tanh`` alone::

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.add %x, %x : tensor<2xf32>
      %1 = stablehlo.tanh %0 : tensor<2xf32>
      %2 = stablehlo.exponential %1 : tensor<2xf32>
      return %2 : tensor<2xf32>
    }

After::

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.tanh %arg0 : tensor<2xf32>
      return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.program import Program, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.framework.passes import NativePass

# A value of ``main``: the number of an operation of its block and of a result of it; -1 for an argument of ``main``.
Place: TypeAlias = tuple[int, int]

_ARGUMENT = -1
_CONSTANT = "stablehlo.constant"
_SIGNATURE = "hloforge."


@dataclass(frozen=True)
class Outline:
    """A part of a program.

    Attributes:
        program: a flat one, without names, layouts, tuples and donation.
        parameters: where the values of its parameters are found in the whole program.
        results: which values it returns.
    """

    program: Program
    parameters: tuple[Place, ...]
    results: tuple[Place, ...]


def body(program: Program) -> list[ir.Operation]:
    """The operations of ``main``'s block without its terminator."""
    return [op.operation for op in entry_function(program.module).operation.regions[0].blocks[0].operations][:-1]


def computing(program: Program) -> list[int]:
    """The numbers of the operations in the body that are no constants."""
    return [number for number, op in enumerate(body(program)) if op.name != _CONSTANT]


def places(program: Program) -> list[Place]:
    """Every value of the body that can be a result of the program, constants left out."""
    return [
        (number, place)
        for number, op in enumerate(body(program))
        for place, value in enumerate(op.results)
        if op.name != _CONSTANT and crosses_border(value.type)
    ]


def crosses_border(type_: ir.Type) -> bool:
    """Whether a value of the type can be a parameter or result: an array of static sizes."""
    try:
        shape = Shape.of_type(type_)
    except ValueError:
        return False
    return shape.is_array and shape.is_static


def operands(op: ir.Operation) -> list[Any]:
    """The values that an operation uses, those of its regions included."""
    found = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += operands(inner.operation)
    return found


def outline(program: Program, keep: Collection[int], *, results: Sequence[Place] | None = None) -> Outline:
    """The part of a normalized program with these operations; the program is left as it was.

    Constants that they use, and what makes values that no parameter can have, stay with them.

    Args:
        keep: numbers of operations of the body.
        results: what to return; by default what the program returned, and what nothing in the part uses.

    Raises:
        Error: nothing would be returned.
    """
    copy = program.clone()
    with in_context(copy.module):
        entry = entry_function(copy.module).operation
        block = entry.regions[0].blocks[0]
        ops = body(copy)
        kept = _closed(ops, set(keep))
        returned = list(list(block.operations)[-1].operation.operands)
        chosen = _sinks(ops, kept, returned) if results is None else list(results)
        if not chosen:
            raise Error("the part of the program returns nothing")
        _return(block, [ops[number].results[place] for number, place in chosen])
        count = len(block.arguments)
        origins = [(_ARGUMENT, number) for number in range(count)]
        used = {value for number in kept for value in operands(ops[number])}
        for number, op in enumerate(ops):
            if number in kept:
                continue
            for place, value in enumerate(op.results):
                if value in used:
                    value.replace_all_uses_with(block.add_argument(value.type, op.location))
                    origins.append((number, place))
        # Users first.
        for number in reversed(range(len(ops))):
            if number not in kept:
                ops[number].erase()
        for number in reversed(range(len(block.arguments))):
            if not any(True for _ in block.arguments[number].uses):
                block.erase_argument(number)
                origins.pop(number)
        flat = as_flat_program(copy)
    return Outline(flat, tuple(origins), tuple(chosen))


def as_flat_program(program: Program) -> Program:
    """A program whose ``main`` was changed, with the signature that its type says."""
    module = program.module
    with in_context(module):
        entry = entry_function(module).operation
        block = entry.regions[0].blocks[0]
        inputs = [argument.type for argument in block.arguments]
        outputs = [value.type for value in list(block.operations)[-1].operation.operands]
        entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs))
        for name in ("arg_attrs", "res_attrs"):
            if name in entry.attributes:
                del entry.attributes[name]
        for name in [name for name in module.operation.attributes if name.startswith(_SIGNATURE)]:
            del module.operation.attributes[name]
        NativePass("symbol-dce").run(module)
        module.operation.verify()
    return Program(module, Signature.of(module), program.name, program.source)


def _closed(ops: Sequence[ir.Operation], kept: set[int]) -> set[int]:
    """With the constants that they use and the producers of what cannot cross a border."""
    numbers = {value: number for number, op in enumerate(ops) for value in op.results}
    pending = list(kept)
    while pending:
        for value in operands(ops[pending.pop()]):
            number = numbers.get(value)
            if number is None or number in kept:
                continue
            if ops[number].name == _CONSTANT or not crosses_border(value.type):
                kept.add(number)
                pending.append(number)
    return kept


def _sinks(ops: Sequence[ir.Operation], kept: set[int], returned: Sequence[SSAValue]) -> list[Place]:
    """What the whole program returns, and what is computed in vain otherwise."""
    used = {value for number in kept for value in operands(ops[number])}
    asked = used | set(returned)
    return [
        (number, place)
        for number in sorted(kept)
        for place, value in enumerate(ops[number].results)
        if crosses_border(value.type)
        and ops[number].name != _CONSTANT
        # Of several results, one that is asked for is reason enough for the operation.
        and (value in returned or not any(result in asked for result in ops[number].results))
    ]


def _return(block: ir.Block, values: Sequence[SSAValue]) -> None:
    terminator = list(block.operations)[-1].operation
    with ir.InsertionPoint(terminator), terminator.location:
        ir.Operation.create(terminator.name, operands=list(values))
    terminator.erase()
