"""A reference engine in a child process: if it aborts, the caller gets an error."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

import numpy as np

from hloforge.dialect.errors import ReferenceEngineError
from hloforge.runtime.data.frames import read_frame, write_frame
from hloforge.runtime.reference.jaxlib_engines import FlatFunction

_QUIET = ("I0000", "W0000", "WARNING: All log messages before absl")


class IsolatedEngine:
    """Runs the engine ``name`` in a child process, started when first needed and again after a crash.

    Args:
        timeout: seconds that one compilation or one call may take; None waits for ever.
    """

    def __init__(self, name: str, timeout: float | None = None) -> None:
        self.name = name
        self.timeout = timeout
        self._worker: _Worker | None = None
        self._lock = threading.Lock()
        self._keys = itertools.count()
        # Programs that nobody calls any more. A finalizer may run at any point of an exchange, so it only notes them.
        self._dropped: list[int] = []

    def compile(self, module: bytes) -> FlatFunction:
        key = next(self._keys)
        home: list[_Worker] = []

        def call(arguments: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
            with self._lock:
                worker = self._live()
                # After a crash of another program's the new process does not know this one yet.
                if not home or home[0] is not worker:
                    worker.request({"request": "compile", "program": key}, (), module, self.timeout)
                    home[:] = [worker]
                return worker.request({"request": "call", "program": key}, arguments, b"", self.timeout)

        with self._lock:
            worker = self._live()
            worker.request({"request": "compile", "program": key}, (), module, self.timeout)
            home.append(worker)
        weakref.finalize(call, self._dropped.append, key)
        return call

    def close(self) -> None:
        """End the child process; a later use starts a new one."""
        with self._lock:
            if self._worker is not None:
                self._worker.stop()
            self._worker = None

    def _live(self) -> _Worker:
        if self._worker is None or not self._worker.alive:
            self._worker = _Worker(self.name)
            # Also when the interpreter ends, before it takes its modules apart, which ``__del__`` would meet.
            weakref.finalize(self, self._worker.stop_in, os.getpid())
            self._dropped.clear()
        while self._dropped:
            self._worker.request({"request": "forget", "program": self._dropped.pop()}, (), b"", self.timeout)
        return self._worker


class _Worker:
    def __init__(self, name: str) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        # -P: a folder called hloforge where the user is must not hide the installed package.
        command = [sys.executable, "-P", "-m", "hloforge.runtime.reference.worker", name]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=False
        )
        self.alive = True

    def request(
        self, header: dict[str, Any], arrays: Sequence[np.ndarray[Any, Any]], blob: bytes, timeout: float | None
    ) -> list[np.ndarray[Any, Any]]:
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._process.kill()

        timer = threading.Timer(timeout, expire) if timeout is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            write_frame(cast(BinaryIO, self._process.stdin), header, arrays, blob)
            reply, results, _ = read_frame(cast(BinaryIO, self._process.stdout))
        except (EOFError, BrokenPipeError):
            raise self._died(timeout if expired.is_set() else None) from None
        except BaseException:
            # An interrupted exchange leaves the pipe in the middle of a message.
            self.stop()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if "error" in reply:
            raise ReferenceEngineError(reply["error"], hint=reply["hint"])
        return results

    def _died(self, timeout: float | None) -> ReferenceEngineError:
        self.alive = False
        status = self._process.wait()
        if timeout is not None:
            return ReferenceEngineError(f"the reference engine {self.name} did not finish within {timeout:g} s")
        how = f"crashed ({signal.Signals(-status).name})" if status < 0 else f"ended with status {status}"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        told = [line.strip() for line in lines if line.strip() and not line.startswith(_QUIET)]
        reason = next((line for line in told if "ERROR" in line or line.startswith("F")), told[0] if told else "")
        return ReferenceEngineError(
            f"the reference engine {self.name} {how}" + (f": {reason[:300]}" if reason else ""),
            hint="try the other reference engine",
        )

    def stop_in(self, owner: int) -> None:
        """Stop it, if this is the process that started it and not a fork of that."""
        if os.getpid() == owner:
            self.stop()

    def stop(self) -> None:
        self.alive = False
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            try:
                if stream is not None:
                    stream.close()
            except BrokenPipeError:
                pass
