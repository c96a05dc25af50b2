"""A program in a child process: a crash, an error or a time limit there costs one program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.__main__ import ROOT, reason

_MODULE = "benchmarks.perf_fuzz.one_program"


def examined(seed: int, kind: str, *, seconds: float, timeout: float, environment: Mapping[str, str]) -> dict[str, Any]:
    """What the child found, or ``{"error": …}`` with what it was at.

    Args:
        environment: variables of the child beside this process's.
    """
    arguments = [str(seed), f"--kind={kind}", f"--seconds={seconds}"]
    with tempfile.TemporaryDirectory() as cache:
        # Compilations find an empty cache.
        return run([sys.executable, "-m", _MODULE, *arguments], timeout, {"HLOFORGE_CACHE_DIR": cache, **environment})


def run(command: Sequence[str], timeout: float, environment: Mapping[str, str]) -> dict[str, Any]:
    """The last line of JSON that a command prints, or how it ended; its own children end with it."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=said, text=True, env=os.environ | environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = child.communicate(timeout=timeout)
            how = f"ended by {signal.Signals(-child.returncode).name}" if child.returncode < 0 else ""
        except subprocess.TimeoutExpired:
            _end(child)
            output, _ = child.communicate()
            how = f"took longer than {timeout:g} s"
        except BaseException:
            _end(child)
            child.communicate()
            raise
        said.seek(0)
        stderr = said.read()
    last = _lines(output)[-1:]
    if how or child.returncode or not last or "stage" in last[0]:
        stage = last[0].get("stage", "") if last else ""
        how = how or reason(stderr) or f"ended with status {child.returncode}"
        return {"error": how, "stage": stage}
    return last[0]


def _lines(output: str) -> list[dict[str, Any]]:
    found = []
    for line in output.splitlines():
        with suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def _end(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def write_json(path: Path, value: Any) -> None:
    """The whole file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(path)
