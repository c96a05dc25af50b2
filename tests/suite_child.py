"""A child process that runs programs of a suite, so that a crash or an endless loop costs one program its answer.

``python -m tests.suite_child SUITE`` reads names, a line each, and answers each with a line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import Any

from tests import support_vulkan
from tests.conformance import interpret_suite, vulkan_suite as interpret_vulkan_suite
from tests.expectations import Outcome
from tests.models import dump_suite
from tests.operations import (
    aarch64_suite,
    cuda_suite,
    engines_suite,
    suite as operations_suite,
    vulkan_suite as operations_vulkan_suite,
)

SUITES: dict[str, Any] = {
    "interpret": interpret_suite,
    "models": dump_suite,
    "operations": operations_suite,
    "engines": engines_suite,
    "interpret-vulkan": interpret_vulkan_suite,
    "operations-vulkan": operations_vulkan_suite,
    "operations-cuda": cuda_suite,
    "operations-aarch64": aarch64_suite,
}


class SuiteChild:
    """Asks one child after another; each lives until it crashes or runs out of time."""

    def __init__(self, suite: str, timeout: float) -> None:
        self.suite = suite
        self.timeout = timeout
        self._process: subprocess.Popen[str] | None = None

    def outcome(self, name: str) -> Outcome:
        if self._process is None:
            command = [sys.executable, "-m", "tests.suite_child", self.suite]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=getattr(SUITES[self.suite], "environment", support_vulkan.environment)(),
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        expired = threading.Event()
        timer = threading.Timer(self.timeout, lambda: (expired.set(), process.kill()))
        timer.start()
        try:
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            timer.cancel()
        if line:
            return Outcome(**json.loads(line))
        status = process.wait()
        self.close()
        if expired.is_set():
            return Outcome("run", f"does not finish within {self.timeout:g} s")
        return Outcome("run", f"crashes the process (status {status})")

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.communicate()


def _serve(suite: Any) -> None:
    # What a library prints to stdout must not mix with the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            outcome = suite.outcome(line.strip())
        except Exception as error:  # not an Error of ours: a defect, reported under its own name
            outcome = Outcome("run", f"{type(error).__name__}: {error}")
        print(json.dumps(asdict(outcome)), file=answers, flush=True)


def timed(child: SuiteChild, name: str) -> Outcome:
    """The outcome, with a line of progress on stderr."""
    start = time.perf_counter()
    outcome = child.outcome(name)
    print(f"{time.perf_counter() - start:8.2f} s  {outcome.stage or 'agrees':10}{name}", file=sys.stderr, flush=True)
    return outcome


if __name__ == "__main__":
    _serve(SUITES[sys.argv[1]])
