"""Functions of IREE's virtual machine, instruction by instruction.

Numbers that a function uses are loaded once at its beginning. What it calls is written with names of imports; which
parts of a call repeat follows from the calling convention.

Source: iree-org/iree, ``runtime/src/iree/vm/bytecode/isa``, bytecode version 17; see ``codegen_fixes.bytecode``, which
reads what this writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hloforge.runtime.codegen_fixes.bytecode import MOVED, REFERENCE
from hloforge.runtime.compile.direct.host import DirectError

# Opcodes that ``Code.compute`` takes.
ADD_I32, AND_I32, LESS_I32, NONZERO_I64, NONNULL = 0x22, 0x33, 0x4B, 0x52, 0x55
MUL_I64, EXTEND_I32_I64 = 0x2C, 0x48

_LOAD, _STORE, _NULL, _RODATA, _ELEMENT = 0x08, 0x09, 0x10, 0x11, 0x1A
_ZERO, _LITERAL, _CONSTANT = {32: 0x0C, 64: 0x0E}, {32: 0x0D, 64: 0x0F}, {32: "<BIH", 64: "<BQH"}
_BRANCH, _CONDITIONAL, _CALL, _CALL_VARIADIC, _RETURN, _FAIL, _BLOCK = 0x56, 0x57, 0x58, 0x59, 0x5A, 0x5B, 0x79
_DISCARD, _AWAIT = 0x85, 0x88
# What tells an import from a function of the module, and an operand from a list of them.
_IMPORTED, _SINGLE = 0x80000000, 0xFFFF
# IREE rounds numbers of registers up to a power of two, which has to fit as well.
_MOST_NUMBERS, _MOST_REFERENCES, _LONGEST = 0x4000, 0x2000, 0xFFFE
# Of functions that await something, and of those that hold references when they fail.
_YIELDS, _UNWINDS = 4, 8
_DESCRIPTOR = struct.Struct("<iiIhhhh")

Operand = int | Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Function:
    """A finished function.

    Attributes:
        code: its instructions.
        requirements, blocks, numbers, references: as its descriptor says them.
    """

    code: bytes
    requirements: int
    blocks: int
    numbers: int
    references: int

    def descriptor(self, offset: int) -> bytes:
        """What the module's table says of it.

        Args:
            offset: of its code among that of all functions.
        """
        return _DESCRIPTOR.pack(
            offset, len(self.code), self.requirements, 0, self.blocks, self.numbers, self.references
        )


class Code:
    """A function while it is written.

    Args:
        imports: the numbers of functions of other modules that it may call, by name.
        parameters: how many references it takes.
    """

    def __init__(self, imports: Mapping[str, int], parameters: int = 0) -> None:
        self._imports = imports
        self._head = bytearray([_BLOCK])
        # Lists of registers start at even places, and the head's length is even in the end.
        self._body = bytearray()
        self._constants: dict[tuple[int, int], int] = {}
        self._null: int | None = None
        self._numbers, self._references = 0, parameters
        self._blocks, self._yields = 1, False
        self._moved: set[int] = set()
        # Where the body names a block, and where blocks begin.
        self._jumps: list[tuple[int, str]] = []
        self._labels: dict[str, int] = {}

    def i32(self, value: int) -> int:
        """The register that holds a number of 32 bits."""
        return self._constant(32, value)

    def i64(self, value: int) -> int:
        """The register that holds a number of 64 bits."""
        return self._constant(64, value)

    def null(self) -> int:
        """A register that refers to nothing."""
        if self._null is None:
            self._null = self.reference()
            self._head += struct.pack("<BH", _NULL, self._null)
        return self._null

    def reference(self) -> int:
        """A new register for a reference."""
        self._references += 1
        return (self._references - 1) | REFERENCE

    def moved(self, register: int) -> int:
        """A register for its last use, which leaves it empty."""
        self._moved.add(register)
        return register | MOVED

    def number(self, bits: int) -> int:
        """A new register for a number."""
        self._numbers += -self._numbers % (bits // 32)
        self._numbers += bits // 32
        return self._numbers - bits // 32

    def parameter(self, number: int) -> int:
        """The register of an argument."""
        return number | REFERENCE

    def load(self, number: int, type_: int) -> int:
        """What a global refers to."""
        found = self.reference()
        self._body += struct.pack("<BIIH", _LOAD, number, type_, found)
        return found

    def store(self, register: int, number: int, type_: int) -> None:
        """Let a global refer to what a register does."""
        self._body += struct.pack("<BIIH", _STORE, number, type_, register)

    def rodata(self, number: int) -> int:
        """A segment of constant bytes."""
        found = self.reference()
        self._body += struct.pack("<BIH", _RODATA, number, found)
        return found

    def element(self, list_: int, index: int, type_: int) -> int:
        """What a list refers to at a place."""
        found = self.reference()
        self._body += struct.pack("<BHHIH", _ELEMENT, list_, index, type_, found)
        return found

    def compute(self, opcode: int, *registers: int) -> None:
        """An instruction that has registers alone, the last of which it writes."""
        self._body += struct.pack(f"<B{len(registers)}H", opcode, *registers)

    def call(self, name: str, *operands: Operand, results: Sequence[int] = ()) -> None:
        """Call an import; what repeats is a list, of registers or of lists of registers."""
        self._call(name, operands, results, "")

    def await_(self, name: str, *operands: Operand, results: Sequence[int]) -> None:
        """Call an import that may wait; another block begins afterwards."""
        self._yields = True
        then = f"awaited{self._blocks}"
        self._call(name, operands, results, then)
        self.block(then)

    def block(self, label: str) -> None:
        """Begin a block."""
        self._labels[label] = len(self._body)
        self._blocks += 1
        self._body.append(_BLOCK)

    def branch(self, label: str) -> None:
        """Go on in a block."""
        self._body.append(_BRANCH)
        self._jump(label)
        self._list(())

    def branch_if(self, condition: int, label: str, otherwise: str) -> None:
        """Go on in one of two blocks."""
        self._body += struct.pack("<BH", _CONDITIONAL, condition)
        for target in (label, otherwise):
            self._jump(target)
            self._list(())

    def return_(self, *registers: int) -> None:
        """End the function. What other registers refer to is given back here: a frame that ends well does not."""
        results = [self.moved(register) for register in registers]
        self.discard(*(one | REFERENCE for one in range(self._references) if one | REFERENCE not in self._moved))
        self._body.append(_RETURN)
        self._list(results)

    def discard(self, *registers: int) -> None:
        """Give back what registers refer to."""
        if registers:
            self._body.append(_DISCARD)
            self._list(registers)

    def fail(self, status: int, message: str) -> None:
        """End the call with an error."""
        text = message.encode()
        self._body += struct.pack("<BHH", _FAIL, status, len(text)) + text

    def fail_if(self, status: int, message: str) -> None:
        """End the call with an error if a status is one."""
        number = self._blocks
        self.branch_if(status, f"failed{number}", f"went{number}")
        self.block(f"failed{number}")
        self.fail(status, message)
        self.block(f"went{number}")

    def finish(self) -> Function:
        """The function.

        Raises:
            DirectError: it needs more registers than there are.
        """
        if len(self._head) % 2:
            self._head += struct.pack("<BH", _ZERO[32], self.number(32))
        if self._numbers > _MOST_NUMBERS or self._references > _MOST_REFERENCES:
            raise DirectError("a function has more values than IREE's virtual machine has registers")
        for place, label in self._jumps:
            struct.pack_into("<I", self._body, place, len(self._head) + self._labels[label])
        requirements = _UNWINDS | (_YIELDS if self._yields else 0)
        code = bytes(self._head + self._body)
        return Function(code, requirements, self._blocks, self._numbers, self._references)

    def _constant(self, bits: int, value: int) -> int:
        register = self._constants.get((bits, value))
        if register is None:
            register = self._constants[bits, value] = self.number(bits)
            if value:
                self._head += struct.pack(_CONSTANT[bits], _LITERAL[bits], value % (1 << bits), register)
            else:
                self._head += struct.pack("<BH", _ZERO[bits], register)
        return register

    def _call(self, name: str, operands: Sequence[Operand], results: Sequence[int], then: str) -> None:
        number = self._imports[name] | _IMPORTED
        repeats = any(not isinstance(operand, int) for operand in operands)
        self._body += struct.pack("<BI", (_AWAIT if then else _CALL_VARIADIC) if repeats else _CALL, number)
        if repeats:
            self._list([_SINGLE if isinstance(operand, int) else len(operand) for operand in operands])
        self._list(list(_flat(operands)))
        if then:
            self._jump(then)
        self._list(results)

    def _jump(self, label: str) -> None:
        self._jumps.append((len(self._body), label))
        self._body += bytes(4)

    def _list(self, values: Sequence[int]) -> None:
        if len(values) > _LONGEST:
            raise DirectError("a call has more operands than IREE's virtual machine takes")
        self._body += bytes(len(self._body) % 2)
        self._body += struct.pack(f"<{1 + len(values)}H", len(values), *values)


def _flat(operands: Iterable[Operand]) -> Iterable[int]:
    for operand in operands:
        if isinstance(operand, int):
            yield operand
        else:
            yield from _flat(operand)
