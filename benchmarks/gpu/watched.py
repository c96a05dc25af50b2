"""A child process that answers questions, so that a hang, a crash or a lost device costs one row of a check.

An error of CUDA (an address out of bounds, say) ends all further work of its process: after an error the next question
goes to a new child.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence

from benchmarks.gpu.rows import Row


class Watched:
    """Asks one child after another; ``serve`` is what answers in each.

    Args:
        arguments: of Python in the child, ``-m module …``.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._command = [sys.executable, *arguments]
        self._process: subprocess.Popen[str] | None = None
        self._said: deque[str] = deque(maxlen=5)

    def ask(self, question: Row, seconds: float) -> Row:
        """The child's answer; one with ``error`` where it ends, or does not answer in time."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        expired = threading.Event()
        timer = threading.Timer(seconds, lambda: (expired.set(), process.kill()))
        timer.start()
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            status = process.wait()
            said = self._last_words()
            self.close()
            why = f"no answer within {seconds:.0f} s" if expired.is_set() else f"its process ended (status {status})"
            return {"error": f"{why}{said and ': '}{said}"}
        answer: Row = json.loads(line)
        if "error" in answer or answer.get("stage"):
            self.close()
        return answer

    def close(self) -> None:
        """End the child, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace")
        self._process, self._said = process, deque(maxlen=5)
        # Read as it comes: a child whose pipe is full would wait.
        self._reader = threading.Thread(target=self._said.extend, args=(process.stderr,), daemon=True)
        self._reader.start()
        return process

    def _last_words(self) -> str:
        # A grandchild may hold the pipe open.
        self._reader.join(1.0)
        lines = [line.strip() for line in self._said if line.strip()]
        return lines[-1][:160] if lines else ""


def serve(answer: Callable[[Row], Row]) -> None:
    """Answer the questions of a ``Watched``. What fails is said in the answer, under its own name."""
    # What a library prints to stdout must not mix with the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        question = json.loads(line)
        try:
            found = answer(question)
        except Exception as error:  # a defect is what its row says
            found = {"name": question["name"], "error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(found), file=answers, flush=True)
