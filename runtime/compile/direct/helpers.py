"""Functions of libraries that LLVM calls on its own, for code that is linked with none.

LLVM makes one call of a loop that copies or fills. These loops are marked ``no-builtins``, so that it makes none of
them. They move 64 bytes at a time; an end that is shorter overlaps what was moved before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from hloforge.pipelines.codegen.kernel_program import NO_PASSES
from hloforge.runtime.compile.direct.soft_floats import SOFT_FLOATS, TO_ODD

_CALL = re.compile(r"@llvm\.(mem\w+)\.[^\n]*, i64 (\S+), i1 ")
# Bytes that LLVM moves without a call.
_INLINE = 512
_MARKS = 'attributes #0 = { nounwind "no-builtins" }'
_LADDER = (32, 16, 8, 4, 2, 1)


def called_helpers(text: str) -> set[str]:
    """The functions that a text is seen to call; LLVM may make others of its loops."""
    return {name for name, size in _CALL.findall(text) if not size.isdigit() or int(size) > _INLINE}


@cache
def helper_text(name: str) -> str | None:
    """The LLVM IR text that defines a function; None for a function that is none of these."""
    texts: dict[str, Callable[[str], str]] = {
        "memcpy": _copy,
        "memmove": _move,
        "memset": _fill,
        "memcmp": _compare,
        "bcmp": _compare,
    }
    texts |= SOFT_FLOATS
    texts |= {"__truncsfbf2": _round_float, "__truncdfbf2": _round_double}
    return f"{NO_PASSES}{texts[name](name)}\n{_MARKS}\n" if name in texts else None


def _copy(name: str) -> str:
    return f"""
define ptr @{name}(ptr noalias %to, ptr noalias %from, i64 %size) #0 {{
entry:
  %is_long = icmp uge i64 %size, 64
  br i1 %is_long, label %long, label %short
long:
  %last = sub i64 %size, 64
{_load("end", 64, "%from", "%last")}
  br label %loop
loop:
  %at = phi i64 [ 0, %long ], [ %next, %loop ]
{_load("part", 64, "%from", "%at")}
{_store("part", 64, "%to", "%at")}
  %next = add i64 %at, 64
  %goes_on = icmp ult i64 %next, %last
  br i1 %goes_on, label %loop, label %finish
finish:
{_store("end", 64, "%to", "%last")}
  ret ptr %to
{_short_copy()}
}}"""


def _move(name: str) -> str:
    """Forwards, or backwards where the target begins inside the source."""
    return f"""
define ptr @{name}(ptr %to, ptr %from, i64 %size) #0 {{
entry:
  %is_long = icmp uge i64 %size, 64
  br i1 %is_long, label %long, label %short
long:
  %last = sub i64 %size, 64
{_load("end", 64, "%from", "%last")}
{_load("start", 64, "%from", "0")}
  %to.number = ptrtoint ptr %to to i64
  %from.number = ptrtoint ptr %from to i64
  %distance = sub i64 %to.number, %from.number
  %is_inside = icmp ult i64 %distance, %size
  br i1 %is_inside, label %backwards, label %forwards
forwards:
  %at = phi i64 [ 0, %long ], [ %next, %forwards ]
{_load("part", 64, "%from", "%at")}
{_store("part", 64, "%to", "%at")}
  %next = add i64 %at, 64
  %goes_on = icmp ult i64 %next, %last
  br i1 %goes_on, label %forwards, label %finish
backwards:
  %down = phi i64 [ %last, %long ], [ %lower, %backwards ]
{_load("piece", 64, "%from", "%down")}
{_store("piece", 64, "%to", "%down")}
  %lower = sub i64 %down, 64
  %goes_down = icmp sgt i64 %lower, 0
  br i1 %goes_down, label %backwards, label %begin
begin:
{_store("start", 64, "%to", "0")}
  ret ptr %to
finish:
{_store("end", 64, "%to", "%last")}
  ret ptr %to
{_short_copy()}
}}"""


def _fill(name: str) -> str:
    steps = "\n".join(
        f"""try{width}:
  %fits{width} = icmp uge i64 %size, {width}
  br i1 %fits{width}, label %do{width}, label %try{width // 2}
do{width}:
  %last{width} = sub i64 %size, {width}
  %all{width} = shufflevector <64 x i8> %all, <64 x i8> poison, <{width} x i32> zeroinitializer
  store <{width} x i8> %all{width}, ptr %to, align 1
  %end{width} = getelementptr i8, ptr %to, i64 %last{width}
  store <{width} x i8> %all{width}, ptr %end{width}, align 1
  ret ptr %to"""
        for width in _LADDER
    )
    return f"""
define ptr @{name}(ptr %to, i32 %value, i64 %size) #0 {{
entry:
  %byte = trunc i32 %value to i8
  %one = insertelement <64 x i8> poison, i8 %byte, i64 0
  %all = shufflevector <64 x i8> %one, <64 x i8> poison, <64 x i32> zeroinitializer
  %is_long = icmp uge i64 %size, 64
  br i1 %is_long, label %long, label %try32
long:
  %last = sub i64 %size, 64
  br label %loop
loop:
  %at = phi i64 [ 0, %long ], [ %next, %loop ]
  %place = getelementptr i8, ptr %to, i64 %at
  store <64 x i8> %all, ptr %place, align 1
  %next = add i64 %at, 64
  %goes_on = icmp ult i64 %next, %last
  br i1 %goes_on, label %loop, label %finish
finish:
  %end = getelementptr i8, ptr %to, i64 %last
  store <64 x i8> %all, ptr %end, align 1
  ret ptr %to
{steps}
try0:
  ret ptr %to
}}"""


def _compare(name: str) -> str:
    return f"""
define i32 @{name}(ptr %one, ptr %other, i64 %size) #0 {{
entry:
  %is_empty = icmp eq i64 %size, 0
  br i1 %is_empty, label %same, label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %equal ]
  %place = getelementptr i8, ptr %one, i64 %at
  %other.place = getelementptr i8, ptr %other, i64 %at
  %byte = load i8, ptr %place
  %other.byte = load i8, ptr %other.place
  %differs = icmp ne i8 %byte, %other.byte
  br i1 %differs, label %found, label %equal
equal:
  %next = add i64 %at, 1
  %goes_on = icmp ult i64 %next, %size
  br i1 %goes_on, label %loop, label %same
found:
  %left = zext i8 %byte to i32
  %right = zext i8 %other.byte to i32
  %difference = sub i32 %left, %right
  ret i32 %difference
same:
  ret i32 0
}}"""


def _round_float(name: str) -> str:
    """A float as bf16, to the nearest one with an even last bit at halves; NaN stays NaN."""
    return f"""
define bfloat @{name}(float %x) #0 {{
  %bits = bitcast float %x to i32
{_ROUNDED}"""


def _round_double(name: str) -> str:
    """As of a float that is odd where it is not exact, so that two roundings give what one does."""
    return f"""
define bfloat @{name}(double %wide) #0 {{
  %x = fptrunc double %wide to float
{TO_ODD}{_ROUNDED}"""


# The upper half of a float's bits, rounded; of a NaN with a bit that keeps it one.
_ROUNDED = """  %upper = lshr i32 %bits, 16
  %last = and i32 %upper, 1
  %half = add i32 %last, 32767
  %moved = add i32 %bits, %half
  %number = lshr i32 %moved, 16
  %quiet = or i32 %upper, 64
  %is_nan = fcmp uno float %x, %x
  %chosen = select i1 %is_nan, i32 %quiet, i32 %number
  %short = trunc i32 %chosen to i16
  %rounded = bitcast i16 %short to bfloat
  ret bfloat %rounded
}"""


def _short_copy() -> str:
    """Blocks that copy fewer than 64 bytes: all is loaded before anything is stored."""
    steps = "\n".join(
        f"""try{width}:
  %fits{width} = icmp uge i64 %size, {width}
  br i1 %fits{width}, label %do{width}, label %try{width // 2}
do{width}:
  %last{width} = sub i64 %size, {width}
{_load(f"first{width}", width, "%from", "0")}
{_load(f"second{width}", width, "%from", f"%last{width}")}
{_store(f"first{width}", width, "%to", "0")}
{_store(f"second{width}", width, "%to", f"%last{width}")}
  ret ptr %to"""
        for width in _LADDER
    )
    return f"short:\n  br label %try32\n{steps}\ntry0:\n  ret ptr %to"


def _load(name: str, width: int, base: str, place: str) -> str:
    return f"""  %{name}.from = getelementptr i8, ptr {base}, i64 {place}
  %{name} = load <{width} x i8>, ptr %{name}.from, align 1"""


def _store(name: str, width: int, base: str, place: str) -> str:
    return f"""  %{name}.to = getelementptr i8, ptr {base}, i64 {place}
  store <{width} x i8> %{name}, ptr %{name}.to, align 1"""
