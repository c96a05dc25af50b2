"""Looking up bytes in a table of 256 bytes, a vector of 64 at a time where the processor has an instruction for it.

A vector's lanes are looked up in both halves of the table, by seven bits each, and the eighth bit chooses.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "VPERMI2B".
"""

from __future__ import annotations

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Number, Value, vector_of
from hloforge.pipelines.codegen.products.loops import each

# The extension, by LLVM's name.
VBMI = "avx512vbmi"
_LANES, _HALF = 64, 128


def look_up(
    function: Function, table: Value, codes: Value, out: Value, first: Value, last: Value, *, by_vectors: bool
) -> None:
    """Write ``out[i] = table[codes[i]]`` from a place up to another."""
    begin: Number = first
    if by_vectors:
        wide = vector_of(I8, _LANES)
        parts = [function.load(function.offset(table, I8, place), wide, 1) for place in range(0, 2 * _HALF, _LANES)]
        begin = last - (last - first).urem(_LANES)
        with each(function, first, begin, _LANES) as place:
            numbers = function.load(function.offset(codes, I8, place), wide, 1)
            low, high = (
                function.emit(
                    f"call {wide} @llvm.x86.avx512.vpermi2var.qi.512({parts[n]}, {numbers}, {parts[n + 1]})", wide
                )
                for n in (0, 2)
            )
            mask = vector_of("i1", _LANES)
            flags = function.emit(f"icmp slt {numbers}, zeroinitializer", mask)
            found = function.emit(f"select {flags}, {high}, {low}", wide)
            function.store(found, function.offset(out, I8, place), 1)
    with each(function, begin, last) as place:
        code = function.load(function.offset(codes, I8, place), I8).as_(I64, signed=False)
        number = function.load(function.offset(table, I8, code), I8)
        function.store(number, function.offset(out, I8, place))
