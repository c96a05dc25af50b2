"""Marks of tests that run on the emulated GPU."""

import pytest

from emulator.library import missing

needs_emulator = pytest.mark.skipif(bool(missing()), reason=missing())
