"""Trials of a program: arguments, the target's results, and what reference engines say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from hloforge.dialect.errors import Error
from hloforge.runtime.debug.consensus import Judge, Judgement, Verdict
from hloforge.runtime.debug.target_process import TargetError

FORMAT = "hloforge.verification"

Call: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Trial:
    """One call and its judgement.

    Attributes:
        kind: of its arguments: ``given``, ``plausible``, ``random`` or ``special``.
        failure: why there are no results; empty if there are.
    """

    number: int
    kind: str
    seed: int
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""

    @property
    def agrees(self) -> bool:
        return not self.failure and all(verdict.agrees for verdict in self.verdicts)

    def text(self) -> str:
        head = f"trial {self.number}: {self.kind} values, seed {self.seed}"
        lines = [f"{head}: {self.failure}" if self.failure else head]
        lines += ["  " + line for verdict in self.verdicts for line in verdict.text().splitlines()]
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


@dataclass(frozen=True)
class Verification:
    """All trials of a program on a target."""

    program: str
    signature: str
    target: str
    references: tuple[str, ...]
    trials: tuple[Trial, ...]

    @property
    def agrees(self) -> bool:
        return all(trial.agrees for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``format`` and ``version`` tell readers what it is."""
        return {
            "format": FORMAT,
            "version": 1,
            "program": self.program,
            "signature": self.signature,
            "target": self.target,
            "references": list(self.references),
            "agrees": self.agrees,
            "trials": [_trial_json(trial) for trial in self.trials],
        }


def _trial_json(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "kind": trial.kind,
        "seed": trial.seed,
        "agrees": trial.agrees,
        "failure": trial.failure,
        "notes": list(trial.notes),
        "results": [_verdict_json(verdict) for verdict in trial.verdicts],
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    found = asdict(verdict.comparison) | {"agrees": verdict.agrees, "reference": verdict.engine}
    return found | {"statistics": verdict.statistics.to_json() if verdict.statistics else None}


def run_trial(call: Call, judge: Judge, arguments: Sequence[Any], *, number: int, kind: str, seed: int) -> Trial:
    """Call the target and judge its results.

    Raises:
        ReferenceEngineError: no engine can evaluate the program.
    """
    try:
        actual = call(*arguments)
    except TargetError as error:
        return Trial(number, kind, seed, failure=f"{error.step}: {error.message}")
    judged: Judgement = judge(arguments, actual)
    return Trial(number, kind, seed, judged.verdicts, judged.notes)


def first_difference(trials: Sequence[Trial]) -> str:
    """What to say of trials that do not all agree."""
    bad = [trial for trial in trials if not trial.agrees]
    if not bad:
        raise Error("all trials agree")
    first = bad[0]
    names = [verdict.comparison.name for verdict in first.verdicts if not verdict.agrees]
    what = first.failure or f"{', '.join(names[:8])} differ{'s' if len(names) == 1 else ''}"
    return f"{len(bad)} of {len(trials)} trials went wrong; in trial {first.number} ({first.kind} values) {what}"
