"""Samples compiled by hloforge: many as one program, for starting IREE's compiler takes most of a small one's time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.torch import to_numpy, to_torch
from tests import batches
from tests.batches import Ready
from tests.expectations import Outcome
from tests.torch.opinfo import Case, expected_of, imported, mismatch

BATCH = 32
SEED = 7


def _arguments(case: Case, program: Program) -> list[np.ndarray[Any, Any]]:
    arrays = [np.array(to_numpy(tensor)) for tensor in case.tensors]
    seeded = len(program.signature.parameters) > len(arrays)
    return [*arrays, np.array(SEED, np.int64)] if seeded else arrays


def judge(cases: Sequence[Case]) -> dict[str, Outcome]:
    """How far each sample comes on the CPU target."""
    outcomes: dict[str, Outcome] = {}
    ready: list[Ready[Case]] = []
    for case in cases:
        try:
            expected = expected_of(case)
            graph = imported(case)
            program = graph.traced(graph.shapes, {})
            ready.append(Ready(case, program, _arguments(case, program), expected))
        except Error as error:
            outcomes[case.name] = Outcome("import", error.message)
        except Exception as error:  # PyTorch's own, of any kind: it makes no graph of the sample
            outcomes[case.name] = Outcome("reference", f"{type(error).__name__}: {error}")
    outcomes |= {case.name: outcome for case, outcome in batches.outcomes(ready, _judged, size=BATCH)}
    return outcomes


def _judged(ready: Ready[Case], results: Sequence[np.ndarray[Any, Any]]) -> str:
    return mismatch(ready.case, list(ready.expected), [to_torch(np.array(result)) for result in results])
