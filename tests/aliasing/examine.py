"""Compiles, runs and judges programs of ``programs.py``, many of them as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.computation import Builder
from hloforge.dialect.program import Program
from hloforge.runtime.debug.stages import Recipe
from hloforge.runtime.debug.target_process import TargetError, TargetProcess
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference
from tests.aliasing.programs import Form

_DEADLINE = 600.0


@dataclass(frozen=True)
class Finding:
    """A program that goes wrong.

    Attributes:
        message: what, beside the form.
        program: its text.
    """

    form: Form
    message: str
    program: str

    def __str__(self) -> str:
        return f"{self.form}: {self.message}"


class Examiner:
    """Child processes that compile, run and judge programs. Use it in a ``with`` statement."""

    def __init__(self, target: str = "cpu") -> None:
        self.recipe = Recipe(target, CompileOptions(cache=False, timeout=_DEADLINE * 0.8))
        self.process = TargetProcess(_DEADLINE)
        self.engines = [reference(name, timeout=_DEADLINE) for name in ("interpreter", "xla")]

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close()
        for engine in self.engines:
            engine.close()

    def findings(self, chosen: Sequence[Form]) -> Iterator[Finding]:
        """The forms that go wrong: of all as one program, or of each half where one program does not compile."""
        program, arguments = joined(chosen)
        try:
            loaded = self.process.compile(program, self.recipe)
            # Twice, for the second call sees what the first has left in its arguments and buffers.
            runs = [loaded(*arguments) for _ in range(2)]
            loaded.forget()
        except TargetError as error:
            if len(chosen) == 1:
                yield Finding(chosen[0], f"{error.step}: {error.message[:300]}", str(program))
                return
            middle = len(chosen) // 2
            yield from self.findings(chosen[:middle])
            yield from self.findings(chosen[middle:])
            return
        expected = [engine.prepare(program)(*arguments) for engine in self.engines]
        for number, form in enumerate(chosen):
            right = {_bits(results[number]) for results in expected}
            wrong = [run for run in runs if _bits(run[number]) not in right]
            if wrong:
                yield Finding(form, f"{wrong[0][number]} for {expected[0][number]}", str(joined([form])[0]))


def joined(chosen: Sequence[Form]) -> tuple[Program, list[Any]]:
    """One program of all, which returns a tuple for each, and its arguments."""
    with Builder("aliasing") as builder:
        results: list[Any] = []
        arguments: list[Any] = []
        for number, form in enumerate(chosen):
            made, given, donated = form.add_to(builder, len(arguments))
            if donated is not None:
                builder.alias([number, donated], len(arguments))
            arguments += given
            results.append(made)
        return builder.build(tuple(results)), arguments


def _bits(results: Any) -> bytes:
    return b"|".join(np.asarray(result).tobytes() for result in results)
