"""What IREE's compiler prints when it fails, as one located error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hloforge.dialect.errors import CompileError, Location

_DIAGNOSTIC = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): error: (?P<message>.*)$", re.MULTILINE)
_NAMED = re.compile(r"^loc\((?P<location>.*)\): error: (?P<message>.*)$", re.MULTILINE)
_IN_LOC = re.compile(r'"(?P<file>[^"]+)":(?P<line>\d+):(?P<column>\d+)')
_TRAILING_IR = re.compile(r": (%\w+(:\d+)?(, %\w+(:\d+)?)* = )?\"?[\w.]+\"?\(%?.*\) <?\{.*")
_STACK = re.compile(r"^(?:Please report issues|PLEASE submit|Stack dump| *#\d+ 0x)", re.MULTILINE)
_PROGRAM = re.compile(r"^(\S*iree-compile: |<unknown>:0: error: )")
_MORE_MEMORY = "raise the memory limit, or compile on a larger machine"
_UNDEFINED = re.compile(r"undefined symbol: (\w+)")


@dataclass(frozen=True)
class Cause:
    """A known cause of a failure: what to look for in the output, and what to tell the user."""

    pattern: re.Pattern[str]
    hint: str


CAUSES: tuple[Cause, ...] = (
    Cause(
        re.compile("exceeded stack allocation limit"),
        "a dispatch needs more stack than allowed: pass --iree-llvmcpu-stack-allocation-limit=BYTES to raise the limit",
    ),
    Cause(
        _UNDEFINED,
        "no library of mathematics is linked: compute without it, or for another target; for this processor and with a "
        "system linker, --iree-llvmcpu-link-embedded=false may help",
    ),
    Cause(
        re.compile("Unknown command line argument"), "IREE's compiler does not know this flag: see iree-compile --help"
    ),
    Cause(re.compile("for the .* option:"), "iree-compile --help lists the flags of IREE's compiler and their values"),
    Cause(
        re.compile("out of memory|bad_alloc|allocation failed|failed to map segment|cannot allocate", re.IGNORECASE),
        _MORE_MEMORY,
    ),
    # C++ ends so where there is no memory for the stack of another thread.
    Cause(re.compile("terminate called without an active exception|Resource temporarily unavailable"), _MORE_MEMORY),
)
# What the compiler's end tells when its output tells nothing.
ENDINGS: tuple[Cause, ...] = (
    Cause(re.compile("out of time"), "raise the time limit"),
    Cause(re.compile("SIGKILL"), "the system kills processes when memory runs out: compile on a larger machine"),
)


def failure(stderr: str, summary: str, notes: tuple[str, ...] = ()) -> CompileError:
    """An error from the compiler's output.

    Args:
        stderr: all that the compiler printed.
        summary: what happened, should the output have no diagnostic (``killed by SIGSEGV``).
        notes: further lines, such as where the reproducer is.
    """
    messages = _messages(stderr)
    location, message = messages[0] if messages else (None, _telling_line(stderr))
    symbols = sorted(set(_UNDEFINED.findall(stderr)))
    if symbols:
        message = f"the linker misses {', '.join(symbols)}"
    known = [cause for cause in CAUSES if cause.pattern.search(stderr)]
    known += [cause for cause in ENDINGS if cause.pattern.search(summary)]
    return CompileError(
        f"IREE's compiler {summary}" + (f": {_short(message)}" if message else ""),
        location=location,
        notes=(*_others(messages), *notes),
        hint=known[0].hint if known else "",
    )


def _others(messages: list[tuple[Location | None, str]]) -> list[str]:
    """Two further diagnostics that say something new."""
    seen = {text for _, text in messages[:1]}
    notes = []
    for where, text in messages[1:]:
        if text not in seen:
            seen.add(text)
            notes.append(f"{where}: {_short(text)}" if where else _short(text))
    return notes[:2]


def _messages(stderr: str) -> list[tuple[Location | None, str]]:
    """Every diagnostic, in order of appearance, with the innermost file position of its location."""
    found: list[tuple[int, Location | None, str]] = []
    for match in _DIAGNOSTIC.finditer(stderr):
        found.append(
            (match.start(), Location(match["file"], int(match["line"]), int(match["column"])), match["message"])
        )
    for match in _NAMED.finditer(stderr):
        inner = _IN_LOC.search(match["location"])
        where = Location(inner["file"], int(inner["line"]), int(inner["column"])) if inner else None
        found.append((match.start(), where, match["message"]))
    return [(where, message) for _, where, message in sorted(found, key=lambda entry: entry[0])]


def _short(message: str) -> str:
    """The message without the IR that often trails it."""
    return _TRAILING_IR.sub("", message.partition("#hal.")[0]).rstrip(" :")[:300]


def _telling_line(stderr: str) -> str:
    """The line that shows a known cause, else the last one."""
    lines = [line.strip() for line in _STACK.split(stderr)[0].splitlines() if line.strip()]
    known = [line for line in lines if any(cause.pattern.search(line) for cause in CAUSES)]
    line = (known or lines or [""])[-1 if not known else 0]
    return _PROGRAM.sub("", line).partition("  Try:")[0]
