"""``python -m tests.tensorflow.record [NAME...]``: measure the sweep and write its expected failures.

With names only these functions are measured, and nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.expectations import Outcome, write_expectations
from tests.tensorflow.cases import Case, operators
from tests.tensorflow.judge import BATCH, judge
from tests.tensorflow.layers import layers
from tests.tensorflow.test_sweep import ENGINE, EXPECTED

_HEADER = """\
Functions of TensorFlow and layers of Keras that fail, by stage. `import`: XLA has no such operation.
`python -m tests.tensorflow.record` writes this file; `make test-all` holds it to be true."""


def main(names: list[str]) -> None:
    """Judge the functions, print how they came out, and write the file if all were judged."""
    everything: list[Case] = [*operators(), *layers()]
    cases = [case for case in everything if not names or case.name in names]
    unknown = set(names) - {case.name for case in cases}
    if unknown:
        sys.exit(f"nothing is called {', '.join(sorted(unknown))}")
    outcomes: dict[str, Outcome] = {}
    for start in range(0, len(cases), BATCH):
        fresh = judge(cases[start : start + BATCH], ENGINE)
        outcomes |= fresh
        for name, outcome in fresh.items():
            if outcome.stage:
                print(f"{name}  {outcome.stage}  {outcome.message[:300]}", flush=True)
    print(dict(Counter(outcome.stage or "pass" for outcome in outcomes.values())))
    if not names:
        write_expectations(EXPECTED, _HEADER, outcomes)


if __name__ == "__main__":
    main(sys.argv[1:])
