"""Parts of a long function as functions of their own, because LLVM's time grows faster than a function.

A part begins and ends where no number is in a register: between two steps of a block, which share memory alone. Its
arguments are the addresses that it uses. No two of them are of one array, and LLVM is told so.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.addresses import of_arguments
from hloforge.pipelines.codegen.lang.functions import Function

# Lines of a function after which another one begins.
LONG = 1500
# Lines of a loop's body or a branch from which on it is cut: parts keep numbers in memory, not in registers. With parts
# from 1,500 lines on, eigenvalues of 256x256 numbers took 36 ms instead of 15.
VAST = 12_000
# Lines from which on one step in a few ends a function.
_USUAL, _ENDS = 300, 4

_NAME = re.compile(r"%[\w.]+")
_DEFINED = re.compile(r"\s+(%[\w.]+) = ")
_LABEL = re.compile(r"(\w+):$")
_LOOP = re.compile(r"!KERNEL_LOOP_(\d+)!")
_SCOPE = re.compile(r", !KERNEL_SCOPE_\d+!")
# Results of functions of the host, of which a failure ends the kernel.
_FAILS = "  ret i32 1"
# Addresses of arrays, no two of which are of one array at the same time, and of a dispatch's state.
_ARRAY = re.compile(r"%((binding|turn)\d+|state)$")


@dataclass(frozen=True)
class Cut:
    """A place between two lines, and the label of the block that it is in."""

    place: int
    block: str


def ends(lines: int, signature: str) -> bool:
    """Whether a function or kernel of so many lines ends before a step.

    It depends on the steps themselves, so that equal layers have equal functions.
    """
    return lines > LONG or (lines > _USUAL and zlib.crc32(signature.encode()) % _ENDS == 0)


def outline(
    function: Function,
    cuts: Sequence[Cut],
    prefix: str,
    *,
    has_vectors: bool = False,
    apart: Collection[str] = (),
) -> None:
    """Replace the lines from each cut to the next, and from the last to the end, by calls of functions.

    Equal parts are one function. Lines that use a number of the lines before them stay where they are, and so do all
    lines before the last that do.

    Args:
        prefix: of the functions' names.
        has_vectors: whether the lines have no loop that LLVM would make vectors of.
        apart: addresses made by lines before, no two of which are of one array that the lines write.
    """
    ends = [*(cut.place for cut in cuts[1:]), len(function.lines)]
    parts = [part_of(function, cut, end, apart=apart) for cut, end in zip(cuts, ends, strict=True)]
    first = max((number + 1 for number, part in enumerate(parts) if part is None), default=0)
    if first == len(cuts):
        return
    place, block = cuts[first].place, cuts[first].block
    del function.lines[place:]
    function.resume(block)
    for part in parts[first:]:
        assert part is not None
        body, arguments = part
        name = function.part(body, prefix, len(arguments), has_vectors=has_vectors)
        result = function.name()
        function.do(f"{result} = call i32 {name}({', '.join(f'ptr {argument}' for argument in arguments)})")
        if any(line == _FAILS for line in body.lines):
            failed, failing, further = function.name(), function.label(), function.label()
            function.do(f"{failed} = icmp ne i32 {result}, 0")
            function.do(f"br i1 {failed}, label %{failing}, label %{further}")
            function.begin(failing)
            function.do("ret i32 1")
            function.begin(further)


def part_of(
    function: Function, cut: Cut, end: int, *, apart: Collection[str] = (), private: Collection[str] = ()
) -> tuple[Function, list[str]] | None:
    """Lines as a function, with the addresses that it takes; None where they use something else.

    Args:
        apart: as of ``outline``.
        private: names of memory on the stack that is the function's own.
    """
    given = {match[1]: line for line in function.beginning if (match := _DEFINED.match(line))}
    lines = function.lines[cut.place : end]
    own = {match[1] for line in lines if (match := _DEFINED.match(line))}
    own |= {f"%{match[1]}" for line in lines if (match := _LABEL.match(line))}
    names = {f"%{cut.block}": "%entry"}
    arguments: list[str] = []
    beginning: list[str] = []

    def provide(name: str) -> bool:
        if name in names:
            return True
        line = given.get(name, "")
        if _ARRAY.match(name) or name in apart or (" = alloca " in line and name not in private):
            names[name] = f"%a{len(arguments)}"
            arguments.append(name)
            return True
        # What is made of constants is made again.
        names[name] = name
        if not line or not all(map(provide, _NAME.findall(line.partition(" = ")[2]))):
            return False
        beginning.append(line)
        return True

    for line in lines:
        for name in _NAME.findall(line):
            if name in own:
                names.setdefault(name, f"%n{len(names)}")
            elif not provide(name):
                return None
    body = Function()
    body.prologue(*(line.strip() for line in beginning))

    def renamed(line: str) -> str:
        if label := _LABEL.match(line):
            return f"{names.get('%' + label[1], '%' + label[1])[1:]}:"
        line = _LOOP.sub(lambda match: body.metadata(function.hints(match[0])), _SCOPE.sub("", line))
        return of_arguments(_NAME.sub(lambda match: names[match[0]], line))

    body.lines = [*map(renamed, lines), "  ret i32 0"]
    return body, arguments
