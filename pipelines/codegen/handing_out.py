"""Parts of a kernel that several threads work on, such as a step in a loop.

A step of a program is a dispatch of its own, whose workgroups the caller of kernels hands out. A part of a kernel is a
function of the number of a workgroup, and the kernel asks whoever called it to have that called for all numbers. The
state of its dispatch says how, or nothing where no other threads are, as in IREE's runtime: then the kernel does it
itself. Such a part begins and ends where no number is in a register.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.kernel_program import CONSTANTS_AT, CONSTANTS_COUNT_AT, ENTRY, HANDED
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.outlining import Cut, part_of
from hloforge.pipelines.codegen.lang.values import I32, I64, Value
from hloforge.pipelines.codegen.nest_loops import Share

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# Words that a workgroup's number lies in: a line of the cache.
_LINE_WORDS = 8

_HAND = f"@{ENTRY}.hand"
_HAND_TEXT = f"""define internal void {_HAND}(ptr %state, ptr %run, ptr %arguments, ptr %own, i64 %count) noinline #0 {{
entry:
  %told.at = getelementptr i8, ptr %state, i64 {CONSTANTS_COUNT_AT}
  %told = load i16, ptr %told.at
  %is.shared = icmp eq i16 %told, {HANDED}
  %are.several = icmp sgt i64 %count, 1
  %is.handed = and i1 %is.shared, %are.several
  br i1 %is.handed, label %share, label %next
share:
  %words.at = getelementptr i8, ptr %state, i64 {CONSTANTS_AT}
  %words = load ptr, ptr %words.at
  %pool.at = getelementptr ptr, ptr %words, i64 1
  %hand.out = load ptr, ptr %words
  %pool = load ptr, ptr %pool.at
  call void %hand.out(ptr %pool, ptr %run, ptr %arguments, ptr %own, i64 %count)
  ret void
next:
  %number = phi i64 [ 0, %entry ], [ %more, %next ]
  %short = trunc i64 %number to i32
  store i32 %short, ptr %own
  %status = call i32 %run(ptr null, ptr %arguments, ptr %own)
  %more = add i64 %number, 1
  %goes.on = icmp slt i64 %more, %count
  br i1 %goes.on, label %next, label %done
done:
  ret void
}}
"""


def hand_out(
    generator: Generator, count: int, write: Callable[[Share | None], None], active: Value | None = None
) -> None:
    """Write what may be shared out to so many workgroups.

    Args:
        write: writes the share of one, or everything for None. What it reads and writes is in memory, and not on the
            stack, of which each workgroup has its own.
        active: to how many of them, at least 1, this time; None for all.
    """
    if count == 1 or generator.is_shared:
        write(None)
        return
    writer, function = generator.writer, generator.writer.function
    own = function.stack(I64, _LINE_WORDS)
    before = set(function.beginning)
    cut = Cut(len(function.lines), function.block)
    number = function.load(own, I32)
    generator.is_shared = True
    write(Share(function.emit(f"zext {number} to {I64}", I64), count))
    generator.is_shared = False
    private = {line.split(" = ")[0].strip() for line in function.beginning if line not in before}
    part = part_of(function, cut, len(function.lines), private=private)
    del function.lines[cut.place :]
    function.resume(cut.block)
    if part is None:
        # It uses a number of what comes before.
        write(None)
        return
    body, arguments = part
    name = function.part(body, ENTRY, len(arguments), has_vectors=False)
    place = arguments.index(own.text)
    words = function.stack(I64, len(arguments))
    for number_of, argument in enumerate(arguments):
        if number_of != place:
            function.do(f"store ptr {argument}, ptr {function.offset(words, I64, number_of).text}")
    function.definitions[_HAND] = _HAND_TEXT
    run = _runner(function, name, len(arguments), place)
    function.do(
        f"call void {_HAND}(ptr %state, ptr {run}, {words}, {own}, i64 {count if active is None else active.text})"
    )
    writer.shares = max(writer.shares, count)


def _runner(function: Function, part: str, arguments: int, own: int) -> str:
    """The name of a function, of a kernel's arguments, that calls a part whose addresses lie in memory."""
    lines, given = [], []
    for number in range(arguments):
        given.append(f"ptr %a{number}" if number != own else "ptr %own")
        if number != own:
            lines.append(f"  %p{number} = getelementptr i64, ptr %arguments, i64 {number}")
            lines.append(f"  %a{number} = load ptr, ptr %p{number}")
    name = f"{part}.run"
    body = "\n".join([*lines, f"  %status = call i32 {part}({', '.join(given)})", "  ret i32 %status"])
    function.definitions[name] = (
        f"define internal i32 {name}(ptr %environment, ptr %arguments, ptr %own) #0 {{\nentry:\n{body}\n}}\n"
    )
    return name
