"""The server of readers: its children, and what happens when they, it or who asks it end."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import hloforge
from hloforge.dialect.budget import Budget, spending
from hloforge.dialect.forked import AVAILABLE, UNLIMITED, StoppedError, run_forked, trusted
from hloforge.importers import guard, guard_server, native
from hloforge.importers.guard_server import GoneError, ReaderServer
from tests.importers.servers import wait_until_ready

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="forked children are Linux's alone")

TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReaderServer]:
    """A server of this test's, which it may end; the guard has no other."""
    monkeypatch.delenv(guard_server.VARIABLE, raising=False)
    started = ReaderServer()
    monkeypatch.setattr(guard, "reader_server", lambda: started)
    yield started
    started.close()


def ask(server: ReaderServer, function: Callable[..., Any], *arguments: object, seconds: float = 60) -> Any:
    return server.ask(function, arguments, seconds, UNLIMITED)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def children_of(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_gone(process: int, seconds: float = 20) -> bool:
    """Whether a process ends soon."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def server_of(own: ReaderServer) -> int:
    """The number of the process, which has a single thread: its forks lack nothing."""
    wait_until_ready(own)
    (process,) = own._processes
    assert len(list(Path(f"/proc/{process}/task").iterdir())) == 1
    return process


def test_the_second_program_is_read_by_the_server(own: ReaderServer) -> None:
    hloforge.read(TEXT)
    wait_until_ready(own)
    before = os.times().children_user
    assert str(hloforge.read(TEXT).signature) == "(arg0: f32[4]) -> f32[4]"
    # No child of this process.
    assert os.times().children_user == before


def test_errors_are_those_of_a_fork(own: ReaderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = TEXT.replace("return %x", "return %y")
    wait_until_ready(own)
    with pytest.raises(hloforge.ImporterError) as served:
        hloforge.read(damaged)
    monkeypatch.setenv(guard_server.VARIABLE, "0")
    with pytest.raises(hloforge.ImporterError) as forked:
        hloforge.read(damaged)
    assert str(served.value) == str(forked.value)


def test_a_child_ends_with_its_connection(own: ReaderServer) -> None:
    process = server_of(own)
    found: list[int] = []

    def interrupted() -> None:
        time.sleep(0.2)  # it hangs by now
        found.extend(children_of(process))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.ask(time.sleep, (600,), 600, UNLIMITED, meanwhile=interrupted)
    assert found
    # One of them is ready for the next request.
    assert sum(is_gone(child, 1) for child in found) >= len(found) - 1
    assert ask(own, divmod, 7, 2) == (3, 1)


def test_a_late_signal_of_the_request_stops_no_child(own: ReaderServer) -> None:
    """The kernel may tell a child of the request's last bytes after it has read them, if it has stopped who sends."""
    wait_until_ready(own)
    with ExitStack() as stack:
        connection, status, _ = own._connected("sleep", stack)
        request = pickle.dumps((time.sleep, (0.5,), UNLIMITED))

        def send_more() -> None:
            time.sleep(0.2)
            connection.sendall(b"?")

        assert guard_server._answered(connection, request, time.monotonic() + 60, send_more) is not None, (
            guard_server._status(status, time.monotonic() + 60)
        )


def test_a_deadline_stops_a_child_and_leaves_the_server(own: ReaderServer) -> None:
    process = server_of(own)
    with pytest.raises(StoppedError) as info:
        ask(own, time.sleep, 600, seconds=0.3)
    assert info.value.how == "time"
    with spending(Budget(0.3, None)), pytest.raises(hloforge.Error, match=r"ran out of time \(0\.3 s\)"):
        guard.guarded(time.sleep, 600)
    assert ask(own, os.getppid) == process
    end = time.monotonic() + 20
    while len(children_of(process)) > 1:  # the one that is ready
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_child_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, threading, time\n"
        "from hloforge.dialect.forked import UNLIMITED\n"
        "from hloforge.importers.guard_server import reader_server\n"
        "from tests.importers.servers import wait_until_ready\n"
        "server = reader_server()\n"
        "wait_until_ready(server)\n"
        "def told():\n"
        "    print(server._processes[0], flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "server.ask(time.sleep, (600,), 600, UNLIMITED, meanwhile=told)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    process = int(done.stdout)
    assert is_gone(process)
    assert not [one for one in Path("/proc").glob("[0-9]*") if _asks_for(one, process)]


def _asks_for(process: Path, parent: int) -> bool:
    try:
        return parent_of(int(process.name)) == parent
    except OSError:
        return False


def test_a_server_that_was_killed_is_replaced(own: ReaderServer) -> None:
    process = server_of(own)
    os.kill(process, signal.SIGKILL)
    assert is_gone(process)
    assert hloforge.read(TEXT)
    wait_until_ready(own)
    assert ask(own, os.getppid) != process


def test_where_no_server_can_run_none_is_started_any_more(own: ReaderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    original = guard_server._started

    def counted() -> tuple[int, int]:
        control, process = original()
        started.append(process)
        return control, process

    monkeypatch.setattr(guard_server, "_WORKER", "no.such.module")
    monkeypatch.setattr(guard_server, "_started", counted)
    for _ in range(6):
        assert hloforge.read(TEXT)
        assert all(map(is_gone, started))
    assert len(started) == 3


def test_a_server_of_other_code_is_not_asked(own: ReaderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    process = server_of(own)
    own._is_ready = False
    monkeypatch.setattr(guard_server, "greeting", lambda: b"elsewhere")
    with pytest.raises(GoneError):
        ask(own, os.getpid)
    assert is_gone(process)


def test_a_forked_process_asks_the_same_server(own: ReaderServer) -> None:
    process = server_of(own)

    def asked() -> int:
        own.after_fork()  # as it is registered for that of ``reader_server``
        return int(ask(own, os.getppid))

    with own._lock:  # as another thread may
        assert run_forked(asked, seconds=60) == process
    assert ask(own, os.getppid) == process


def test_threads_ask_at_once(own: ReaderServer) -> None:
    wait_until_ready(own)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: ask(own, os.getpid), range(40)))
    assert len(set(numbers)) == 40


def test_nothing_that_a_child_does_reaches_the_next(own: ReaderServer) -> None:
    wait_until_ready(own)
    ask(own, sys.setrecursionlimit, 77)
    assert ask(own, sys.getrecursionlimit) != 77


def test_only_functions_that_its_children_have_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard_server.serves(native.mlir_text_to_bytecode)
    assert guard_server.serves(time.sleep)
    assert not guard_server.serves(lambda: None)
    assert not guard_server.serves(test_threads_ask_at_once)
    original = native.mlir_text_to_bytecode
    monkeypatch.setattr(native, "mlir_text_to_bytecode", lambda *_: original(*_))
    assert not guard_server.serves(native.mlir_text_to_bytecode)
    assert not guard_server.serves(original)


def test_trusted_programs_start_no_server(own: ReaderServer) -> None:
    with trusted():
        hloforge.read(TEXT)
    assert own._control is None


def test_a_server_that_nobody_asks_ends() -> None:
    script = "from hloforge.importers import guard_worker as w; w._IDLE = 0.1; w.main()"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [sys.executable, "-c", script, str(theirs.fileno())]
        done = subprocess.run(command, pass_fds=[theirs.fileno()], timeout=60, check=False)
        assert ours.recv(4096) == guard_server.greeting()
    assert done.returncode == 0
