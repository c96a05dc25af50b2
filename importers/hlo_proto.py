"""Reading and labelling an ``HloModuleProto``.

XLA's converter names an operation after ``metadata.op_name`` and forgets the instruction's name, and it keeps no line
of the HLO file. So every instruction's metadata is replaced by a label before the conversion, and the labels are
exchanged for whole locations afterwards (importers/locations.py).

Field numbers: xla/service/hlo.proto (HloModuleProto, HloComputationProto, HloInstructionProto, HloProto, HloSnapshot),
xla/xla_data.proto (OpMetadata).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hloforge.dialect.marks import INSTRUCTION_LABEL
from hloforge.dialect.protobuf import Field, encode, fields, first, is_message, unpack

_MODULE_ENTRY_ID, _MODULE_ENTRY_NAME, COMPUTATIONS = 6, 2, 3
_COMPUTATION_NAME, INSTRUCTIONS, _COMPUTATION_ID = 1, 2, 5
_NAME, _OPCODE, _METADATA, _PARAMETER_NUMBER, _ID, _CALLED = 1, 2, 7, 9, 35, 38
_OP_NAME, _SOURCE_FILE, _SOURCE_LINE = 2, 3, 4
_WRAPPED_MODULE = 1
# Names of the labels; no framework writes such an op_name.
LABEL = INSTRUCTION_LABEL


@dataclass(frozen=True)
class Instruction:
    """What a location needs of an instruction. ``order`` counts within the computation in the order of the text.

    ``called`` are the identities of the computations that it calls.
    """

    name: str
    opcode: str
    order: int
    parameter_number: int
    op_name: str
    source_file: str
    source_line: int
    called: tuple[int, ...] = ()


@dataclass
class Computation:
    """A computation and its instructions, in the order of the proto."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    is_entry: bool = False
    identity: int = 0

    def in_text_order(self) -> list[Instruction]:
        return sorted(self.instructions, key=lambda instruction: instruction.order)


def unwrap(data: bytes) -> bytes | None:
    """The ``HloModuleProto`` inside an HloModuleProto, HloProto or HloSnapshot; None if there is none."""
    message = memoryview(data)
    for _ in range(3):
        if not is_message(message):
            return None
        if _is_module(message):
            return bytes(message)
        inner = first(message, _WRAPPED_MODULE)
        if inner is None:
            return None
        message = inner.payload
    return None


def _is_module(message: memoryview) -> bool:
    computation = first(message, COMPUTATIONS)
    if computation is None or not is_message(computation.payload):
        return False
    instruction = first(computation.payload, INSTRUCTIONS)
    if instruction is None or not is_message(instruction.payload):
        return False
    opcode = first(instruction.payload, _OPCODE)
    return opcode is not None and opcode.text.replace("-", "").isalnum()


def label(module: bytes) -> tuple[bytes, list[Computation]]:
    """Replace the metadata of instruction ``n`` (counted over the whole module) by the label ``LABEL n``.

    Raises:
        ValueError: the bytes are not a module.
    """
    computations: list[Computation] = []
    count = 0
    out: list[bytes | memoryview] = []
    view = memoryview(module)
    # Zero is protobuf's default and is not written.
    entry_id = 0
    ids: list[int] = []
    for entry in fields(module):
        if entry.number == _MODULE_ENTRY_ID and isinstance(entry.value, int):
            entry_id = entry.value
        if entry.number != COMPUTATIONS:
            out.append(view[entry.start : entry.end])
            continue
        computation, encoded, computation_id = _label_computation(entry.payload, count)
        count += len(computation.instructions)
        computations.append(computation)
        ids.append(computation_id)
        out.append(encode(COMPUTATIONS, encoded))
    for computation, computation_id in zip(computations, ids, strict=True):
        computation.identity = computation_id
        computation.is_entry = computation_id == entry_id
    return b"".join(out), computations


def _label_computation(message: memoryview, count: int) -> tuple[Computation, bytes, int]:
    computation, computation_id = Computation(""), 0
    out: list[bytes | memoryview] = []
    for entry in fields(message):
        if entry.number == INSTRUCTIONS:
            instruction, encoded = _label_instruction(entry.payload, count + len(computation.instructions))
            computation.instructions.append(instruction)
            out.append(encode(INSTRUCTIONS, encoded))
            continue
        if entry.number == _COMPUTATION_NAME:
            computation.name = entry.text
        elif entry.number == _COMPUTATION_ID and isinstance(entry.value, int):
            computation_id = entry.value
        out.append(message[entry.start : entry.end])
    return computation, b"".join(out), computation_id


def _label_instruction(message: memoryview, number: int) -> tuple[Instruction, bytes]:
    found: dict[int, Field] = {}
    out: list[bytes | memoryview] = []
    for entry in fields(message):
        found[entry.number] = entry
        if entry.number != _METADATA:
            out.append(message[entry.start : entry.end])
    out.append(encode(_METADATA, encode(_OP_NAME, f"{LABEL}{number}".encode())))
    metadata = {entry.number: entry for entry in fields(found[_METADATA].payload)} if _METADATA in found else {}
    instruction = Instruction(
        name=_text(found, _NAME),
        opcode=_text(found, _OPCODE),
        # The upper half of an id numbers the computation, the lower half the instruction as it was parsed.
        order=_number(found, _ID) & 0xFFFFFFFF,
        parameter_number=_number(found, _PARAMETER_NUMBER),
        op_name=_text(metadata, _OP_NAME),
        source_file=_text(metadata, _SOURCE_FILE),
        source_line=_number(metadata, _SOURCE_LINE),
        called=_numbers(found, _CALLED),
    )
    return instruction, b"".join(out)


def _text(found: dict[int, Field], number: int) -> str:
    return found[number].text if number in found else ""


def _numbers(found: dict[int, Field], number: int) -> tuple[int, ...]:
    """A packed list, or its only member."""
    entry = found.get(number)
    if entry is None:
        return ()
    return (entry.value,) if isinstance(entry.value, int) else tuple(unpack(entry.payload))


def _number(found: dict[int, Field], number: int) -> int:
    value = found[number].value if number in found else 0
    return value if isinstance(value, int) else 0
