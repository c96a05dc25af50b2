"""``python -m tests.onnx.record [NAME...]``: measure ONNX's tests and write the expected failures and the counts.

With names of modules or models only these are measured, and nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.expectations import Outcome, write_expectations
from tests.onnx.node_cases import BATCH, cases_of, folders, judge, model_case, modules
from tests.onnx.test_nodes import EXPECTED

_HEADER = """\
Tests of the package onnx that fail, by stage. `import`: refused by name. `numerics`: other random numbers than numpy's.
`python -m tests.onnx.record` writes this file; `make test-all` holds it to be true."""


def main(names: list[str]) -> None:
    """Judge the tests, print how they came out, and write the file if all were judged."""
    known = modules()
    unknown = set(names) - {*known, *folders()}
    if unknown:
        sys.exit(f"no module or model is called {', '.join(sorted(unknown))}")
    cases = [case for name in names or known if name in known for case in cases_of(name)]
    cases += [model_case(name) for name in names or folders() if name not in known]
    outcomes: dict[str, Outcome] = {}
    for start in range(0, len(cases), BATCH):
        fresh = judge(cases[start : start + BATCH])
        outcomes |= fresh
        for name, outcome in fresh.items():
            if outcome.stage:
                print(f"{name}  {outcome.stage}  {outcome.message[:200]}", flush=True)
    print(dict(Counter(outcome.stage or "pass" for outcome in outcomes.values())))
    if not names:
        write_expectations(EXPECTED, _HEADER, outcomes)


if __name__ == "__main__":
    main(sys.argv[1:])
