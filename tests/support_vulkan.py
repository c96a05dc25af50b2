"""Vulkan in software: Mesa's lavapipe, which Debian packages, whatever GPUs the machine has.

Programs run on it in child processes: the LLVM inside of it and the one inside of TensorFlow do not load into one.
"""

from __future__ import annotations

import os
from ctypes.util import find_library
from pathlib import Path

import pytest

TARGET = "vulkan:llvmpipe"
PACKAGES = "mesa-vulkan-drivers libvulkan1"
_DRIVERS = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
_WAY_OUT = f"make vulkan-driver, or apt-get install {PACKAGES}"


def environment() -> dict[str, str]:
    """A child process's, in which Vulkan's loader, old or new, sees lavapipe alone."""
    driver = str(_DRIVERS[0]) if _DRIVERS else os.devnull
    return {**os.environ, "VK_ICD_FILENAMES": driver, "VK_DRIVER_FILES": driver}


def missing() -> str:
    """Why there is no lavapipe here; nothing if there is."""
    if not _DRIVERS:
        return f"Mesa's lavapipe is not installed: {_WAY_OUT}"
    if find_library("vulkan") is None:
        return f"Vulkan's loader is not installed: {_WAY_OUT}"
    return ""


needs_vulkan = pytest.mark.skipif(bool(missing()), reason=missing())
