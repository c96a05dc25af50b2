"""A kernel as it is written: one function over the slots that it touches.

Slots are pointers, each with metadata that it shares no memory with any other, so that LLVM keeps elements in registers
and makes vectors without looking whether arrays overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hloforge.pipelines.codegen.elements.memory import size as element_size
from hloforge.pipelines.codegen.emit import Memory
from hloforge.pipelines.codegen.kernel_program import ENTRY, FEW_PASSES
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I32, I64, POINTER, Value
from hloforge.pipelines.codegen.slots import Slot, Where

# Of ``iree_hal_executable_dispatch_state_v0_t``, in bytes.
_POINTERS = 32
# IREE's runtime binds at most 32 arrays to a dispatch.
MOST_BINDINGS = 28
# What of these is bound together where a kernel touches more slots than that.
_BUFFERS = (Where.TRANSIENT, Where.CONSTANT)
_ATTRIBUTES = 'nounwind "no-trapping-math"="true" "prefer-vector-width"="{bits}"'


class KernelWriter:
    """The text of a kernel.

    Args:
        vector_bytes: of the processor's registers.
        cached: bytes that the cache of all cores holds: what loops write that go over more is written past it
            (``streams.py``); 0 for never.
        fuses: whether the processor has an instruction that multiplies and adds with one rounding.

    Attributes:
        function: its code.
        slots: that it touches, in the order of its code.
        stack: bytes of its stack that are taken.
        shares: most workgroups that a step in one of its loops is shared out to (``shared_steps.py``).
    """

    def __init__(self, vector_bytes: int, cached: int = 0, *, fuses: bool = False) -> None:
        self.cached = cached
        self.function = Function(vector_bytes, fuses=fuses)
        self.slots: list[Slot] = []
        self.stack = 0
        self.shares = 1
        self._memories: dict[Slot, Memory] = {}
        # Metadata of slots, and of their parts.
        self._accesses: dict[Slot, str] = {}
        self.vector_bytes = vector_bytes
        self._bits = vector_bytes * 8
        self._workgroup: Value | None = None
        self._scopes = 0

    @property
    def lines(self) -> int:
        return len(self.function.lines)

    def memory(self, slot: Slot) -> Memory:
        """A slot in this kernel's code."""
        if slot not in self._memories:
            pointer, whole = self._pointer(slot), slot.whole or slot
            if whole not in self._accesses:
                self._accesses[whole] = self._access()
            self._memories[slot] = Memory(pointer, slot.element, self._accesses[whole])
        return self._memories[slot]

    def let(self, slot: Slot, memory: Memory) -> None:
        """Let a slot be found at another address in the code that follows."""
        self._memories[slot] = memory

    def _pointer(self, slot: Slot) -> Value:
        if slot.where is Where.STACK:
            self.stack += slot.size
            bytes_of_one = element_size(slot.element)
            return self.function.stack(f"[{bytes_of_one} x i8]", max(slot.size // bytes_of_one, 1))
        self.slots.append(slot)
        return Value(self.function, POINTER, f"%binding{len(self.slots) - 1}")

    def bindings(self) -> list[Slot]:
        """What a dispatch binds: the slots, or a part of a buffer for all slots in it where there are too many."""
        if len(self.slots) <= MOST_BINDINGS:
            return self.slots
        found = [slot for slot in self.slots if slot.where not in _BUFFERS]
        for where in _BUFFERS:
            if inside := [slot for slot in self.slots if slot.where is where]:
                first = min(slot.offset for slot in inside)
                last = max(slot.offset + slot.size for slot in inside)
                found.append(Slot(where, last - first, "i8", offset=first))
        return found

    def _pointers(self) -> str:
        """Code that finds the slots."""
        lines = []
        bindings = self.bindings()
        parts = {slot.where: (number, slot) for number, slot in enumerate(bindings) if slot.where in _BUFFERS}
        is_whole = bindings is self.slots
        for number in range(len(bindings)):
            name = f"%binding{number}" if is_whole else f"%part{number}"
            lines.append(f"  %place{number} = getelementptr inbounds ptr, ptr %table, i64 {number}")
            lines.append(f"  {name} = load ptr, ptr %place{number}, align 8, !invariant.load !{{}}")
        for number, slot in enumerate(() if is_whole else self.slots):
            part, whole = parts.get(slot.where) or (bindings.index(slot), slot)
            distance = slot.offset - whole.offset
            lines.append(f"  %binding{number} = getelementptr inbounds i8, ptr %part{part}, i64 {distance}")
        return "".join(line + "\n" for line in lines)

    def _access(self) -> str:
        self._scopes += 1
        return f", !KERNEL_SCOPE_{self._scopes - 1}!"

    def workgroup(self) -> Value:
        """The number of this workgroup, of 64 bits."""
        if self._workgroup is None:
            self._workgroup = Value(self.function, I64, "%group")
            self.function.prologue(
                f"%number = load {I32}, ptr %workgroup, align 4", f"%group = zext {I32} %number to {I64}"
            )
        return self._workgroup

    def text(self) -> str:
        """The whole of it."""
        self.function.do("ret i32 0")
        table = f"  %slots = getelementptr inbounds i8, ptr %state, i64 {_POINTERS}\n  %table = load ptr, ptr %slots\n"
        header = f"define i32 @{ENTRY}(ptr %environment, ptr %state, ptr %workgroup) #0"
        text, number = self.function.text(header, 0, table + self._pointers())
        text, nodes = with_scopes(text, self._scopes, number)
        passes = "" if self.function.has_scalar_loops else FEW_PASSES
        return passes + "\n".join((*self.function.definitions.values(), text, nodes, self._attributes))

    def parts(self) -> Iterator[tuple[str, str]]:
        """Functions that the text calls and has not, by their names: texts of their own."""
        for name, text in self.function.apart():
            yield name, f"{FEW_PASSES}{text}\n{self._attributes}"

    @property
    def _attributes(self) -> str:
        return f"attributes #0 = {{ {_ATTRIBUTES.format(bits=self._bits)} }}\n"


def with_scopes(text: str, count: int, number: int) -> tuple[str, str]:
    """The text with metadata in the places of marks, and the metadata's nodes.

    Scopes of all slots but one would be a list for each slot, of their number. A scope for each value of each bit of a
    slot's number says the same by lists of so many bits: two slots differ in one at least, and LLVM takes it for enough
    if the scopes of one domain are apart.
    """
    if count < 2:
        return re.sub(r", !KERNEL_SCOPE_\d+!", "", text), ""
    used = sorted({int(found) for found in re.findall(r"!KERNEL_SCOPE_(\d+)!", text)})
    bits = range(max(len(used) - 1, 1).bit_length())
    nodes = []
    for bit in bits:
        domain = number + 3 * bit
        nodes.append(f"!{domain} = distinct !{{!{domain}}}")
        nodes += (f"!{scope} = distinct !{{!{scope}, !{domain}}}" for scope in (domain + 1, domain + 2))
    lists = number + 3 * len(bits)
    places = {scope: place for place, scope in enumerate(used)}
    for place in places.values():
        values = [place >> bit & 1 for bit in bits]
        for other in (0, 1):
            chosen = ", ".join(f"!{number + 3 * bit + 1 + (value ^ other)}" for bit, value in enumerate(values))
            nodes.append(f"!{lists + 2 * place + other} = !{{{chosen}}}")

    def named(match: re.Match[str]) -> str:
        own = lists + 2 * places[int(match[1])]
        return f", !alias.scope !{own}, !noalias !{own + 1}"

    return re.sub(r", !KERNEL_SCOPE_(\d+)!", named, text), "\n".join(nodes)
