"""The text of a kernel for tests of algorithms: an entry that calls functions over arrays one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I32, I64, POINTER, Value

# Of ``iree_hal_executable_dispatch_state_v0_t`` and ``iree_hal_executable_workgroup_state_v0_t``, in bytes.
_WORKGROUPS, _POINTERS = 12, 32
_ATTRIBUTES = 'nounwind "no-trapping-math"="true" "prefer-vector-width"="{bits}"'


class Kernel:
    """The text of a kernel while it is written.

    Args:
        bindings: how many arrays it is given.
        vector_bytes: of the processor's registers.

    Attributes:
        entry: its first function, which runs once for each workgroup.
        arrays: pointers to the bindings, in the entry.
        workgroup: the number of this one, in the entry, of 64 bits.
    """

    def __init__(self, bindings: int, vector_bytes: int = 64) -> None:
        self.entry = Function()
        self._functions: list[tuple[Function, str]] = []
        self._globals: list[str] = []
        self._attributes = _ATTRIBUTES.format(bits=vector_bytes * 8)
        entry = self.entry
        table = entry.load(entry.offset(Value(entry, POINTER, "%state"), "i8", _POINTERS), POINTER)
        self.arrays = [entry.load(entry.offset(table, POINTER, number), POINTER) for number in range(bindings)]
        self.workgroup = entry.load(Value(entry, POINTER, "%workgroup"), I32).as_(I64, signed=False)

    def part(
        self, pointers: Sequence[Value], numbers: Sequence[Value] = ()
    ) -> tuple[Function, list[Value], list[Value]]:
        """A function that the entry calls here; it sees arrays that share no memory unless nobody writes them.

        Args:
            pointers: values of the entry, of which no two arrays overlap where one is written.
            numbers: other values of the entry.

        Returns:
            the function to write, with its own names of both.
        """
        function = Function()
        name = f"@{ENTRY}.{len(self._functions)}"
        own = [Value(function, POINTER, f"%p{place}") for place in range(len(pointers))]
        others = [Value(function, number.kind, f"%n{place}") for place, number in enumerate(numbers)]
        taken = [f"ptr noalias noundef {pointer.text}" for pointer in own]
        taken += [f"{number.kind} noundef {number.text}" for number in others]
        self._functions.append((function, f"define internal void {name}({', '.join(taken)}) noinline #0"))
        self.entry.do(f"call void {name}({', '.join(map(repr, (*pointers, *numbers)))})")
        return function, own, others

    def table(self, kind: str, numbers: Sequence[str]) -> str:
        """The name of a constant array, whose elements are given as LLVM spells them."""
        name = f"@{ENTRY}.t{len(self._globals)}"
        items = ", ".join(f"{kind} {number}" for number in numbers)
        self._globals.append(f"{name} = private unnamed_addr constant [{len(numbers)} x {kind}] [{items}], align 64")
        return name

    def text(self) -> str:
        """The whole of it; every function but the entry ends with ``ret void`` here."""
        number, parts = 0, []
        definitions = dict(self.entry.definitions)
        for function, header in self._functions:
            function.do("ret void")
            definitions |= function.definitions
            text, number = function.text(header, number)
            parts.append(text)
        self.entry.do("ret i32 0")
        header = f"define i32 @{ENTRY}(ptr %environment, ptr %state, ptr %workgroup) #0"
        text, number = self.entry.text(header, number)
        return "\n".join(
            (*self._globals, *definitions.values(), *parts, text, f"attributes #0 = {{ {self._attributes} }}\n")
        )
