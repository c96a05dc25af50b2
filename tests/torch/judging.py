"""Samples compiled by hloforge: many as one program, for starting IREE's compiler takes most of a small one's time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.torch import to_numpy, to_torch
from tests.expectations import Outcome
from tests.torch.opinfo import Case, expected_of, imported, mismatch

BATCH = 32
SEED = 7


@dataclass(frozen=True)
class Ready:
    """A sample with its program."""

    case: Case
    program: Program
    expected: list[torch.Tensor]

    @property
    def arguments(self) -> list[np.ndarray[Any, Any]]:
        arrays = [np.array(to_numpy(tensor)) for tensor in self.case.tensors]
        seeded = len(self.program.signature.parameters) > len(arrays)
        return [*arrays, np.array(SEED, np.int64)] if seeded else arrays


def judge(cases: Sequence[Case]) -> dict[str, Outcome]:
    """How far each sample comes on the CPU target."""
    outcomes: dict[str, Outcome] = {}
    ready: list[Ready] = []
    for case in cases:
        try:
            expected = expected_of(case)
            graph = imported(case)
            ready.append(Ready(case, graph.traced(graph.shapes, {}), expected))
        except Error as error:
            outcomes[case.name] = Outcome("import", error.message)
        except Exception as error:  # PyTorch's own, of any kind: it makes no graph of the sample
            outcomes[case.name] = Outcome("reference", f"{type(error).__name__}: {error}")
    for start in range(0, len(ready), BATCH):
        outcomes.update(_run(ready[start : start + BATCH]))
    return outcomes


def _run(ready: Sequence[Ready]) -> Iterator[tuple[str, Outcome]]:
    """Outcomes of programs that are compiled as one; if that fails, each half for itself."""
    try:
        results = iter(_computed(ready))
    except Error as error:
        if len(ready) > 1:
            yield from _run(ready[: len(ready) // 2])
            yield from _run(ready[len(ready) // 2 :])
        else:
            yield ready[0].case.name, Outcome("compile", error.message)
        return
    for each in ready:
        actual = [to_torch(np.array(next(results))) for _ in each.program.signature.flat_results]
        message = mismatch(each.case, each.expected, actual)
        yield each.case.name, Outcome("numerics", message) if message else Outcome()


def _computed(ready: Sequence[Ready]) -> list[np.ndarray[Any, Any]]:
    with hloforge.Builder("samples") as builder:
        results: list[Any] = []
        number = 0
        for each in ready:
            given = []
            for parameter in each.program.signature.parameters:
                given.append(builder.parameter(number, parameter.shape, f"p{number}"))
                number += 1
            result = ops.call(each.program, *given)
            results += list(result) if result.shape.is_tuple else [result]
        # One result is given back as an array, so there are always two.
        batch = builder.build((*results, ops.constant(0, "s32")))
    arguments = [array for each in ready for array in each.arguments]
    return [np.asarray(array) for array in batch.compile(cache=False, timeout=120)(*arguments)[:-1]]
