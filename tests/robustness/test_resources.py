"""What runs out: disks, descriptors, memory. One error, nothing half-written, nothing left behind."""

from __future__ import annotations

import gc
import io
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hloforge
from tests.robustness.forks import in_fork
from tests.robustness.soak import Usage

HLO = """HloModule m
ENTRY e {
  x = f32[1024] parameter(0)
  c = f32[1024] constant({%s})
  ROOT y = f32[1024] add(x, c)
}
"""
X = np.ones(1024, np.float32)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(HLO % ",".join(str(n) for n in range(1024)))
    return path


LINES = {
    "compile {} -o {out}": "cannot write",
    "opt {} -o {out}": "cannot write",
    "translate {} --to=stablehlo -o {out}": "cannot write",
    "run {} --input=random --output=@{out}.npy": "cannot write",
    "verify {} --trials=1 --json={out}": "cannot write",
    "inspect {} --html={out}": "cannot write",
}


@pytest.mark.wide(4)
@pytest.mark.parametrize("line", LINES)
def test_a_disk_that_is_full(program: Path, tmp_path: Path, line: str) -> None:
    """No file may grow beyond 200 bytes: what a full disk says comes from the same calls."""
    folder = tmp_path / "out"
    folder.mkdir()
    words = [word.replace("{out}", str(folder / "out")).replace("{}", str(program)) for word in line.split()]
    # IREE's compiler writes to pipes; its own temporary files would be as large.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)); "
    ignore = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    code = f"{ignore}{limit}from hloforge.tools.main import main; main({words!r})"
    environment = os.environ | {"HLOFORGE_CACHE_DIR": "", "TMPDIR": "/dev/shm" if Path("/dev/shm").is_dir() else ""}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=False, env=environment
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr and "internal" not in done.stderr
    assert done.stderr.count("error: ") == 1, done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("line", LINES)
def test_a_folder_that_is_no_place_to_write_to(program: Path, tmp_path: Path, line: str) -> None:
    """As a folder that is read-only, whoever the user is."""
    words = [word.replace("{out}", "/proc/nothing").replace("{}", str(program)) for word in line.split()]
    done = subprocess.run(
        [sys.executable, "-m", "hloforge.tools.main", *words], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 1 and LINES[line] in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "internal" not in done.stderr


def test_a_thousand_loads_take_no_more_than_the_first(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    hloforge.compile(program).save(path)

    def check() -> None:
        def load(count: int) -> tuple[int, int]:
            for number in range(count):
                session = hloforge.load(path if number % 2 else path.read_bytes())
                assert session(X)[3] == 4.0
            del session
            gc.collect()
            return descriptors(), Usage.now().memory

        files, memory = load(100)
        more_files, more_memory = load(1_000)
        assert more_files == files
        assert more_memory - memory < 24 << 20, (memory, more_memory)

    assert in_fork(check, 300) == 0


def test_loads_that_fail_leave_no_descriptors(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    data = hloforge.compile(program).vmfb

    def check() -> None:
        def refused() -> int:
            for number in range(200):
                path.write_bytes(data[: 100 + number * 7])
                with pytest.raises(hloforge.Error):
                    hloforge.load(path)
            gc.collect()
            return descriptors()

        assert refused() == refused()

    assert in_fork(check, 120) == 0


def bomb(name: str, size: int, *others: str) -> bytes:
    """A zip of zeros, which take a thousandth of their size."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in (*others, name):
            archive.writestr(each, b"\0" * (size if each == name else 8))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (".keras", bomb("model.weights.h5", 1 << 28, "metadata.json", "config.json")),
        (".keras", bomb("config.json", 1 << 28, "metadata.json", "model.weights.h5")),
        (".pt2", bomb("m/models/model.json", 1 << 28, "m/archive_format", "m/version")),
    ],
)
def test_archives_that_unpack_to_much_more_than_themselves(suffix: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with pytest.raises(hloforge.ImporterError):
        hloforge.read(path)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - before < 200 << 10


def test_a_bomb_inside_of_a_bomb_says_what_it_claims(tmp_path: Path) -> None:
    path = tmp_path / "bomb.keras"
    path.write_bytes(bomb("model.weights.h5", 1 << 28, "metadata.json", "config.json"))
    with pytest.raises(hloforge.ImporterError, match="the archive claims to unpack to 268,435,472 bytes"):
        hloforge.read(path)
