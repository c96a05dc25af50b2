"""Judge results by several reference engines: a result is right if one of them agrees, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error, ReferenceEngineError
from hloforge.dialect.program import Program
from hloforge.runtime.debug.statistics import ErrorStatistics, error_statistics
from hloforge.runtime.reference.compare import Report, ResultComparison, compare, differing
from hloforge.runtime.reference.correctness import second_opinions
from hloforge.runtime.reference.engines import ReferenceEngine, ReferenceProgram
from hloforge.runtime.reference.precision import machine_epsilons
from hloforge.runtime.reference.tolerances import Tolerance
from hloforge.runtime.session.convention import result_leaves

_EACH = "each element agrees with one of the engines"


@dataclass(frozen=True)
class Verdict:
    """One result of a program.

    Attributes:
        comparison: with the engine that it agrees with, or the first one that could say.
        engine: its name.
        statistics: of the errors against it; None where type or sizes differ.
    """

    comparison: ResultComparison
    engine: str
    statistics: ErrorStatistics | None

    @property
    def agrees(self) -> bool:
        return self.comparison.agrees

    def text(self) -> str:
        """As ``ResultComparison.text``, with the engine and the means."""
        lines = [f"{self.comparison.text()} [{self.engine}]"] if self.agrees else [self.comparison.text()]
        found = self.statistics
        if not self.agrees and found is not None:
            lines.append(
                f"  means: abs {found.mean_absolute:.3g}, rel {found.mean_relative:.3g}, ulp {found.mean_ulp:.3g}"
                + (f"; most at {list(found.worst)}" if found.worst else "")
                + (f"; NaN or infinite on one side: {found.one_sided}" if found.one_sided else "")
            )
            bars = ", ".join(f"{entry.label}: {entry.count}" for entry in found.histogram if entry.count)
            lines.append(f"  elements by distance in ulp: {bars}")
            lines.append(f"  reference: {self.engine}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Judgement:
    """The verdicts on all results of one call, and why an engine could not be asked."""

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return all(verdict.agrees for verdict in self.verdicts)


class Judge:
    """Judges the results of one program; each engine compiles it once.

    Args:
        engines: asked in turn, the second one only about what the first one disputes.
        tolerance: of floats, kept to the letter; None for the table's, with the float64 truth as second opinion
            (``runtime.judgement``).
    """

    def __init__(
        self, program: Program, engines: Sequence[ReferenceEngine], tolerance: Tolerance | float | None = None
    ) -> None:
        self.program = program
        self.engines = tuple(engines)
        self.tolerance = Tolerance(float(tolerance)) if isinstance(tolerance, int | float) else tolerance
        self._prepared: dict[tuple[str, bool, bool], ReferenceProgram | Error] = {}

    def expected(
        self, engine: ReferenceEngine, arguments: Sequence[Any], *, float64: bool = False, partly: bool = False
    ) -> Any:
        """What an engine says, as of its ``prepare``. Raises Error where it cannot."""
        key = (engine.name, float64, partly)
        if key not in self._prepared:
            try:
                self._prepared[key] = engine.prepare(self.program, float64=float64, partly=partly)
            except Error as error:
                self._prepared[key] = error
        found = self._prepared[key]
        if isinstance(found, Error):
            raise found
        return found(*arguments)

    def __call__(self, arguments: Sequence[Any], actual: Any) -> Judgement:
        """Judge the results of a call.

        Raises:
            ReferenceEngineError: no engine can evaluate the program.
        """
        opinions: list[tuple[ReferenceEngine, Report, Any]] = []
        notes: list[str] = []
        failures: dict[ReferenceEngine, Error] = {}
        for engine in self.engines:
            try:
                opinions.append((engine, *self._opinion(engine, arguments, actual)))
            except Error as error:
                failures[engine] = error
                notes.append(f"{engine.name} could not say: {error.message}")
                continue
            if opinions[-1][1].agrees:
                break
        if not opinions:
            raise _nobody(tuple(failures.values()))
        if not opinions[-1][1].agrees and self.tolerance is None:
            for engine in failures:
                opinions += self._wide_opinion(engine, arguments, actual)
        if any(result.problem for result in opinions[0][1].results):
            engine, report, _ = opinions[0]
            return Judgement(tuple(Verdict(result, engine.name, None) for result in report.results), tuple(notes))
        got = _arrays(self.program, actual)
        wanted = [_arrays(self.program, expected) for _, _, expected in opinions]
        return Judgement(
            tuple(self._verdict(number, opinions, got, wanted) for number in range(len(got))), tuple(notes)
        )

    def _opinion(self, engine: ReferenceEngine, arguments: Sequence[Any], actual: Any) -> tuple[Report, Any]:
        expected = self.expected(engine, arguments)
        report = compare(actual, expected, tolerance=self.tolerance)
        if report.agrees:
            return report, expected
        if not _are_same(_arrays(self.program, expected), _arrays(self.program, self.expected(engine, arguments))):
            # XLA's CPU client reads memory that nothing wrote in some convolutions of f16.
            raise ReferenceEngineError(f"{engine.name} gives a different result each time")
        if self.tolerance is not None or any(result.problem for result in report.results):
            return report, expected
        try:
            truth = self.expected(engine, arguments, float64=True, partly=True)
        except Error:
            return report, expected
        return second_opinions(report, actual, expected, truth, machine_epsilons(self.program)), expected

    def _wide_opinion(
        self, engine: ReferenceEngine, arguments: Sequence[Any], actual: Any
    ) -> list[tuple[ReferenceEngine, Report, Any]]:
        """What an engine that cannot evaluate the program says of it in float64, rounded to the program's types."""
        try:
            expected = _rounded(self.expected(engine, arguments, float64=True), actual)
        except Error:
            return []
        return [(engine, compare(actual, expected), expected)]

    def _verdict(
        self,
        number: int,
        opinions: Sequence[tuple[ReferenceEngine, Report, Any]],
        got: Sequence[np.ndarray[Any, Any]],
        wanted: Sequence[Sequence[np.ndarray[Any, Any]]],
    ) -> Verdict:
        chosen = next((place for place, (_, report, _) in enumerate(opinions) if report.results[number].agrees), 0)
        engine, report, _ = opinions[chosen]
        found = report.results[number]
        if not found.agrees and len(opinions) > 1:
            masks = [differing(got[number], arrays[number], self.tolerance) for arrays in wanted]
            if not np.logical_and.reduce(masks).any():
                found = replace(found, accepted=_EACH)
        return Verdict(found, engine.name, error_statistics(got[number], wanted[chosen][number]))


def _rounded(wide: Any, like: Any) -> Any:
    """Results in the element types of others, which are nested in the same tuples."""
    if isinstance(wide, tuple | list):
        return tuple(_rounded(*members) for members in zip(wide, like, strict=True))
    return None if wide is None else np.asarray(wide).astype(np.asarray(like).dtype)


def _arrays(program: Program, results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf) for leaf in result_leaves(program.signature.result, results)]


def _are_same(some: Sequence[np.ndarray[Any, Any]], others: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether arrays have the same bytes."""
    return all(one.tobytes() == other.tobytes() for one, other in zip(some, others, strict=True))


def _nobody(failures: Sequence[Error]) -> ReferenceEngineError:
    first, *others = failures
    return ReferenceEngineError(
        first.message, location=first.location, hint=first.hint, notes=tuple(error.message for error in others)
    )
