"""What starting costs, measured and written."""

from __future__ import annotations

import json
import subprocess

import pytest

from benchmarks import start_up


def test_a_start_takes_time_and_memory_of_its_own() -> None:
    used, megabytes = start_up._started(["-c", "held = b'x' * (1 << 24)"])
    assert used > 0 and 16 < megabytes < 60  # this process has more


def test_a_failing_start_is_no_measurement() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        start_up._started(["-c", "raise SystemExit(3)"])


def test_the_page_has_what_was_measured() -> None:
    results = json.loads(start_up.RESULTS.read_text())
    assert list(results["starts"]) == list(start_up.STARTS)
    assert start_up.document(results) in start_up.DOCUMENT.read_text()
