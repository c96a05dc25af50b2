"""``python -m tests.upstream.report [NAME ...]`` writes tests/upstream/NAME.md: reports of faults, ready to file.

A report is made of the record (whether IREE knows the fault), of the reproducer (program, commands, what is expected,
the cause) and of one run of the installed IREE (what it answers, its version).
"""

from __future__ import annotations

import argparse
import platform
import re
import shlex
import sys
import tempfile
from pathlib import Path

from hloforge.runtime.upstream.ledger import WORKAROUNDS, Workaround
from tests.upstream.reproducer import FOLDER, THERE, Reproducer, Tools, judged, run

# IREE's own headings, of its form for bugs, with what was expected and what came in between.
SECTIONS = (
    "What happened?",
    "Steps to reproduce your issue",
    "Expected",
    "Got",
    "What component(s) does this issue relate to?",
    "Version information",
    "Additional context",
)
_BACKENDS = {
    "cpu": "llvm-cpu",
    "wasm": "llvm-cpu, wasm32",
    "vulkan": "vulkan-spirv",
    "volta": "vulkan-spirv",
    "cuda": "cuda",
    "vm": "VM",
}
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\s*")
_CAME = {
    "compile-error": "The compiler ends with an error:",
    "run-error": "It compiles, and the call ends with an error:",
    "crash": "The compiler crashes:",
    "run-crash": "It compiles, and the call crashes:",
    "wrong": "It compiles, and returns:",
    "code": "Code in which this is found (its first and last lines):",
    "slow": "It does not:",
}
_LINES = 14
_WIDTH = 220


def unreported() -> tuple[Workaround, ...]:
    """The records that need a report: IREE has no issue of theirs, and a reproducer shows the fault."""
    return tuple(record for record in WORKAROUNDS if record.reproducer and not record.upstream)


def commands(reproducer: Reproducer) -> tuple[str, ...]:
    """What a reader types, beside the file of the program."""
    name = reproducer.path.stem
    made = f"{name}.mlir.txt" if reproducer.kind == "code" else f"{name}.vmfb"
    compilation = ["iree-compile", f"{name}.mlir", "-o", made, *reproducer.compilation]
    if not reproducer.runs:
        return (_command(compilation),)
    return (_command(compilation), _command(["iree-run-module", f"--module={name}.vmfb", *reproducer.call]))


def expected(reproducer: Reproducer) -> str:
    """What a correct IREE does."""
    if reproducer.kind == "code":
        return "Code in which this regular expression is not found:\n\n" + _block(reproducer.text)
    if reproducer.kind == "slow":
        return f"The compiler ends within {reproducer.text} seconds of processor time."
    if not reproducer.runs:
        return "It compiles."
    return "It compiles, and returns:\n\n" + _block("\n".join(reproducer.expected))


def report(record: Workaround, tools: Tools) -> str:
    """The text. Raises ValueError if the fault is not seen, or its cause is not described."""
    reproducer = Reproducer.read(FOLDER / record.reproducer)
    if not reproducer.cause:
        raise ValueError(f"{record.reproducer}: a report needs lines `// cause:`")
    outcome = judged(reproducer, tools)
    if outcome.state != THERE:
        raise ValueError(f"{record.reproducer}: the fault is {outcome.state}: {outcome.seen}")
    got = outcome.seen if reproducer.kind == "slow" else _answer(reproducer, tools)
    texts = (
        f"{reproducer.summary} In general, IREE {record.fault}.",
        f"`{reproducer.path.name}`:\n\n{_block(reproducer.program, 'mlir')}\n\n"
        + _block("\n".join(commands(reproducer)), "sh"),
        expected(reproducer),
        f"{_CAME[reproducer.kind]}\n\n{_block(got)}",
        "Compiler, Runtime" if reproducer.kind == "run-error" else "Compiler",
        f"{_version(tools)}, {platform.system()} {platform.machine()}. First seen with {record.since}.",
        reproducer.cause,
    )
    title = f"# [{_BACKENDS[reproducer.target]}] {reproducer.summary.rstrip('.')}"
    parts = (f"## {heading}\n\n{text}" for heading, text in zip(SECTIONS, texts, strict=True))
    return "\n\n".join((title, *parts)) + "\n"


def _command(words: list[str]) -> str:
    """A command line, of which each flag after the output has a line."""
    options = [" \\\n    " + shlex.quote(word) for word in words[4 if words[0] == "iree-compile" else 2 :]]
    return shlex.join(words[: len(words) - len(options)]) + "".join(options)


def _block(text: str, language: str = "") -> str:
    return f"```{language}\n{text.strip()}\n```"


def _answer(reproducer: Reproducer, tools: Tools) -> str:
    """The first lines of what IREE prints of the program as the report has it, without paths and addresses."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / reproducer.path.stem
        source = made.with_suffix(".mlir")
        source.write_text(reproducer.program)
        status, text = run([str(tools.compiler), str(source), "-o", str(made), *reproducer.compilation])
        if status == 0 and reproducer.kind == "code":
            found = re.search(reproducer.text, made.read_text(errors="replace"), re.DOTALL)
            text = found[0] if found else ""
        elif status == 0 and reproducer.runs:
            _, text = run([str(tools.runner), f"--module={made}", *reproducer.call])
    lines = [line for line in text.splitlines() if line.strip()]
    # What precedes the stack of a crash are warnings.
    begin = next((n for n, line in enumerate(lines) if line.startswith(("LLVM ERROR", "Stack dump"))), 0)
    lines = [_ADDRESS.sub("", _PATH.sub("", line))[:_WIDTH].rstrip() for line in lines[begin:]]
    if len(lines) <= _LINES:
        return "\n".join(lines) or "(no output)"
    if reproducer.kind == "code":
        return "\n".join([*lines[: _LINES // 2], "...", *lines[-_LINES // 2 :]])
    return "\n".join([*lines[:_LINES], "..."])


def _version(tools: Tools) -> str:
    _, text = run([str(tools.compiler), "--version"])
    found = re.search(r"IREE compiler version (.+)", text)
    return f"iree-compile {found[1]}" if found else "iree-compile of an unknown version"


def main() -> int:
    """Write the reports named, or all. The exit status is 1 if one cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m tests.upstream.report", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a record's name; without any, all that need a report")
    options = parser.parse_args()
    records = {record.name: record for record in unreported()}
    if unknown := sorted(set(options.names) - records.keys()):
        parser.error(f"no record without an issue upstream, and with a reproducer, is called {unknown[0]!r}")
    tools, failed = Tools.found(), False
    for name in options.names or records:
        try:
            text = report(records[name], tools)
        except ValueError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
            continue
        path = (FOLDER / records[name].reproducer).with_suffix(".md")
        path.write_text(text)
        print(path.name, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
