"""StableHLO's interpreter, asked first: it compiles nothing, so that XLA's client takes five times as long.

It aborts for many programs. Then a process that has loaded it forks the next one, which is ready in a tenth of a
second. What does not agree here is judged by both engines.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from hloforge.dialect.errors import Error, ReferenceEngineError
from hloforge.dialect.program import Program
from hloforge.runtime.data.frames import read_frame, write_frame
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.reference.jaxlib_engines import Arrays, FlatFunction, InterpreterEngine

# Of a core; programs that take longer are XLA's.
_SECONDS = 1.0


class FirstOpinion:
    """Says whether results agree with the interpreter's. The process is started when it is needed, and again."""

    def __init__(self) -> None:
        self._engine = ReferenceEngine("interpreter", _Forking(self))
        self._child: subprocess.Popen[bytes] | None = None

    def agrees(self, program: Program, arguments: Sequence[Any], actual: Any) -> bool:
        """Whether the interpreter can evaluate the program, and says the same."""
        try:
            return compare(actual, self._engine.prepare(program)(*arguments)).agrees
        except Error:
            return False

    def evaluated(self, module: bytes, arguments: Arrays) -> list[np.ndarray[Any, Any]]:
        """The results of a module. Raises ReferenceEngineError."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.first_opinion"], cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        try:
            write_frame(cast(BinaryIO, self._child.stdin), {}, arguments, module)
            reply, results, _ = read_frame(cast(BinaryIO, self._child.stdout))
        except (EOFError, BrokenPipeError):
            self.close()
            raise ReferenceEngineError("the process of the interpreter ended") from None
        except BaseException:
            # An interrupted exchange leaves the pipe in the middle of a message.
            self.close()
            raise
        if "error" in reply:
            raise ReferenceEngineError(reply["error"])
        return results

    def close(self) -> None:
        """End the process."""
        if self._child is None:
            return
        child, self._child = self._child, None
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            with suppress(BrokenPipeError):
                cast(BinaryIO, stream).close()


class _Forking:
    """The engine that evaluates in forks."""

    def __init__(self, opinion: FirstOpinion) -> None:
        self.opinion = opinion

    def compile(self, module: bytes) -> FlatFunction:
        return lambda arguments: self.opinion.evaluated(module, arguments)


def _serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Evaluate programs until the other side closes the stream, or one of them ends the process."""
    engine = InterpreterEngine()
    while True:
        try:
            _, arguments, module = read_frame(requests)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        try:
            header, results = {}, engine.compile(module)(arguments)
        except Error as error:
            header, results = {"error": error.message}, []
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(replies, header, results)


def main() -> None:
    # Replies keep the pipe to themselves: what a library prints goes to stderr.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        if not (child := os.fork()):
            try:
                _serve(sys.stdin.buffer, replies)
            except BaseException:
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not status:
            return
        # It ended with a request that nobody has answered: the other side sends the next one after the reply.
        write_frame(replies, {"error": f"the interpreter ended with status {status}"})


if __name__ == "__main__":
    main()
