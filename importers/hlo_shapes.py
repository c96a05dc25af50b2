"""Refuse HLO whose instructions contradict the computations that they call, at their lines.

XLA's parser checks no shapes, and its converter to StableHLO takes some from one side and some from the other: a fusion
whose operand is no match for the computation's parameter becomes a program that computes something else, or none. XLA
runs its verifier before it compiles; jaxlib has no door to that, so its rules for instructions with computations are
here. What reduces, sorts, scatters and maps is verified by StableHLO, as are instructions without computations.

Rules: xla/service/hlo_verifier.cc (ShapeVerifier::HandleFusion, HandleCall, HandleWhile, HandleConditional,
HandleTuple, HandleGetTupleElement, HandleOptimizationBarrier). Field numbers: xla/service/hlo.proto
(HloComputationProto, HloInstructionProto), xla/xla_data.proto (ShapeProto).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from hloforge.dialect.errors import ImporterError
from hloforge.dialect.inlining import COPIES_LIMIT, TOO_MANY_HINT, too_many_copies
from hloforge.dialect.mlir import _hlo
from hloforge.dialect.nesting import LIMIT
from hloforge.dialect.protobuf import fields, unpack
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS
from hloforge.importers.locations import Locator

_SHAPE, _OPERANDS, _CALLED = 3, 36, 38
_TEXTS = {1: "name", 2: "opcode"}
_NUMBERS = {9: "parameter", 13: "index", 35: "identity"}
_COMPUTATION_NAME, _COMPUTATION_ID, _ROOT = 1, 5, 6
_ELEMENT, _DIMENSIONS, _MEMBERS = 2, 3, 4
_TUPLE = 13
_UNKNOWN = (1 << 64) - 1

# An array is its element type and sizes, a tuple a list of such.
_Shape: TypeAlias = "tuple[str, tuple[int, ...]] | list[_Shape]"
_FLAG: _Shape = ("pred", ())


@dataclass
class _Instruction:
    """An instruction of a proto; ``number`` counts over the whole module, as labels do."""

    number: int
    name: str = ""
    opcode: str = ""
    identity: int = 0
    parameter: int = 0
    index: int = 0
    operands: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    encoded_shape: memoryview = field(default_factory=lambda: memoryview(b""))

    @cached_property
    def shape(self) -> _Shape:
        return _shape(self.encoded_shape)


@dataclass
class _Computation:
    name: str = ""
    identity: int = 0
    root_id: int = 0
    instructions: dict[int, _Instruction] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> list[_Shape]:
        found = [one for one in self.instructions.values() if one.opcode == "parameter"]
        return [one.shape for one in sorted(found, key=lambda one: one.parameter)]

    @property
    def root(self) -> _Shape:
        return self.instructions[self.root_id].shape


def check_shapes(module: bytes, locator: Locator) -> None:
    """Refuse the first instruction that contradicts a computation which it calls, and computations that nest too deep,
    or would be copied too often.

    Args:
        module: an ``HloModuleProto`` whose instructions are in the order of the locator's.

    Raises:
        ImporterError: located at the instruction.
        ValueError: the bytes are not a module.
    """
    found = list(_computations(module))
    by_id = {one.identity: one for one in found}
    for computation in found:
        for instruction in computation.instructions.values():
            _check_start(instruction, computation, locator)
            rule = _RULES.get(instruction.opcode)
            if rule is None:
                continue
            try:
                operands = [computation.instructions[operand].shape for operand in instruction.operands]
                called = [by_id[identity] for identity in instruction.called]
                why = rule(instruction, operands, called)
            except (KeyError, RecursionError):
                raise ValueError(f"{instruction.name} refers to what the module does not have") from None
            if why:
                raise _refusal(instruction, f"{instruction.opcode} {locator.name(instruction.number)}: {why}", locator)
    _check_depth(found, by_id, locator)


_SHAPES_HINT = "XLA's verifier refuses it too: correct the shape, or take the file as XLA wrote it"
_DEPTH_HINT = "flatten it: a select instead of a conditional, or computations that do not call each other"


def _refusal(instruction: _Instruction, message: str, locator: Locator, hint: str = _SHAPES_HINT) -> ImporterError:
    return ImporterError(message, location=locator.place(instruction.number), hint=hint)


def _check_start(instruction: _Instruction, computation: _Computation, locator: Locator) -> None:
    """XLA's converter looks at a send or receive where it is awaited, and finds none that a loop carries."""
    start = _AWAITED.get(instruction.opcode)
    awaited = [computation.instructions[one].opcode for one in instruction.operands if one in computation.instructions]
    if start is not None and awaited[:1] != [start]:
        given = awaited[0] if awaited else "nothing"
        message = (
            f"{instruction.opcode} {locator.name(instruction.number)} awaits a {start}, and its operand is {given}"
        )
        raise _refusal(instruction, message, locator, "take the dump from before XLA's passes pipelined the loop")


_AWAITED = {"send-done": "send", "recv-done": "recv"}


def _check_depth(found: list[_Computation], by_id: dict[int, _Computation], locator: Locator) -> None:
    """XLA's converter calls itself for each computation inside of another, and does not survive thousands."""
    depths: dict[int, int] = {}
    # It also copies a computation for each instruction that calls it.
    sizes: dict[int, int] = {}
    for top in found:
        waiting, active = [(top, False)], set()
        while waiting:
            computation, is_left = waiting.pop()
            callers = [one for one in computation.instructions.values() if one.called]
            if is_left:
                active.discard(computation.identity)
                depth = 0
                for one in callers:
                    depth = max(depth, *(1 + depths.get(identity, 0) for identity in one.called))
                    if depth > LIMIT:
                        raise _refusal(one, f"computations are nested more than {LIMIT} deep", locator, _DEPTH_HINT)
                depths[computation.identity] = depth
                copied = {one.number: sum(sizes.get(identity, 0) for identity in one.called) for one in callers}
                if (made := sum(copied.values())) > COPIES_LIMIT:
                    largest = max(callers, key=lambda one: copied[one.number])
                    raise _refusal(largest, too_many_copies(computation.name, made), locator, TOO_MANY_HINT)
                sizes[computation.identity] = len(computation.instructions) + made
            elif computation.identity not in depths and computation.identity not in active:
                active.add(computation.identity)
                waiting.append((computation, True))
                waiting += [(by_id[identity], False) for one in callers for identity in one.called if identity in by_id]


def _fusion(instruction: _Instruction, operands: list[_Shape], called: list[_Computation]) -> str:
    """Of a call too: operands are the parameters, and the result is the root."""
    if len(called) != 1:
        return f"it calls {len(called)} computations, and not one"
    return _arguments(operands, called[0]) or _result(instruction.shape, called[0])


def _while(instruction: _Instruction, operands: list[_Shape], called: list[_Computation]) -> str:
    if len(called) != 2:
        return f"it calls {len(called)} computations, and not a body and a condition"
    body, condition = called
    why = _arguments(operands, body) or _arguments(operands, condition) or _result(instruction.shape, body)
    if why or _agree(condition.root, _FLAG):
        return why
    return f"its condition {condition.name} returns {_text(condition.root)}, and not pred[]"


def _conditional(instruction: _Instruction, operands: list[_Shape], called: list[_Computation]) -> str:
    if len(operands) != len(called) + 1:
        return f"it has {len(called)} branches and {len(operands) - 1} operands for them"
    whys = (
        _arguments([operand], branch) or _result(instruction.shape, branch)
        for operand, branch in zip(operands[1:], called, strict=True)
    )
    return next((why for why in whys if why), "")


def _tuple(instruction: _Instruction, operands: list[_Shape], _: list[_Computation]) -> str:
    if _agree(instruction.shape, operands):
        return ""
    return f"its shape is {_text(instruction.shape)}, and its operands are {_text(operands)}"


def _element(instruction: _Instruction, operands: list[_Shape], _: list[_Computation]) -> str:
    if len(operands) != 1 or not isinstance(operands[0], list):
        return "its operand is no tuple"
    members = operands[0]
    if instruction.index >= len(members):
        return f"index={instruction.index} of a tuple of {len(members)}"
    if _agree(instruction.shape, members[instruction.index]):
        return ""
    return f"its shape is {_text(instruction.shape)}, and the element {_text(members[instruction.index])}"


def _barrier(instruction: _Instruction, operands: list[_Shape], _: list[_Computation]) -> str:
    if len(operands) == 1 and _agree(instruction.shape, operands[0]):
        return ""
    return f"its shape is {_text(instruction.shape)}, and its operand {', '.join(map(_text, operands))}"


_RULES: dict[str, Callable[[_Instruction, list[_Shape], list[_Computation]], str]] = {
    "call": _fusion,
    "conditional": _conditional,
    "fusion": _fusion,
    "get-tuple-element": _element,
    "opt-barrier": _barrier,
    "tuple": _tuple,
    "while": _while,
}


def _arguments(operands: list[_Shape], computation: _Computation) -> str:
    parameters = computation.parameters
    if len(operands) != len(parameters):
        return f"it has {len(operands)} operands, and its computation {computation.name} {len(parameters)} parameters"
    for number, (operand, parameter) in enumerate(zip(operands, parameters, strict=True)):
        if not _agree(operand, parameter):
            given, taken = _text(operand), _text(parameter)
            return f"operand {number} is {given}, and parameter {number} of its computation {computation.name} {taken}"
    return ""


def _result(shape: _Shape, computation: _Computation) -> str:
    if _agree(shape, computation.root):
        return ""
    return f"its shape is {_text(shape)}, and its computation {computation.name} returns {_text(computation.root)}"


def _agree(one: _Shape, other: _Shape) -> bool:
    if isinstance(one, list) or isinstance(other, list):
        if not (isinstance(one, list) and isinstance(other, list)) or len(one) != len(other):
            return False
        return all(_agree(*pair) for pair in zip(one, other, strict=True))
    (element, sizes), (other_element, other_sizes) = one, other
    if element != other_element or len(sizes) != len(other_sizes):
        return False
    return all(a == b or _UNKNOWN in (a, b) for a, b in zip(sizes, other_sizes, strict=True))


def _text(shape: _Shape) -> str:
    if isinstance(shape, list):
        return f"({', '.join(map(_text, shape))})"
    element, sizes = shape
    return f"{element}[{','.join('?' if size == _UNKNOWN else str(size) for size in sizes)}]"


def _shape(message: memoryview) -> _Shape:
    """Element type and sizes; layouts, and which sizes are bounds, are for others to compare."""
    element, sizes, members = 0, list[int](), list[_Shape]()
    for entry in fields(message):
        if entry.number == _ELEMENT and isinstance(entry.value, int):
            element = entry.value
        elif entry.number == _DIMENSIONS:
            sizes += [entry.value] if isinstance(entry.value, int) else unpack(entry.payload)
        elif entry.number == _MEMBERS:
            members.append(_shape(entry.payload))
    if element == _TUPLE:
        return members
    return _element_name(element), tuple(sizes)


def _element_name(number: int) -> str:
    try:
        return str(_hlo.PrimitiveType(number).name).lower()
    except ValueError:
        return f"type {number}"


def _computations(module: bytes) -> Iterator[_Computation]:
    number = 0
    for entry in fields(module):
        if entry.number != COMPUTATIONS:
            continue
        computation = _Computation()
        for inner in fields(entry.payload):
            if inner.number == INSTRUCTIONS:
                instruction = _instruction(inner.payload, number)
                computation.instructions[instruction.identity] = instruction
                number += 1
            elif inner.number == _COMPUTATION_NAME:
                computation.name = inner.text
            elif inner.number == _COMPUTATION_ID and isinstance(inner.value, int):
                computation.identity = inner.value
            elif inner.number == _ROOT and isinstance(inner.value, int):
                computation.root_id = inner.value
        yield computation


def _instruction(message: memoryview, number: int) -> _Instruction:
    made = _Instruction(number)
    for entry in fields(message):
        if entry.number in (_OPERANDS, _CALLED):
            numbers = [entry.value] if isinstance(entry.value, int) else unpack(entry.payload)
            (made.operands if entry.number == _OPERANDS else made.called).extend(numbers)
        elif entry.number in _TEXTS:
            setattr(made, _TEXTS[entry.number], entry.text)
        elif entry.number in _NUMBERS and isinstance(entry.value, int):
            setattr(made, _NUMBERS[entry.number], entry.value)
        elif entry.number == _SHAPE:
            made.encoded_shape = entry.payload
    return made
