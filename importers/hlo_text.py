"""Read HLO text without a parser of our own: find its instructions, and repair text.

XLA's parser is the authority; this file only finds ``name = shape opcode`` to give operations their line and column.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from hloforge.importers.hlo_proto import Computation, Instruction

# Every pattern here takes time that is linear in the text. So each alternative of this one succeeds where it begins: a
# string or comment that does not end reaches to the end of the text.
_OPAQUE = re.compile(r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_NAME = r"[A-Za-z_][\w.\-]*"
_ELEMENT = r"(?:pred|token|opaque|tuple|b?f\d|[suc]\d)"
# Of an array, of a tuple, or of a buffer.
_SHAPE = rf"(?:b?\(|{_ELEMENT}\w*\[)"
# An attribute (`index=0`) is never followed by a shape, so a name before one is an instruction.
# The shape may be missing, because the parser can infer it.
_OPCODE = r"[a-z][a-z0-9\-]*+\("
# What follows a comma is an attribute (`devices=(`).
_INSTRUCTION = re.compile(
    rf"(?P<attribute>,\s*+)?(?P<start>(?<![\w.\-%])%?(?P<name>{_NAME}))\s*=\s*(?={_SHAPE}|{_OPCODE})"
)
# `%name (parameters) -> shape {` or `name {`; the brace of a layout has no space before it, that of a body has. A shape
# has no `>`, so that no two headers are looked for in the same text.
_PARENTHESES = r"\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\)"
_HEADER = re.compile(rf"^[ \t]*(ENTRY\s+)?%?({_NAME})\s*(?:{_PARENTHESES}\s*->(?:<=|[^=>])*?)?\s\{{", re.MULTILINE)
_REPLICATION = re.compile(r"\b(num_partitions|replica_count)\s*=\s*(\d+)")
_ELIDED = re.compile(r"constant\(\s*\{\s*\.\.\.\s*\}\s*\)")
_ERROR = re.compile(r"was parsing (\d+):(\d+): error: ([^\n]*)")
_METADATA = re.compile(r"\bmetadata\s*=\s*\{")
_METADATA_VALUE = re.compile(r'"(?:\\.|[^"\\])*"|[^\s,{}]+')
_COMMA = re.compile(r"\s*,")
_BRACE = re.compile(r"[{}]")
_UNKNOWN_ATTRIBUTE = re.compile(r'unexpected attribute "([^"]+)"')


@dataclass(frozen=True)
class Position:
    """An instruction's name and position in the text; ``line`` and ``column`` count from 1."""

    name: str
    line: int
    column: int
    elided: bool = False


@dataclass
class TextComputation:
    """A computation of the text and its instructions in order."""

    name: str
    line: int
    is_entry: bool
    instructions: list[Position] = field(default_factory=list)


def without_opaque(text: str) -> str:
    """The text with strings and comments blanked out, positions kept."""
    return _OPAQUE.sub(lambda match: _blanked(match[0]), text)


def _instructions(plain: str) -> list[tuple[int, str]]:
    """Where the instructions of a text without strings begin, and their names."""
    found = _INSTRUCTION.finditer(plain)
    return [(one.start("start"), one["name"]) for one in found if one["attribute"] is None]


def computations(text: str) -> list[TextComputation]:
    """Every computation of the text with its instructions' positions."""
    plain = without_opaque(text)
    starts = [0, *accumulate(len(line) for line in plain.splitlines(keepends=True))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    found = [
        (match.start(), TextComputation(match[2], place(match.start())[0], bool(match[1])))
        for match in _HEADER.finditer(plain)
    ]
    if not found:
        found = [(0, TextComputation("", 1, True))]
    offsets = [offset for offset, _ in found]
    elided = {match.start() for match in _ELIDED.finditer(plain)}
    instructions = _instructions(plain)
    ends = [*(start for start, _ in instructions[1:]), len(plain)][: len(instructions)]
    elided_starts = sorted(elided)
    for (start, name), end in zip(instructions, ends, strict=True):
        owner = found[max(bisect.bisect_right(offsets, start) - 1, 0)][1]
        line, column = place(start)
        first_elided = bisect.bisect_left(elided_starts, start)
        is_elided = first_elided < len(elided_starts) and elided_starts[first_elided] < end
        owner.instructions.append(Position(name, line, column, is_elided))
    return [computation for _, computation in found]


def instruction_starts(text: str) -> list[int]:
    """Where the instructions of the text begin."""
    return [start for start, _ in _instructions(without_opaque(text))]


def first_failing(text: str, fails: Callable[[str], bool]) -> tuple[int, int] | None:
    """The line and column of the first instruction after which a text fails; None if it does so as a whole only."""
    starts = instruction_starts(text)
    # Without the bracket at the end, with which the whole is looked at.
    ends = [*starts[1:], len(text.rstrip().removesuffix("}"))]
    if not starts or not fails(text[: ends[-1]]):
        return None
    start = starts[bisect.bisect_left(range(len(starts) - 1), True, key=lambda number: fails(text[: ends[number]]))]
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def replication(text: str) -> dict[str, int]:
    """``num_partitions`` and ``replica_count`` of the module line, which the proto does not carry."""
    start = re.search(r"^\s*HloModule[^\n]*(?:\n[ \t]+[^\n]*)*", without_opaque(text))
    return {name: int(count) for name, count in _REPLICATION.findall(start[0])} if start else {}


def positions(text: str, parsed: Iterable[Computation]) -> tuple[dict[int, Position], dict[str, int]]:
    """Where the instructions of the parsed module are in the text.

    The parser makes names unique over the module (``p0`` becomes ``p0.1``), so instructions are paired by their order
    within a computation, and by name only where the parser added some of its own.

    Returns:
        The position of the instruction with that running number, and the line of the computation of that name.
    """
    unpaired = _Unpaired(computations(text))
    found: dict[int, Position] = {}
    lines: dict[str, int] = {}
    number = 0
    parsed = list(parsed)
    for computation in parsed:
        source = unpaired.take(computation)
        if source is not None:
            lines["main" if computation.is_entry else function_name(computation.name)] = source.line
            for index, position in _pair(computation, source.instructions):
                found[number + index] = position
        number += len(computation.instructions)
    _place_wrapped(parsed, found)
    return found, lines


def _place_wrapped(parsed: Iterable[Computation], found: dict[int, Position]) -> None:
    """The parser makes a computation of what ``add-start`` runs, or ``to_apply={…}``: it is where that one is."""
    numbers: dict[int, range] = {}
    callers: list[tuple[int, Instruction]] = []
    number = 0
    for computation in parsed:
        numbers[computation.identity] = range(number, number + len(computation.instructions))
        # The outermost callers first, which are the last computations.
        callers[:0] = [(number + index, one) for index, one in enumerate(computation.instructions) if one.called]
        number += len(computation.instructions)
    for caller, instruction in callers:
        if caller in found:
            for inner in (inner for called in instruction.called for inner in numbers.get(called, ())):
                found.setdefault(inner, found[caller])


def function_name(computation: str) -> str:
    """The symbol that XLA's converter gives a computation."""
    return re.sub(r"[^\w.$]", "_", computation)


class _Unpaired:
    """Computations of the text that no parsed one has taken yet, by their names."""

    def __init__(self, found: list[TextComputation]) -> None:
        self.found = found
        self.taken: set[int] = set()
        # The first one is the last of its list. Entries have a name of their own here.
        self.by_name: dict[str | None, list[int]] = {}
        self.by_base: dict[str, list[int]] = {}
        for number in reversed(range(len(found))):
            self.by_name.setdefault(found[number].name, []).append(number)
            self.by_base.setdefault(_base(found[number].name), []).append(number)
            if found[number].is_entry:
                self.by_name.setdefault(None, []).append(number)

    def take(self, computation: Computation) -> TextComputation | None:
        """The first of that name, or the entry; else the first whose name differs by what the parser added."""
        fitting = [self.by_name.get(computation.name, []), self.by_name.get(None, []) if computation.is_entry else []]
        numbers = [number for one in fitting if (number := self.first(one)) is not None]
        chosen = min(numbers) if numbers else self.first(self.by_base.get(_base(computation.name), []))
        if chosen is None:
            return None
        self.taken.add(chosen)
        return self.found[chosen]

    def first(self, numbers: list[int]) -> int | None:
        while numbers and numbers[-1] in self.taken:
            numbers.pop()
        return numbers[-1] if numbers else None


def _pair(computation: Computation, source: list[Position]) -> Iterable[tuple[int, Position]]:
    index_of = {id(instruction): index for index, instruction in enumerate(computation.instructions)}
    ordered: list[Instruction] = computation.in_text_order()
    if len(ordered) == len(source) and all(_same_base(p.name, i.name) for i, p in zip(ordered, source, strict=True)):
        return [(index_of[id(i)], p) for i, p in zip(ordered, source, strict=True)]
    by_name = {position.name: position for position in source}
    pairs = ((index_of[id(i)], by_name.get(i.name) or by_name.get(_base(i.name))) for i in ordered)
    return [(index, position) for index, position in pairs if position is not None]


def _base(name: str) -> str:
    """The name without the numbers at its end: ``p0`` of ``p0.1.2``."""
    end = len(name)
    while (dot := name.rfind(".", 0, end)) >= 0 and name[dot + 1 : end].isdecimal():
        end = dot
    return name[:end]


def _same_base(text_name: str, name: str) -> bool:
    return text_name == name or _base(text_name) == _base(name)


def elided_constants(text: str) -> list[Position]:
    """The instructions whose values were dropped when the text was printed, in the order of the text."""
    if "..." not in text:
        return []
    return [position for entry in computations(text) for position in entry.instructions if position.elided]


def parse_error(message: str) -> tuple[str, int, int]:
    """XLA's parser message as (message, line, column), zeros where it names none."""
    found = _ERROR.findall(message)
    if not found:
        return message.strip().splitlines()[0], 0, 0
    # The first of several may say only what the others explain: "cannot parse as …:".
    line, column, text = found[1] if found[0][2].endswith(":") and found[1:] else found[0]
    return text, int(line), int(column)


def blamed(text: str, message: str, line: int, column: int) -> tuple[int, int]:
    """The line and column of what the parser's message is about.

    What it finds once an instruction is read, it reports at the token that follows. It is the instruction before where
    that token begins a line, except if it says what it expects there.
    """
    lines = text.splitlines()
    if not 0 < line <= len(lines) or lines[line - 1][: column - 1].strip() or message.startswith("expect"):
        return line, column
    before = "\n".join(without_opaque(text).splitlines()[: line - 1])
    starts = [start for start, _ in _instructions(before)]
    if not starts:
        return line, column
    start = starts[-1]
    number = text.count("\n", 0, start)
    return number + 1, start - (text.rfind("\n", 0, start) + 1) + 1


def unknown_attribute(message: str) -> str:
    """The attribute that the parser does not know; empty for another error."""
    match = _UNKNOWN_ATTRIBUTE.search(message)
    return match[1] if match else ""


def drop_attribute(text: str, name: str, line: int, column: int) -> tuple[str, str] | None:
    """Take ``, name=value`` out of the text, the one that ends nearest before the position.

    Returns:
        The new text, lines kept, and what was removed; None if the attribute is not there.
    """
    lines = text.splitlines(keepends=True)
    if not 0 < line <= len(lines):
        return None
    limit = sum(map(len, lines[: line - 1])) + column
    plain = without_opaque(text)
    matches = [m for m in re.finditer(rf",\s*{re.escape(name)}\s*=", plain) if m.start() < limit]
    if not matches:
        return None
    start = matches[-1].start()
    end = _value_end(plain, matches[-1].end())
    removed = text[start:end]
    return text[:start] + "\n" * removed.count("\n") + text[end:], removed[1:].strip()


def drop_from_metadata(text: str, name: str) -> str:
    """Blank out ``name=value`` wherever it is in ``metadata={…}``, which changes no result. Places are kept."""
    plain = without_opaque(text)
    key = re.compile(rf"(?<![\w.]){re.escape(name)}\s*=\s*")
    pieces, done, closed = [], 0, 0
    for metadata in _METADATA.finditer(plain):
        if metadata.start() < closed:
            continue  # inside of the one before, where it was looked for
        closed = _closing(plain, metadata.end())
        for found in key.finditer(plain, metadata.end(), closed):
            if found.start() >= done:
                end = _metadata_value_end(text, plain, found.end())
                pieces += [text[done : found.start()], _blanked(text[found.start() : end])]
                done = end
    return "".join([*pieces, text[done:]])


def _metadata_value_end(text: str, plain: str, position: int) -> int:
    """Behind a value, and the comma that may follow it."""
    if text.startswith("{", position):
        position = _closing(plain, position + 1) + 1
    elif value := _METADATA_VALUE.match(text, position):
        position = value.end()
    comma = _COMMA.match(plain, position)
    return comma.end() if comma else position


def _closing(plain: str, position: int) -> int:
    """Where the brace that is open at the position closes."""
    depth = 1
    for brace in _BRACE.finditer(plain, position):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(plain)


def _blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _value_end(plain: str, position: int) -> int:
    depth = 0
    for index in range(position, len(plain)):
        char = plain[index]
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
            if depth < 0:
                return index
        elif depth == 0 and char in ",\n":
            return index
    return len(plain)
