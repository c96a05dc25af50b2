"""Runs the ``RUN:`` lines of a test file in this process: a second faster for each than through a shell.

A line is a pipeline as in LLVM's lit::

    // RUN: hloforge opt %s --pipeline=normalize | filecheck %s
    // RUN: not hloforge compile %s -o %t 2>&1 | filecheck %s --check-prefix=ERROR

``%s`` is the file, ``%t`` a path of the test's own, ``not`` wants failure, ``2>&1`` joins standard error to the output,
a backslash at the end continues a line. The programs are ``hloforge`` and ``filecheck``; the latter has LLVM's option
``--implicit-check-not=TEXT`` as well, which forbids a text everywhere. A ``CHECK-NOT`` ends at the next match.
"""

from __future__ import annotations

import contextlib
import io
import shlex
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from hloforge.tools.main import cli

_MARKER = "// RUN:"
_PROGRAMS = ("hloforge", "filecheck")
_FORBID = "--implicit-check-not="


@dataclass(frozen=True)
class Outcome:
    """What a program of a pipeline left: its exit status, its output, and what it said on standard error."""

    status: int
    output: bytes
    errors: str


def run_lines(path: Path) -> list[str]:
    """The pipelines of a file, continuation lines joined. Raises ValueError if there is none."""
    texts = [line.partition(_MARKER)[2].strip() for line in path.read_text().splitlines() if _MARKER in line]
    joined = "\n".join(texts).replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} has no {_MARKER} line")
    return lines


def check_file(path: Path, scratch: Path) -> None:
    """Run every pipeline of a file. Raises AssertionError with what the failing program said."""
    for line in run_lines(path):
        run_pipeline(line, path, scratch)


def run_pipeline(line: str, path: Path, scratch: Path) -> None:
    """Run one pipeline; every program of it must succeed, or fail after ``not``."""
    text = line.replace("%s", shlex.quote(str(path))).replace("%t", shlex.quote(str(scratch / "t")))
    data = b""
    for command in _commands(text):
        words, fails, joins = _modifiers(command)
        outcome = _run(words, data)
        if (outcome.status != 0) != fails:
            wanted = "failure" if fails else "success"
            raise AssertionError(f"RUN: {line}\n{words[0]} gave {outcome.status}, wanted {wanted}\n{outcome.errors}")
        data = outcome.output + (outcome.errors.encode() if joins else b"")


def _commands(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def _modifiers(command: list[str]) -> tuple[list[str], bool, bool]:
    """The words without ``not`` and ``2>&1``, and whether these stood there."""
    fails, joins = command[0] == "not", "2>&1" in command
    words = [word for word in command[1 if fails else 0 :] if word != "2>&1"]
    if words[0] not in _PROGRAMS:
        raise ValueError(f"no program {words[0]!r} in RUN lines; there are: {', '.join(_PROGRAMS)}")
    return words, fails, joins


def _run(words: list[str], data: bytes) -> Outcome:
    if words[0] == "filecheck":
        return _filecheck(words, data)
    result = CliRunner().invoke(cli, words[1:], input=data)
    return Outcome(result.exit_code, result.stdout_bytes, result.stderr)


def _filecheck(words: list[str], data: bytes) -> Outcome:
    options = parse_argv_options([word for word in words if not word.startswith(_FORBID)])
    forbidden = [word.removeprefix(_FORBID) for word in words if word.startswith(_FORBID)]
    content = FInput.canonicalize_line_ends(data.decode())
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = Matcher(options, FInput("-", content), Parser.from_opts(options)).run()
    if found := [text for text in forbidden if text in content]:
        status = 1
        said.write(f"forbidden, but found: {', '.join(found)}\n")
    return Outcome(status, b"", f"{said.getvalue()}\nthe input was:\n{content[:4000]}")
