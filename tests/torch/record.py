"""``python -m tests.torch.record [OPERATOR...]``: measure PyTorch's operator tests and write the expected failures.

With names of operators only these are measured, and nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.expectations import Outcome, write_expectations
from tests.torch.opinfo import cases_of, judge, operators
from tests.torch.test_opinfo import COUNT, EXPECTED

HEADER = """\
Samples of PyTorch's operator database that fail, by stage. `reference`: PyTorch itself makes no graph of it, or needs
another device. `import`: refused by name. `run`: sizes that depend on elements.
`python -m tests.torch.record` writes this file; `make test-all` holds it to be true."""


def main(names: list[str]) -> None:
    """Judge the samples, print how they came out, and write the file if all were judged."""
    unknown = set(names) - operators().keys()
    if unknown:
        sys.exit(f"no operator is called {', '.join(sorted(unknown))}")
    outcomes: dict[str, Outcome] = {}
    for name in names or operators():
        for case in cases_of(name, COUNT):
            outcome = outcomes[case.name] = judge(case)
            if outcome.stage:
                print(f"{case.name}  {outcome.stage}  {outcome.message[:200]}", flush=True)
    print(dict(Counter(outcome.stage or "pass" for outcome in outcomes.values())))
    if not names:
        write_expectations(EXPECTED, HEADER, outcomes)


if __name__ == "__main__":
    main(sys.argv[1:])
