"""Child of ``tests.jax.suite``: loads one file of JAX's tests, prints the names in it, then runs those it is told.

A name is ``Class.method``. Verdicts are JSON lines ``{"name", "stage", "reason", "seconds"}``, the stage being
``passed``, ``skipped`` or ``failed``; an empty one says that the file's names are complete.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

_REASON = 600


def main(path: Path) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print is no verdict
    sys.argv = [str(path), "--jax_test_dut=cpu"]
    warnings.simplefilter("ignore")
    tests = {_name(test): test for test in _tests(unittest.defaultTestLoader.loadTestsFromModule(_loaded(path)))}
    for name in tests:
        print(json.dumps(name), file=out)
    print("{}", file=out, flush=True)
    for line in sys.stdin:
        name = json.loads(line)
        print(json.dumps(_verdict(name, tests[name])), file=out, flush=True)


def _loaded(path: Path) -> ModuleType:
    """The file as a module, with absl's flags as its own ``main`` would have them."""
    from absl import flags

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    flags.FLAGS(sys.argv, known_only=True)
    return module


def _tests(suite: unittest.TestSuite | unittest.TestCase) -> Iterator[unittest.TestCase]:
    if isinstance(suite, unittest.TestCase):
        yield suite
        return
    for part in suite:
        yield from _tests(part)


def _name(test: unittest.TestCase) -> str:
    """Without what absl adds to say the parameters, which may be addresses."""
    return f"{type(test).__name__}.{test._testMethodName}"


def _verdict(name: str, test: unittest.TestCase) -> dict[str, object]:
    """Run one test with the set-up of its class and module."""
    result = unittest.TestResult()
    start = time.perf_counter()
    unittest.TestSuite([test]).run(result)
    seconds = round(time.perf_counter() - start, 2)
    problems = [text for _, text in result.failures + result.errors]
    if problems:
        stage, reason = "failed", _end(problems[0])
    elif result.skipped or not result.testsRun:
        stage, reason = "skipped", str(result.skipped[:1])
    else:
        stage, reason = "passed", ""
    return {"name": name, "stage": stage, "reason": reason[:_REASON], "seconds": seconds}


def _end(trace: str) -> str:
    """The exception of a traceback without its frames, in one line.

    JAX shows a second traceback for its user's frames; the error itself is the first line after the frames.
    """
    lines = [line for line in trace.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(lines) if _is_error(line)]
    start = errors[0] if errors else max(0, len(lines) - 3)
    return " ".join(" ".join(lines[start : start + 12]).split())


def _is_error(line: str) -> bool:
    head = line.split(":")[0]
    return not line.startswith((" ", "Traceback")) and head.replace(".", "").replace("_", "").isalnum()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
