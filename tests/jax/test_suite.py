"""The runner of JAX's own tests, on tests of our own that end in every way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("absl")

from tests.jax import suite

TESTS = """
import os, time, unittest
OURS = os.environ["HLOFORGE_JAX_PLATFORM"] == "cpu"

class Ends(unittest.TestCase):
    def test_a_pass(self): pass
    def test_b_failure(self): self.assertFalse(OURS, "0x12 is wrong")
    def test_c_crash(self): OURS and os.abort()
    def test_d_endless(self): OURS and time.sleep(60)
    def test_e_skip(self): OURS and self.skipTest("not here")
    def test_f_fails_everywhere(self): self.fail()
    def test_g_pass(self): pass
    def test_h_slow(self): time.sleep(7 if OURS else 2)
"""


@pytest.mark.slow
def test_each_way_to_end_costs_one_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "ends_test.py").write_text(TESTS)
    known = tmp_path / "known.txt"
    known.write_text("# why\nends_test.py::Ends.test_b_failure: it is ours\nends_test.py::Ends.test_g_pass: once\n")
    monkeypatch.setattr(suite, "KNOWN", known)
    log = tmp_path / "log.jsonl"
    monkeypatch.setattr(sys, "argv", ["suite", str(tmp_path), f"--log={log}", "--timeout=5"])
    assert suite.main() == 1
    text = capsys.readouterr().out
    assert (
        "of 7 tests that pass on JAX's CPU: {'passed': 3, 'failed': 1, 'crashed': 1, 'timeout': 1, 'skipped': 1}"
        in text
    )
    assert "1 others do not pass there" in text
    assert "ends_test.py::Ends.test_b_failure (known)" in text
    assert "passes, and is listed as a difference: ends_test.py::Ends.test_g_pass" in text
    verdicts = log.read_text()
    # The second run finds all verdicts in the log.
    assert suite.main() == 1
    assert log.read_text() == verdicts


def test_a_seed_chooses_the_same_tests_in_their_order() -> None:
    names = [f"A.test_{number}" for number in range(50)]
    once, again, other = (suite.chosen("f.py", names, only="", each=5, seed=seed) for seed in (1, 1, 2))
    assert once == again == sorted(once, key=names.index)
    assert once != other
    assert suite.chosen("f.py", names, only="f.py::A.test_1$", each=5, seed=1) == ["A.test_1"]
