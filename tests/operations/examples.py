"""The examples of the operations' docstrings, executed."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

import hloforge
from hloforge import Builder, Computation, Shape, ops
from hloforge.dialect.errors import ReferenceEngineError
from hloforge.dialect.op import Op
from hloforge.dialect.values import Value
from hloforge.runtime.reference.engines import ReferenceEngine


@dataclass(frozen=True)
class Outcome:
    """What an example printed, what it should print, and the program that it built."""

    source: str
    got: str
    want: str
    program: Computation


def sections(entry: Op) -> dict[str, str]:
    """The docstring's parts: "" for the text before the first title, then Args, Returns, Raises, Example …"""
    parts: dict[str, list[str]] = {"": []}
    title = ""
    for line in (inspect.getdoc(entry.function) or "").splitlines():
        if line.rstrip().endswith(":") and line[:1].isupper() and " " not in line.strip():
            title = line.strip().rstrip(":")
            parts[title] = []
        else:
            parts[title].append(line)
    return {title: inspect.cleandoc("\n".join(lines)) for title, lines in parts.items()}


def run_example(entry: Op, engines: list[ReferenceEngine]) -> Outcome:
    """Execute an operation's example; the first engine that can evaluates its last expression."""
    examples = doctest.DocTestParser().get_examples(sections(entry)["Example"])
    namespace: dict[str, Any] = {name: getattr(ops, name) for name in dir(ops) if not name.startswith("_")}
    namespace |= {"np": np, "Shape": Shape, "hloforge": hloforge}
    with Builder("example") as builder:
        for example in examples[:-1]:
            exec(example.source, namespace)
        result = eval(examples[-1].source, namespace)
        program = builder.build(result if isinstance(result, Value) else ())
    source = "".join(example.source for example in examples)
    got = _evaluated(program, engines) if isinstance(result, Value) else str(result)
    return Outcome(source, got, examples[-1].want.rstrip("\n"), program)


def _evaluated(program: Computation, engines: list[ReferenceEngine]) -> str:
    refusals = []
    for engine in engines:
        try:
            return "\n".join(_lines(engine.prepare(program)()))
        except ReferenceEngineError as error:
            refusals.append(error.message)
    raise AssertionError("; ".join(refusals))


def _lines(value: Any) -> list[str]:
    if isinstance(value, tuple):
        return [line for member in value for line in _lines(member)]
    return [str(np.asarray(value))]
