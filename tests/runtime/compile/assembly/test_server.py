"""The server of IREE's compiler: its children, and what happens when they or it end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hloforge
from hloforge.dialect.budget import Budget, spending
from hloforge.dialect.forked import UNLIMITED, run_forked
from hloforge.runtime.compile.assembly import server

pytestmark = [
    pytest.mark.skipif(not server.is_available(), reason="forked children are Linux's alone"),
    pytest.mark.usefixtures("iree_codegen"),
]

ADD = "HloModule m\nENTRY e {\n  x = f32[40] parameter(0)\n  ROOT y = f32[40] add(x, x)\n}\n"
FIELDS = {"flags": [], "device": "", "dispatches": {}, "format": "embedded-elf", "memory": 0, "temporary": "."}


@pytest.fixture
def own() -> Iterator[server.Server]:
    """A server of this test's, which it may end."""
    started = server.Server()
    yield started
    started.close()


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _waited(process: int) -> bool:
    deadline = time.monotonic() + 30
    while _is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _is_alive(process)


def test_a_child_refuses_what_it_cannot_parse_and_the_next_one_answers(own: server.Server) -> None:
    for _ in range(2):
        with own.request("program", b"no program", FIELDS) as request, pytest.raises(server.GoneError):
            request.receive()
    with own.request("program", b"module {}", FIELDS) as request:
        audited, names, *executables = request.receive()
    assert b"builtin.module" in audited and names == b"[]" and executables == []


def test_a_child_does_not_outlive_its_block(own: server.Server) -> None:
    with own.request("program", b"module {}", FIELDS) as request:
        request.receive()
        process = request.number
        assert _is_alive(process)
    assert _waited(process)


def test_a_child_that_is_killed_is_gone(own: server.Server) -> None:
    with own.request("program", b"module {}", FIELDS) as request:
        request.receive()
        os.kill(request.number, signal.SIGKILL)
        with pytest.raises(server.GoneError):
            request.receive()


def test_a_child_is_waited_for_as_long_as_there_is_time(own: server.Server) -> None:
    with own.request("program", b"module {}", FIELDS) as request:
        request.receive()
        # It waits for more.
        with spending(Budget(0.2, None)), pytest.raises(server.GoneError):
            request.receive()


def test_a_server_that_was_killed_is_replaced(own: server.Server) -> None:
    with own.request("program", b"module {}", FIELDS) as request:
        request.receive()
        parent = int(Path(f"/proc/{request.number}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert _waited(parent)
    with pytest.raises(server.GoneError):
        own.request("program", b"module {}", FIELDS)
    with own.request("program", b"module {}", FIELDS) as request:
        assert request.receive()


def test_a_deadline_ends_no_server(own: server.Server) -> None:
    with own.request("program", b"module {}", FIELDS) as request:
        request.receive()
        with spending(Budget(1e-9, None)), pytest.raises(server.GoneError):
            own.request("program", b"module {}", FIELDS)
        # Its other children go on.
        time.sleep(0.2)
        assert _is_alive(request.number)


def test_a_forked_process_asks_the_same_server(monkeypatch: pytest.MonkeyPatch) -> None:
    server.server().start()
    monkeypatch.setattr(server, "_started", lambda _: pytest.fail("another server"))
    with server.server()._lock:  # as another thread may
        asked = run_forked(lambda: _answer(server.server()), seconds=60, memory=UNLIMITED)
    assert asked


def _answer(asked: server.Server) -> bool:
    with asked.request("program", b"module {}", FIELDS) as request:
        return bool(request.receive())


def test_where_no_server_can_run_none_is_started_any_more(own: server.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(server, "_WORKER", "no.such.module")
    original = server._started
    monkeypatch.setattr(server, "_started", lambda worker: started.append(1) or original(worker))
    for _ in range(5):
        with pytest.raises(server.GoneError):
            own.request("program", b"module {}", FIELDS)
    assert len(started) == 3


def test_a_program_is_compiled_without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead(server.Server):
        def request(self, *_: object) -> server.Request:
            raise server.GoneError

    monkeypatch.setattr(server, "server", Dead)
    assert hloforge.compile(ADD, cache=False).vmfb


def test_the_server_ends_with_its_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from hloforge.runtime.compile.assembly import server\n"
        f"request = server.server().request('program', b'module {{}}', {FIELDS!r})\n"
        "request.receive()\n"
        "print(request.number, flush=True)\n"
        "import os\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert _waited(int(done.stdout))
