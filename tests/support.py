"""Where the data beside the repository lies, and how a test does without it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"

# Where failing compilations of the tests leave their inputs.
REPRODUCERS = Path(tempfile.gettempdir()) / "hloforge-tests"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared data at {SHARED}")


def shared_files(pattern: str) -> list[Path]:
    """The files of a glob below the shared data; none where there is no such folder."""
    return sorted(SHARED.glob(pattern))
