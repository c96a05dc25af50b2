"""Tests compile what they test: nothing comes from an earlier run, and nothing is left in the user's folders."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import settings

# Read by child processes too.
os.environ["HLOFORGE_CACHE_DIR"] = ""
# No driver of Vulkan: tests do not depend on the machine's GPUs, and TensorFlow does not load beside Mesa's LLVM. Child
# processes that test Vulkan name a driver (``support_vulkan``).
for _variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
    os.environ.setdefault(_variable, os.devnull)

# What a shell starts in the background ignores Ctrl-C, and so would the commands under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says nothing on a machine that does other work.
settings.register_profile("hloforge", deadline=None)
settings.load_profile("hloforge")


# Seconds for a wide sweep, which may take longer than a test that waits for ever is given (pyproject.toml).
_SWEEP = 7200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        wide = item.get_closest_marker("wide")
        # By the name, so that a case stays where it is when others are added.
        if wide and crc32(item.nodeid.encode()) % wide.args[0]:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(_SWEEP))


@pytest.fixture(autouse=True, scope="module")
def _quick_garbage_collection() -> Iterator[None]:
    """Frameworks that other modules imported are millions of objects, which every ``gc.collect()`` would search."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def iree_codegen(monkeypatch: pytest.MonkeyPatch) -> None:
    """IREE's compiler makes what the test and its child processes compile, as for programs that ours refuses.

    Of tests about what is done with IREE's compiler: its flags, attempts, crashes, phases, what passes do for it.
    """
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")


@pytest.fixture(params=["own", "iree"])
def either_codegen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test once with each code generator; its name."""
    monkeypatch.setenv("HLOFORGE_CODEGEN", request.param)
    return str(request.param)
