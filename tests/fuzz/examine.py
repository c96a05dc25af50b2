"""What becomes of programs: compiled and run in a child process, judged by both reference engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.debug.oracle import difference
from hloforge.runtime.debug.stages import Recipe
from hloforge.runtime.debug.target_process import TargetError, TargetProcess
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference
from tests.fuzz.first_opinion import FirstOpinion
from tests.fuzz.generator import Case

# Bytes of address space of IREE's compiler.
_MEMORY = 8 << 30
AGREES, UNDECIDED = "agrees", "undecided"


@dataclass(frozen=True)
class Outcome:
    """What became of the programs of some seeds, one as a rule; several that fail in company alone.

    Attributes:
        kind: ``agrees``; ``undecided`` if no engine can evaluate it; ``differs``; or one of ``TargetError.kind``.
    """

    seeds: tuple[int, ...]
    kind: str
    message: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind not in (AGREES, UNDECIDED)


class Examiner:
    """Child processes that compile, run and judge programs. Use it in a ``with`` statement.

    Args:
        deadline: seconds for one compilation, run or evaluation.
    """

    def __init__(self, target: str = "cpu", deadline: float = 120) -> None:
        options = CompileOptions(cache=False, timeout=deadline * 0.8, memory_limit=_MEMORY)
        self.recipe = Recipe(target, options)
        self.process = TargetProcess(deadline)
        self.first = FirstOpinion()
        self.engines = [reference(name, timeout=deadline) for name in ("xla", "interpreter")]

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close()
        self.first.close()
        for engine in self.engines:
            engine.close()

    def outcomes(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """What becomes of each case. They are one program; where that goes wrong, each half is for itself."""
        found = self._together(cases)
        if len(cases) == 1 or all(kind in (AGREES, UNDECIDED) for kind, _ in found):
            yield from (Outcome((case.seed,), *one) for case, one in zip(cases, found, strict=True))
            return
        middle = len(cases) // 2
        parts = [*self.outcomes(cases[:middle]), *self.outcomes(cases[middle:])]
        yield from parts
        if not any(part.is_finding for part in parts):
            kind, message = next(one for one in found if one[0] not in (AGREES, UNDECIDED))
            yield Outcome(tuple(case.seed for case in cases), kind, message)

    def _together(self, cases: Sequence[Case]) -> list[tuple[str, str]]:
        """The kind and message of each case of one compilation."""
        program, arguments = (cases[0].program, cases[0].arguments) if len(cases) == 1 else joined(cases)
        try:
            actual = self.results(program, arguments)
        except TargetError as error:
            return [(error.kind, f"{error.step}: {error.message}")] * len(cases)
        parts = [actual] if len(cases) == 1 else actual
        found = [(AGREES, "")] * len(cases)
        rows = zip(cases, parts, strict=True)
        left = [n for n, (c, part) in enumerate(rows) if not self.first.agrees(c.program, c.arguments, part)]
        if len(left) > 1:
            program, arguments = joined([cases[n] for n in left])
            if self.verdict(program, arguments, tuple(parts[n] for n in left))[0] == AGREES:
                return found
        # Of some programs together no engine knows the float64 result, or one engine knows nothing.
        for number in left:
            found[number] = self.verdict(cases[number].program, cases[number].arguments, parts[number])
        return found

    def results(self, program: Program, arguments: Sequence[Any]) -> Any:
        """What the target makes of a program. Raises TargetError."""
        loaded = self.process.compile(program, self.recipe)
        actual = loaded(*arguments)
        loaded.forget()
        return actual

    def verdict(self, program: Program, arguments: Sequence[Any], actual: Any) -> tuple[str, str]:
        """The kind of what becomes of a program with results, and what there is to say about it."""
        try:
            judged = Judge(program, self.engines)(arguments, actual)
        except Error as error:
            return UNDECIDED, error.message
        bad = [verdict for verdict in judged.verdicts if not verdict.agrees]
        return (AGREES, "") if not bad else ("differs", difference(bad).message)


def joined(cases: Sequence[Case]) -> tuple[Program, list[Any]]:
    """One program of all, and its arguments."""
    with hloforge.Builder("together") as builder:
        results, arguments = [], []
        for case in cases:
            given = []
            for parameter, argument in zip(case.program.signature.parameters, case.arguments, strict=True):
                given.append(builder.parameter(len(arguments), parameter.shape, f"p{len(arguments)}"))
                arguments.append(argument)
            results.append(ops.call(case.program, *given))
        return builder.build(tuple(results)), arguments
