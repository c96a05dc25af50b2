"""Functions of a kernel as they are written: instructions, loops, branches, memory."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, overload

from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.lang.addresses import with_bases
from hloforge.pipelines.codegen.lang.values import (
    BFLOAT,
    DOUBLE,
    I1,
    I8,
    I64,
    POINTER,
    Number,
    Value,
    bits_of,
    element_of,
    integer_of,
    lanes_of,
    literal,
    vector_of,
)

# A function whose result depends on its operands alone.
_PURE = "memory(none) willreturn"
# Loops with this hint are written out by LLVM.
UNROLLED = "unroll.full"
# Lines that such a loop may become: LLVM takes some 0.1 ms for each.
_MOST_WRITTEN_OUT = 256
# Metadata of stores past the caches.
STREAMED = ", !KERNEL_STREAM!"
# LLVM makes no vectors of loops with this one.
NO_VECTORS = "vectorize.enable=i1 false"
_VECTOR = re.compile(r"<\d+ x ")
# What a loop's body is given: its counter, or that and what is carried.
Entered = TypeVar("Entered")


class Function:
    """The body of a function.

    Attributes:
        vector_bytes: of the processor's registers; 0 where functions of numbers are not called with vectors.
        fuses: whether the processor has an instruction that multiplies and adds with one rounding.
        lines: of LLVM's text so far.
        access: metadata of loads and stores that follow, which says what memory they share with no other.
        has_scalar_loops: whether LLVM's loop passes gain: an innermost loop has no vectors of its own.
        definitions: of tables and functions that it shares with others of its text, by their names; whoever writes
            the text adds them.
        near: arrays that are read from a later element on, with that element's number and what finds the memory from
            there on.
    """

    def __init__(self, vector_bytes: int = 0, *, fuses: bool = False) -> None:
        self.vector_bytes = vector_bytes
        self.fuses = fuses
        self.lines: list[str] = []
        self.access = ""
        self.has_scalar_loops = False
        self.definitions: dict[str, str] = {}
        self.near: dict[Any, tuple[int, Callable[[], Any]]] = {}
        # Places in the lines behind which loops have ended that stay loops.
        self._ended = 0
        self._count = 0
        self._block = "entry"
        # Of the entry, where stack memory is taken: in a loop it would grow.
        self._stack: list[str] = []
        # Addresses in it.
        self._local: set[str] = set()
        # Whether vectors of f32 become bf16 by the processor's instruction, which takes subnormal numbers for zero.
        self.rounds_bfloat = False
        self._metadata: list[str] = []
        # Functions that it calls (``outlining.py``), by their texts.
        self._parts: dict[str, Part] = {}

    # Instructions

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def carried_address(self) -> str:
        """A name for the address of an array that a loop carries (``turns.py``)."""
        self._count += 1
        return f"%turn{self._count}"

    def emit(self, text: str, kind: str) -> Value:
        """An instruction with a result of a type."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return Value(self, kind, name)

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def constant(self, number: float, kind: str) -> Value:
        """A number, or a vector that repeats it."""
        lanes, element = lanes_of(kind), element_of(kind)
        text = literal(number, element)
        return Value(self, kind, f"splat ({element} {text})" if lanes else text)

    def hidden(self, constant: Value) -> Value:
        """A constant number, of which LLVM does not know which it is."""
        name, kind = f"%hidden_{zlib.crc32(repr(constant).encode()):x}", constant.kind
        bits = kind if kind.startswith("i") else f"i{bits_of(kind)}"
        self.prologue(
            f"{name}_given = bitcast {kind} {constant.text} to {bits}",
            f'{name}_bits = call {bits} asm "", "=r,0"({bits} {name}_given)',
            f"{name} = bitcast {bits} {name}_bits to {kind}",
        )
        return Value(self, kind, name)

    def index(self, number: Number) -> Value:
        """A number of 64 bits."""
        return number if isinstance(number, Value) else Value(self, I64, str(int(number)))

    def binary(self, what: str, left: Value, right: Value) -> Value:
        return self.emit(f"{what} {left.kind} {left.text}, {right.text}", left.kind)

    def cast(self, what: str, value: Value, element: str) -> Value:
        kind = vector_of(element, lanes_of(value.kind))
        return self.emit(f"{what} {value.kind} {value.text} to {kind}", kind)

    def intrinsic(self, name: str, kind: str, *operands: Value, flags: str = "") -> Value:
        """A call of ``llvm.NAME`` that is overloaded for a type."""
        lanes = lanes_of(kind)
        short = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(
            element_of(kind), element_of(kind)
        )
        suffix = f"v{lanes}{short}" if lanes else short
        # These say what they give where an operand is zero or the smallest integer.
        extra = ", i1 false" if name in ("ctlz", "cttz", "abs") else ""
        arguments = ", ".join(map(repr, operands))
        return self.emit(f"call {flags}{kind} @llvm.{name}.{suffix}({arguments}{extra})", kind)

    def spread(self, value: Value, lanes: int) -> Value:
        """A vector that repeats a number."""
        kind = vector_of(value.kind, lanes)
        if value.is_constant:
            return Value(self, kind, f"splat ({value.kind} {value.text})")
        first = self.emit(f"insertelement {kind} poison, {value.kind} {value.text}, i64 0", kind)
        return self.emit(f"shufflevector {kind} {first.text}, {kind} poison, <{lanes} x i32> zeroinitializer", kind)

    def shuffle(self, left: Value, right: Value | None, places: Sequence[int]) -> Value:
        """Elements of one or two vectors, by their places in both."""
        if element_of(left.kind) == BFLOAT:
            words = [one if one is None else self._retyped(one, integer_of(one.kind)) for one in (left, right)]
            assert words[0] is not None
            return self._retyped(self.shuffle(words[0], words[1], places), vector_of(BFLOAT, len(places)))
        mask = ", ".join(f"i32 {place}" for place in places)
        kind = vector_of(element_of(left.kind), len(places))
        other = right.text if right is not None else "poison"
        return self.emit(
            f"shufflevector {left.kind} {left.text}, {left.kind} {other}, <{len(places)} x i32> <{mask}>", kind
        )

    def joined(self, vectors: Sequence[Value]) -> Value:
        """A vector of the elements of a power of two of others."""
        if len(vectors) == 1:
            return vectors[0]
        middle = len(vectors) // 2
        left, right = self.joined(vectors[:middle]), self.joined(vectors[middle:])
        return self.shuffle(left, right, range(2 * lanes_of(left.kind)))

    def extract(self, vector: Value, place: Number) -> Value:
        at = self.index(place)
        return self.emit(f"extractelement {vector.kind} {vector.text}, {at}", element_of(vector.kind))

    # Constants in memory

    def table(self, numbers: Sequence[float], kind: str) -> Value:
        """The address of a constant array; equal ones are there once."""
        items = ", ".join(f"{kind} {literal(number, kind)}" for number in numbers)
        name = f"@{ENTRY}.table{zlib.crc32(items.encode()):08x}"
        array = f"[{len(numbers)} x {kind}] [{items}]"
        self.definitions[name] = f"{name} = private unnamed_addr constant {array}, align 64"
        return Value(self, POINTER, name)

    # Functions that the text has once

    def shared(
        self, name: str, arguments: Sequence[Value], results: Sequence[str], write: Callable[..., Sequence[Value]]
    ) -> list[Value]:
        """What a function gives that seldom runs, called here.

        Args:
            name: that no other one has.
            arguments: numbers or vectors, by which ``write`` makes its results.
            results: their types.
        """
        kind = f"{{ {', '.join(results)} }}"

        def write_all(*given: Value) -> Value:
            made = Value(given[0].function, kind, "poison")
            for place, value in enumerate(write(*given)):
                made = value.function.emit(f"insertvalue {made}, {value}, {place}", kind)
            return made

        called = self._defined(name, [argument.kind for argument in arguments], kind, write_all, "cold")
        found = self.emit(f"call {kind} {called}({', '.join(map(repr, arguments))})", kind)
        return [self.emit(f"extractvalue {found}, {place}", result) for place, result in enumerate(results)]

    def vectorizable_call(self, name: str, operands: Sequence[Value], write: Callable[..., Value]) -> Value:
        """A function of numbers of a type that gives another one, called here.

        LLVM calls it with vectors where it makes them of a loop, which may have branches inside so.
        """
        kind, count = operands[0].kind, len(operands)
        lanes = self.vector_bytes * 8 // bits_of(kind)
        if lanes_of(kind) or lanes < 2:
            return write(*operands)
        narrow = self._defined(f"{name}.{kind}", [kind] * count, kind, write, _PURE, linkage="hidden")
        # What is left of a loop has shorter vectors.
        variants = [self._variant(name, kind, narrow, size, count, write) for size in (lanes, lanes // 2) if size > 1]
        given = ", ".join(map(repr, operands))
        known = f'"vector-function-abi-variant"="{",".join(variants)}"'
        return self.emit(f"call {kind} {narrow}({given}) {_PURE} {known}", kind)

    def _variant(self, name: str, kind: str, narrow: str, lanes: int, count: int, write: Callable[..., Value]) -> str:
        """What LLVM calls a function of vectors of so many lanes; see its ``VFABIDemangler.h``."""
        many = vector_of(kind, lanes)
        # Hidden, because LLVM changes or drops what only its own text calls, and calls of these are to come.
        wide = self._defined(f"{name}.{kind}.{lanes}", [many] * count, many, write, _PURE, linkage="hidden")
        return f"_ZGV_LLVM_N{lanes}{'v' * count}_{narrow[1:]}({wide[1:]})"

    def _defined(
        self,
        name: str,
        arguments: Sequence[str],
        result: str,
        write: Callable[..., Value],
        attributes: str,
        *,
        linkage: str = "internal",
    ) -> str:
        """The name of a function, which is written unless it is there."""
        name = f"@{ENTRY}.{name}"
        if name not in self.definitions:
            body = Function(self.vector_bytes, fuses=self.fuses)
            given = [Value(body, kind, f"%a{place}") for place, kind in enumerate(arguments)]
            body.do(f"ret {write(*given)}")
            # Metadata would have the numbers of those of the function that calls it.
            assert not body._metadata, name
            header = f"define {linkage} {result} {name}({', '.join(map(repr, given))}) noinline {attributes} #0"
            self.definitions |= {**body.definitions, name: body.text(header)[0]}
        return name

    # Memory

    def load(self, pointer: Value, kind: str, align: int = 0) -> Value:
        """What is at an address; ``align`` is known of it, in bytes (0: as for an element of the type)."""
        suffix = f", align {align}" if align else f", align {_align(kind)}"
        # LLVM ends the process at some vectors of bfloat16 that only move ("soft promote this operator's operand").
        stored = integer_of(kind) if lanes_of(kind) and element_of(kind) == BFLOAT else kind
        found = self.emit(f"load {stored}, ptr {pointer.text}{suffix}{self.access}", stored)
        return found if stored == kind else self._retyped(found, kind)

    def lookup(self, table: Value, element: str, place: Value) -> Value:
        """An element of an array, or those at the places of a vector."""
        lanes = lanes_of(place.kind)
        if not lanes:
            return self.load(self.offset(table, element, place), element)
        pointers, kind = vector_of(POINTER, lanes), vector_of(element, lanes)
        found = self.emit(f"getelementptr inbounds {element}, ptr {table.text}, {place}", pointers)
        suffix = f"v{lanes}{'f64' if element == DOUBLE else element}.v{lanes}p0"
        everywhere = f"<{lanes} x i1> splat (i1 true)"
        return self.emit(
            f"call {kind} @llvm.masked.gather.{suffix}({found}, i32 {_align(element)}, {everywhere}, {kind} poison)",
            kind,
        )

    def _retyped(self, value: Value, kind: str) -> Value:
        return self.emit(f"bitcast {value} to {kind}", kind)

    def store(self, value: Value, pointer: Value, align: int = 0) -> None:
        suffix = f", align {align}" if align else f", align {_align(value.kind)}"
        self.do(f"store {value.kind} {value.text}, ptr {pointer.text}{suffix}{self.access}")

    def fence(self) -> None:
        """Let others see what was stored past the caches before what follows is."""
        self.do("fence seq_cst")

    def offset(self, pointer: Value, kind: str, place: Number) -> Value:
        """The address of an element of an array of this element type."""
        if not isinstance(place, Value) and place == 0:
            return pointer
        return self._address(f"getelementptr inbounds {kind}", pointer, self.index(place))

    def moved(self, pointer: Value, distance: Value) -> Value:
        """An address so many bytes away, which may lie outside of its array."""
        return self._address("getelementptr i8", pointer, distance)

    def prefetch(self, address: Value, level: int = 1, *, writes: bool = False) -> None:
        """Let the processor get a line that is read or written later into this level of its caches and those below.

        The line may lie outside of its array, because no fault follows: see ``moved``.
        """
        kind = int(writes)
        self.do(f"call void @llvm.prefetch.p0(ptr {address.text}, i32 {kind}, i32 {4 - level}, i32 1)")

    def _address(self, what: str, pointer: Value, distance: Value) -> Value:
        found = self.emit(f"{what}, ptr {pointer.text}, {distance}", POINTER)
        if pointer.text in self._local:
            self._local.add(found.text)
        return found

    def stack(self, kind: str, count: int = 1, align: int = 64) -> Value:
        """Memory of the call, not set, for ``count`` elements."""
        name = self.name()
        self._stack.append(f"  {name} = alloca {kind}, i64 {count}, align {align}")
        self._local.add(name)
        return Value(self, POINTER, name)

    def clear(self, pointer: Value, size: Number) -> None:
        """Set bytes to zero."""
        self.do(f"call void @llvm.memset.p0.i64(ptr {pointer.text}, i8 0, {self.index(size)}, i1 false)")

    def copy(self, target: Value, source: Value, size: Number) -> None:
        """Copy bytes that do not overlap."""
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target.text}, ptr {source.text}, {self.index(size)}, i1 false)")

    # Control

    def likely(self, condition: Value) -> Value:
        """A flag that nearly always holds: LLVM branches by it and does not select."""
        return self.emit(f"call i1 @llvm.expect.i1({condition}, i1 true)", I1)

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def begin(self, label: str) -> None:
        """Instructions that follow belong to this block."""
        self.lines.append(f"{label}:")
        self._block = label

    @property
    def block(self) -> str:
        """The label of the block that is being written."""
        return self._block

    @overload
    def loop(self, start: Number, stop: Number, step: int = 1, *, hints: str = "") -> Loop[Value]: ...

    @overload
    def loop(
        self, start: Number, stop: Number, step: int = 1, *, carried: Sequence[Value], hints: str = ""
    ) -> Loop[tuple[Value, list[Value]]]: ...

    def loop(
        self, start: Number, stop: Number, step: int = 1, *, carried: Sequence[Value] | None = None, hints: str = ""
    ) -> Loop[Any]:
        """``with function.loop(0, n) as i``; with ``carried`` values see ``Loop``.

        Args:
            hints: metadata of LLVM's loop passes, such as ``unroll.disable`` or ``vectorize.enable``, by commas.
        """
        return Loop(self, self.index(start), self.index(stop), step, carried, hints)

    @contextmanager
    def if_(self, condition: Value) -> Iterator[None]:
        """Instructions that run where a flag holds."""
        yes, after = self.label(), self.label()
        self.do(f"br i1 {condition.text}, label %{yes}, label %{after}")
        self.begin(yes)
        yield
        self.do(f"br label %{after}")
        self.begin(after)

    def branch(
        self, condition: Value, yes: Callable[[], Sequence[Value]], no: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """The values of one of two functions, of which only that one runs."""
        labels = self.label(), self.label(), self.label()
        self.do(f"br i1 {condition.text}, label %{labels[0]}, label %{labels[1]}")
        found: list[tuple[str, Sequence[Value]]] = []
        for label, run in zip(labels, (yes, no), strict=False):
            self.begin(label)
            values = run()
            found.append((self.block, values))
            self.do(f"br label %{labels[2]}")
        self.begin(labels[2])
        (first, yeses), (second, noes) = found
        return [
            self.emit(f"phi {y.kind} [ {y.text}, %{first} ], [ {n.text}, %{second} ]", y.kind)
            for y, n in zip(yeses, noes, strict=True)
        ]

    def metadata(self, hints: str) -> str:
        """The name of a loop's metadata, which ``text`` numbers."""
        self._metadata.append(hints)
        return f"!KERNEL_LOOP_{len(self._metadata) - 1}!"

    def hints(self, mark: str) -> str:
        """What ``metadata`` was told of a loop, by the name that it gave."""
        return self._metadata[int(mark.strip("!").rpartition("_")[2])]

    def note_loop(self, place: int, hints: str) -> bool:
        """Tell of a loop that ends here, whose body begins at a place of the lines; whether no loop is inside."""
        if hints == UNROLLED:
            # What it repeats belongs to the loop around it.
            return False
        is_innermost, self._ended = self._ended <= place, len(self.lines)
        if is_innermost and not self.has_scalar_loops and NO_VECTORS not in hints:
            self.has_scalar_loops = not any(_VECTOR.search(line) for line in self.lines[place:])
        return is_innermost

    def shorten_addresses(self, place: int, counters: Sequence[str]) -> int:
        """Let addresses in a loop be made of its own counters; how many lines now stand before it.

        Args:
            place: of its body in the lines, behind the branch into it and its label.
        """
        found = with_bases(self.lines[place:], counters, self._local, self.name)
        if found is None:
            return 0
        self.lines[place - 2 :] = [*found[0], *self.lines[place - 2 : place], *found[1]]
        return len(found[0])

    def prologue(self, *lines: str) -> None:
        """Instructions at the beginning of the function, before those of its body; equal ones stand there once."""
        self._stack += [text for line in lines if (text := f"  {line}") not in self._stack]

    @property
    def beginning(self) -> tuple[str, ...]:
        """The lines of ``prologue`` and ``stack``."""
        return tuple(self._stack)

    def resume(self, block: str) -> None:
        """Lines behind those that are left, all of which are in place, belong to a block that was begun before."""
        self._block, self._ended = block, min(self._ended, len(self.lines))

    def part(self, body: Function, prefix: str, arguments: int, *, has_vectors: bool) -> str:
        """The name of a function ``i32 NAME(ptr %a0, ptr %a1 …)`` that ``text`` writes, one for equal bodies.

        Args:
            has_vectors: whether it has no loop that LLVM would make vectors of.
        """
        text = body.text("")[0]
        key = f"{arguments} {text}"
        if key not in self._parts:
            # What other functions and tables of the kernel are needed for stays in its text.
            is_alone = has_vectors and f"@{prefix}" not in text
            own = hashlib.sha256(key.encode()).hexdigest()[:16] if is_alone else f"part{len(self._parts)}"
            self._parts[key] = Part(f"@{prefix}.{own}", arguments, body, is_alone)
        return self._parts[key].name

    def apart(self) -> Iterator[tuple[str, str]]:
        """The parts that ``text`` only declares, which need few of LLVM's passes: names, and texts for those."""
        for part in self._parts.values():
            if self._is_apart(part):
                yield part.name[1:], part.body.text(f"define i32 {part.name}({part.taken}) #0")[0]

    def _is_apart(self, part: Part) -> bool:
        return part.is_alone and self.has_scalar_loops

    def text(self, header: str, number: int = 0, start: str = "") -> tuple[str, int]:
        """The function, and the number of the next metadata.

        Args:
            header: what stands before the body, such as ``define i32 @kernel(ptr %a)``.
            number: of the first metadata.
            start: lines before all others.
        """
        body = "\n".join(self.lines)
        nodes = []
        for place, hints in enumerate(self._metadata):
            parts, items = [], [f"!{number}"]
            for offset, hint in enumerate(hints.split(","), 1):
                what, _, value = hint.partition("=")
                suffix = f", {value}" if value else ""
                parts.append(f'!{number + offset} = !{{!"llvm.loop.{what}"{suffix}}}')
                items.append(f"!{number + offset}")
            nodes += [f"!{number} = distinct !{{{', '.join(items)}}}", *parts]
            body = body.replace(f"!KERNEL_LOOP_{place}!", f"!{number}")
            number += len(items)
        if STREAMED in body:
            body = body.replace(STREAMED, f", !nontemporal !{number}")
            nodes.append(f"!{number} = !{{i32 1}}")
            number += 1
        stack = "".join(line + "\n" for line in self._stack)
        text = f"{header} {{\nentry:\n{start}{stack}{body}\n}}\n" + "".join(node + "\n" for node in nodes)
        for part in self._parts.values():
            if self._is_apart(part):
                text += f"declare i32 {part.name}({', '.join(['ptr'] * part.arguments)})\n"
                continue
            part_text, number = part.body.text(f"define internal i32 {part.name}({part.taken}) noinline #0", number)
            text += part_text
        return text, number


@dataclass(frozen=True)
class Part:
    """Lines of a function that are one of their own.

    Attributes:
        is_alone: whether it may have a text of its own.
    """

    name: str
    arguments: int
    body: Function
    is_alone: bool

    @property
    def taken(self) -> str:
        """Its arguments."""
        return ", ".join(f"ptr noalias %a{number}" for number in range(self.arguments))


class Loop(Generic[Entered]):
    """A counted loop, whose body runs at least once for no ``stop`` at or below ``start``.

    One that runs once is only its body.

    ``loop = function.loop(0, n, carried=[zero])``, then ``with loop as (i, [total]): loop.next([total + x])``; its
    ``results`` are the carried values after it. Without carried values ``with function.loop(0, n) as i``.
    """

    def __init__(
        self, function: Function, start: Value, stop: Value, step: int, carried: Sequence[Value] | None, hints: str
    ) -> None:
        self._function, self._start, self._stop, self._step = function, start, stop, step
        self._carried, self._hints = tuple(carried or ()), hints
        self._is_pair = carried is not None
        self._next: list[Value] = list(self._carried)
        self.results: list[Value] = []

    def next(self, values: Sequence[Value]) -> None:
        """The carried values of the next iteration."""
        self._next = list(values)

    def __enter__(self) -> Entered:
        function = self._function
        self._before = function.block
        self._count = self._iterations()
        self._runs = self._count > 0
        if self._count == 1:
            once: Any = (self._start, list(self._carried)) if self._is_pair else self._start
            return cast(Entered, once)
        self._head, self._after = function.label(), function.label()
        if self._runs:
            function.do(f"br label %{self._head}")
        else:
            enters = self._start.compare("slt", self._stop)
            function.do(f"br i1 {enters.text}, label %{self._head}, label %{self._after}")
        function.begin(self._head)
        self._place = len(function.lines)
        self._phis = [Value(function, I64, function.name())]
        self._phis += [Value(function, value.kind, function.name()) for value in self._carried]
        entered: Any = (self._phis[0], self._phis[1:]) if self._is_pair else self._phis[0]
        return cast(Entered, entered)

    def _iterations(self) -> int:
        """How many there are; 0 if that is not known, or none."""
        if not (self._start.is_constant and self._stop.is_constant):
            return 0
        return max(0, -(-(int(self._stop.text) - int(self._start.text)) // self._step))

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        function = self._function
        if self._count == 1:
            self.results = list(self._next)
            return
        following = function.emit(f"add nuw nsw i64 {self._phis[0].text}, {self._step}", I64)
        more = following.compare("slt", self._stop)
        back = function.block
        if self._hints == UNROLLED and self._count * (len(function.lines) - self._place) > _MOST_WRITTEN_OUT:
            self._hints = ""
        hints = f", !llvm.loop {function.metadata(self._hints)}" if self._hints else ""
        function.do(f"br i1 {more.text}, label %{self._head}, label %{self._after}{hints}")
        is_innermost = function.note_loop(self._place, self._hints)
        lines = []
        for phi, first, then in zip(self._phis, (self._start, *self._carried), (following, *self._next), strict=True):
            lines.append(f"  {phi.text} = phi {phi.kind} [ {first.text}, %{self._before} ], [ {then.text}, %{back} ]")
        if is_innermost:
            self._place += function.shorten_addresses(self._place, [phi.text for phi in self._phis])
        function.lines[self._place : self._place] = lines
        function.begin(self._after)
        self.results = []
        for first, then in zip(self._carried, self._next, strict=True):
            if self._runs:
                self.results.append(then)
                continue
            self.results.append(
                function.emit(f"phi {then.kind} [ {first.text}, %{self._before} ], [ {then.text}, %{back} ]", then.kind)
            )


@dataclass(frozen=True)
class Array:
    """Elements of one LLVM type in memory.

    Attributes:
        pointer: to the first.
        kind: of an element in memory.
    """

    pointer: Value
    kind: str

    def at(self, place: Number, lanes: int = 0) -> Value:
        """An element, or as many as ``lanes`` that follow each other."""
        function = self.pointer.function
        return function.load(function.offset(self.pointer, self.kind, place), vector_of(self.kind, lanes))

    def put(self, value: Value, place: Number) -> None:
        """Write an element, or a vector of them."""
        function = self.pointer.function
        function.store(value, function.offset(self.pointer, self.kind, place))


def _align(kind: str) -> int:
    element = element_of(kind)
    if element in (I1, I8):
        return 1
    return {"i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4}.get(element, 8)
