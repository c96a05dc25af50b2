"""guarded: crashes, hangs and errors of a reader become errors here; damaged programs never end the process."""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hloforge.dialect.errors import ElidedConstantError, ImporterError, Location
from hloforge.dialect.mlir import _hlo, _jax, context, hlo_proto_to_stablehlo, ir
from hloforge.importers.guard import guarded
from hloforge.importers.guard_server import VARIABLE
from hloforge.importers.reader import read
from tests.importers.servers import served

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guard forks on Linux only")


@pytest.fixture(params=["forked", "served"], autouse=True)
def guard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every test with a fork of this process, and with a child of the server."""
    if request.param == "forked":
        monkeypatch.setenv(VARIABLE, "0")
        yield "forked"
        return
    monkeypatch.delenv(VARIABLE, raising=False)
    with served() as count:
        yield "served"
    if request.function in _SERVED:
        assert count[0]


HLO = """HloModule m, entry_computation_layout={(f32[4,8]{0,1}, s32[3]{0})->f32[4]{0}}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less {
  l = f32[] parameter(0)
  m = f32[] parameter(1)
  ROOT n = pred[] compare(l, m), direction=LT
}

ENTRY main {
  x = f32[4,8]{0,1} parameter(0)
  i = s32[3]{0} parameter(1)
  zero = f32[] constant(0)
  t = f32[8,4]{1,0} transpose(x), dimensions={1,0}
  r = f32[4]{0} reduce(t, zero), dimensions={0}, to_apply=add
  p = f32[6]{0} pad(r, zero), padding=1_1
  d = f32[6]{0} sort(p), dimensions={0}, to_apply=less
  ROOT s = f32[4]{0} slice(d), slice={[1:5]}
}
"""


def test_results_and_errors_come_back_whole() -> None:
    def refuse() -> None:
        raise ElidedConstantError("no", location=Location("f", 1, 2), hint="h", notes=("n",), op="o")

    assert guarded(divmod, 7, 2) == (3, 1)
    assert len(guarded(bytes, 5_000_000)) == 5_000_000
    with pytest.raises(ElidedConstantError) as info:
        guarded(refuse)
    assert str(info.value) == "f:1:2: error: no\nnote: in o\nnote: n\nnote: h"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_is_an_error(number: signal.Signals) -> None:
    with pytest.raises(ImporterError, match=rf"crashed \({number.name}\)"):
        guarded(signal.raise_signal, number)


def test_an_end_without_a_result_is_an_error() -> None:
    with pytest.raises(ImporterError, match="ended without a result"):
        guarded(os._exit, 3)


def test_what_native_code_says_when_it_crashes_is_told() -> None:
    """As XLA does, which writes to standard error and aborts."""
    command = "echo 'F1121 05:44:50.69 15372 file.cc:188] Check failed: x (1 vs. 2)' >&2; kill -ABRT $PPID; sleep 9"
    with pytest.raises(ImporterError, match=r"XLA's reader gave up: Check failed: x \(1 vs\. 2\)"):
        guarded(os.system, command)


def test_what_native_code_starts_is_not_waited_for() -> None:
    """Neither by a child that was ready, nor by one that is forked when it is asked for."""
    start = time.monotonic()
    for _ in range(3):
        with pytest.raises(ImporterError, match="crashed"):
            guarded(os.system, "kill -ABRT $PPID; sleep 60")
    assert time.monotonic() - start < 50


def test_a_child_reads_one_program() -> None:
    assert os.getpid() not in {guarded(os.getpid), guarded(os.getpid)}
    assert guarded(os.getpid) != guarded(os.getpid)


def test_a_hang_is_stopped() -> None:
    start = time.monotonic()
    with pytest.raises(ImporterError, match=r"longer than 0\.2 s"):
        guarded(time.sleep, 60, limit=0.2)
    assert time.monotonic() - start < 5


def test_no_warning_and_no_output(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guarded(os.write, 2, b"noise")
    assert capfd.readouterr() == ("", "")


def forms() -> dict[str, bytes]:
    proto = _hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto()
    bytecode = hlo_proto_to_stablehlo(proto)
    with context():
        module = ir.Module.parse(bytecode)
        for name in [name for name in module.operation.attributes if name.startswith("mhlo.")]:
            del module.operation.attributes[name]
        text = str(module).encode()
        artifact = _jax.mlir.serialize_portable_artifact(module, "1.9.0")
    return {"hlo": HLO.encode(), "proto": proto, "mlir": text, "bytecode": bytecode, "artifact": artifact}


def damaged(data: bytes, generator: random.Random) -> bytes:
    """A few bits flipped, a piece cut out, or the end cut off."""
    kind = generator.randrange(4)
    if kind == 0:
        return data[: generator.randrange(len(data))]
    if kind == 1:
        start = generator.randrange(len(data))
        return data[:start] + data[start + generator.randrange(1, 30) :]
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 4))):
        changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


@pytest.mark.wide(2)
@pytest.mark.parametrize("form", ["hlo", "proto", "mlir", "bytecode", "artifact"])
def test_damaged_programs_give_one_located_line(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hloforge.importers.guard.TIME_LIMIT", 10.0)
    data, generator = forms()[form], random.Random(7)
    refused = 0
    for _ in range(60):
        try:
            read(io.BytesIO(damaged(data, generator)))
        except ImporterError as error:
            refused += 1
            assert error.location is not None
            assert "\n" not in error.message
    assert refused > 10


def test_threads_may_read_at_once() -> None:
    def once(_: int) -> Any:
        return read(HLO).signature

    with ThreadPoolExecutor(4) as pool:
        assert len(set(map(str, pool.map(once, range(12))))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\nENTRY e { ROOT c = f32[1000000000] constant({1, 2, 3}) }",
        "HloModule m\nENTRY e { ROOT c = f32[1000000000000] constant({1, 2, 3}) }",
    ],
)
def test_what_declares_more_than_it_holds_takes_no_memory(text: str) -> None:
    with pytest.raises(ImporterError, match=r"takes more than 2\.0 GiB of memory and was stopped"):
        read(text)


def test_memory_of_a_reader_is_bounded() -> None:
    with pytest.raises(ImporterError, match=r"takes more than 0\.1 GiB"):
        guarded(bytearray, 1 << 28, memory=1 << 27)
    assert len(guarded(bytearray, 1 << 28, memory=1 << 31)) == 1 << 28


# What the server has answered, and no fork.
_SERVED = {
    test_results_and_errors_come_back_whole,
    test_a_crash_is_an_error,
    test_an_end_without_a_result_is_an_error,
    test_what_native_code_says_when_it_crashes_is_told,
    test_a_child_reads_one_program,
    test_a_hang_is_stopped,
    test_no_warning_and_no_output,
    test_damaged_programs_give_one_located_line,
    test_threads_may_read_at_once,
    test_what_declares_more_than_it_holds_takes_no_memory,
    test_memory_of_a_reader_is_bounded,
}
