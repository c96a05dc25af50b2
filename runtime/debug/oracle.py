"""Test many variants of a program for a failure; each is compiled and run in a child process."""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.runtime.debug.consensus import Judge, Verdict
from hloforge.runtime.debug.stages import Recipe
from hloforge.runtime.debug.target_process import TargetError, TargetProcess, TargetProgram
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.reference.tolerances import Tolerance

# Compiled variants that the child process keeps.
_KEPT = 8
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|tensor<[^>]*>|vector<[^>]*>|memref<[^>]*>|%\w+|\d+")
DIFFERS = "differs"


class OutOfBudgetError(Exception):
    """The search has taken the time that it may take."""


@dataclass(frozen=True)
class Symptom:
    """What goes wrong.

    Attributes:
        kind: ``differs``, or one of ``TargetError.kind``.
        step: of a failure.
        message: for people.
        worst: the index of the largest error in the first result that differs.
    """

    kind: str
    step: str
    message: str
    worst: tuple[int, ...] = ()

    def is_like(self, other: Symptom | None) -> bool:
        """Whether two variants fail in the same way, sizes and names left out of account."""
        if other is None or (self.kind, self.step) != (other.kind, other.step):
            return False
        told = self.kind in ("compiler", "pass", "refused", "load", "run")
        return not told or outlined(self.message) == outlined(other.message)

    @property
    def needs_values(self) -> bool:
        """Whether it shows when the program runs alone."""
        return self.kind == DIFFERS or self.step == "running"

    def __str__(self) -> str:
        return self.message if self.kind == DIFFERS else f"{self.step}: {self.message}"


def difference(bad: Sequence[Verdict]) -> Symptom:
    """The symptom of results that differ."""
    first = bad[0]
    worst = first.statistics.worst if first.statistics else None
    if first.comparison.mismatches and not worst:
        # NaN has no distance.
        worst = first.comparison.mismatches[0].index
    return Symptom(DIFFERS, "running", "\n".join(verdict.text() for verdict in bad), worst or ())


def outlined(message: str) -> str:
    """A message without what names, types and numbers tell."""
    return _DETAILS.sub("#", message)


@dataclass(frozen=True)
class Candidate:
    """A program of plain parameters, and its arguments; None if the symptom needs none."""

    program: Program
    arguments: tuple[np.ndarray[Any, Any], ...] | None = None


class Oracle:
    """Says what goes wrong with candidates; the same one is tried once.

    Args:
        engines: that say what is right.
        until: of ``time.monotonic``.
        device: that programs run on; by default the target's.

    Attributes:
        tried: how many candidates were compiled or run.
    """

    def __init__(
        self,
        process: TargetProcess,
        recipe: Recipe,
        engines: Sequence[ReferenceEngine],
        *,
        tolerance: Tolerance | float | None = None,
        until: float = float("inf"),
        device: str | None = None,
    ) -> None:
        self.process = process
        self.recipe = recipe
        self.engines = tuple(engines)
        self.tolerance = tolerance
        self.until = until
        self.device = device
        self.tried = 0
        self._known: dict[str, Symptom | None] = {}
        self._loaded: OrderedDict[str, TargetProgram] = OrderedDict()

    def symptom(self, candidate: Candidate, recipe: Recipe | None = None) -> Symptom | None:
        """What goes wrong; None if nothing does, or no engine can say.

        Raises:
            OutOfBudgetError: the time is over.
        """
        recipe = recipe or self.recipe
        key = _key(candidate, recipe)
        if key not in self._known:
            if time.monotonic() > self.until:
                raise OutOfBudgetError
            self.tried += 1
            self._known[key] = self._found(candidate, recipe)
        return self._known[key]

    def results(self, candidate: Candidate, recipe: Recipe | None = None) -> Any:
        """What the target makes of a candidate. Raises TargetError."""
        return self.loaded(candidate.program, recipe or self.recipe)(*(candidate.arguments or ()))

    def _found(self, candidate: Candidate, recipe: Recipe) -> Symptom | None:
        try:
            loaded = self.loaded(candidate.program, recipe)
            if candidate.arguments is None:
                return None
            actual = loaded(*candidate.arguments)
        except TargetError as error:
            return Symptom(error.kind, error.step, error.message)
        try:
            judged = Judge(candidate.program, self.engines, self.tolerance)(candidate.arguments, actual)
        except Error:
            return None
        bad = [verdict for verdict in judged.verdicts if not verdict.agrees]
        return difference(bad) if bad else None

    def loaded(self, program: Program, recipe: Recipe) -> TargetProgram:
        """The program in the child process. Raises TargetError."""
        key = _key(Candidate(program), recipe)
        found = self._loaded.pop(key, None)
        if found is None or not found.is_live:
            found = self.process.compile(program, recipe, device=self.device)
        self._loaded[key] = found
        if len(self._loaded) > _KEPT:
            self._loaded.popitem(last=False)[1].forget()
        return found

    def quick(self) -> None:
        """Compile without the attempts for speed from now on."""
        self.recipe = replace(self.recipe, quick=True)


def _key(candidate: Candidate, recipe: Recipe) -> str:
    digest = hashlib.sha256(candidate.program.text().encode())
    digest.update(repr(recipe).encode())
    for array in candidate.arguments or ():
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest() + str(candidate.arguments is None)
