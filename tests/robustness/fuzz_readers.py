"""Every file reader on damaged files: ``python -m tests.robustness.fuzz_readers --count=5000 --seed=1 [READER …]``.

A damaged file is read, or refused by one error of hloforge's. Everything else is a finding: another exception, the end
of the process, no end, or more than 2.5 GiB of memory. Files are made from the seed, the reader and their number, so
that ``--first=N --count=1`` makes one again. Batches of files are read in forked children.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.importers import guard
from tests.robustness.forks import in_fork
from tests.robustness.mutations import damage
from tests.robustness.samples import READERS, Reader

SECONDS = 60
_GIGABYTE = 1 << 30
# More than a guarded reader may take of these small files.
_MOST = 5 * _GIGABYTE // 2
# Of memory that a child may reserve; the machine has other work.
_RESERVED = 6 * _GIGABYTE
_BATCH = 500
# What a child tells of its file: number, what became of it.
_STATE = struct.Struct("<qq")
_READ, _REFUSED = 1, 2


@dataclass
class Result:
    """What became of the files of a reader."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def fuzz(name: str, count: int, seed: int, first: int = 0, keep: Path | None = None) -> Result:
    """Read damaged files.

    Args:
        keep: a folder for the files that are findings.
    """
    reader, result = READERS[name], Result()
    samples = reader.make()
    with tempfile.TemporaryDirectory(prefix="hloforge-fuzz-") as folder:
        place = Path(folder) / f"file{reader.suffix}"
        if in_fork(lambda: _read_all(reader, samples, place), _seconds(reader)):
            raise AssertionError(f"{name}: a sound file is not read")
        number = first
        while number < first + count:
            end = min(number + _BATCH, first + count)
            number = _batch(reader, lambda n: damaged(name, samples, seed, n), range(number, end), place, result)
    if keep is not None:
        for finding in result.findings:
            number = int(finding.split(":", 1)[0])
            (keep / f"{name}-{seed}-{number}{reader.suffix}").write_bytes(damaged(name, samples, seed, number))
    return result


def _seconds(reader: Reader) -> int:
    """How long one file may take; a framework in a process of its own takes its time on a busy machine."""
    return 10 * SECONDS if reader.slow else SECONDS


def _read_all(reader: Reader, files: list[bytes], place: Path) -> None:
    for data in files:
        place.write_bytes(data)
        reader.read(place, data)


def damaged(name: str, samples: list[bytes], seed: int, number: int) -> bytes:
    """The file of a number."""
    return damage(samples[number % len(samples)], random.Random(f"{seed} {name} {number}"))


def _batch(reader: Reader, make: Callable[[int], bytes], numbers: range, place: Path, result: Result) -> int:
    """Read files in a child until one ends it; returns the number to go on with."""
    state = mmap.mmap(-1, _STATE.size * len(numbers))
    with tempfile.TemporaryFile("w+b") as log:
        gc.disable()
        child = os.fork()
        if child == 0:
            _child(reader, make, numbers, place, state, log.fileno())
        gc.enable()
        status = os.waitpid(child, 0)[1]
        log.seek(0)
        said = log.read().decode("utf-8", "replace").splitlines()
    result.findings += [line.removeprefix(_FINDING) for line in said if line.startswith(_FINDING)]
    for number in numbers:
        reached, outcome = _STATE.unpack_from(state, _STATE.size * (number - numbers.start))
        if outcome:
            result.counts["refused" if outcome == _REFUSED else "read"] += 1
        elif reached:
            ending = os.waitstatus_to_exitcode(status)
            told = [line for line in said if not line.startswith(_FINDING) and line.strip()]
            result.counts["ended the process"] += 1
            result.findings.append(f"{number}: {_ending(ending)}: {' | '.join(told[-12:])}")
            return number + 1
        elif number == numbers.start:
            raise RuntimeError(f"the child did nothing: {said}")
        else:
            return number
    return numbers.stop


_FINDING = "finding "


def _ending(status: int) -> str:
    if status == -signal.SIGALRM:
        return "no end in time"
    return signal.Signals(-status).name if status < 0 else f"status {status}"


def _child(
    reader: Reader, make: Callable[[int], bytes], numbers: range, place: Path, state: mmap.mmap, log: int
) -> None:
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        faulthandler.enable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _reserve()
        guard.TIME_LIMIT = SECONDS / 2
        base = _peak()
        for at, number in enumerate(numbers):
            data = make(number)
            place.write_bytes(data)
            _STATE.pack_into(state, _STATE.size * at, 1, 0)
            signal.alarm(_seconds(reader))
            outcome, problem = _outcome(reader, place, data)
            signal.alarm(0)
            grown = max(_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024) - base
            if not problem and grown > _MOST:
                problem = f"took {grown >> 20} MiB"
            if problem:
                os.write(1, f"{_FINDING}{number}: {problem}\n".encode())
            _STATE.pack_into(state, _STATE.size * at, 1, outcome)
            if problem.startswith("took"):
                break  # the peak of children stays: the others go on in a fresh process
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _outcome(reader: Reader, place: Path, data: bytes) -> tuple[int, str]:
    try:
        reader.read(place, data)
    except reader.refusals as error:
        return _REFUSED, _style(error)
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return _REFUSED, f"{said} at {Path(where.filename).name}:{where.lineno}"
    return _READ, ""


def _style(error: Exception) -> str:
    """What is wrong with an error as users see it."""
    message = error.message if isinstance(error, Error) else str(error)
    if not message.strip() or "Traceback" in message:
        return f"an error without a message: {message!r}"
    if len(message) > 2000:
        return f"an error of {len(message)} characters: {message[:80]!r}…"
    return ""


def _reserve() -> None:
    """Let this process take so much memory and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * mmap.PAGESIZE + _RESERVED
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _peak() -> int:
    """The most bytes of memory that this process had since this was asked last."""
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of: {', '.join(READERS)}; by default all")
    parser.add_argument("--count", type=int, default=1000, help="files a reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--keep", type=Path, help="folder for files that are findings")
    given = parser.parse_args()
    failed = False
    for name in given.readers or [name for name, reader in READERS.items() if not reader.slow]:
        start = time.monotonic()
        result = fuzz(name, given.count, given.seed, given.first, given.keep)
        counts = ", ".join(f"{number} {what}" for what, number in sorted(result.counts.items()))
        print(f"{name}: {counts}, {len(result.findings)} findings, {time.monotonic() - start:.0f} s", flush=True)
        for finding in result.findings:
            print(f"  {finding}", flush=True)
        failed = failed or bool(result.findings)
    sys.exit(failed)


if __name__ == "__main__":
    main()
