"""Vulkan in software: Mesa's lavapipe, which Debian packages, whatever GPUs the machine has."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from hloforge.dialect.errors import LoadError
from hloforge.runtime import devices

TARGET = "vulkan:llvmpipe"
PACKAGES = "mesa-vulkan-drivers libvulkan1"
_DRIVERS = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
# Read by Vulkan's loader, old and new, and by child processes: no other driver is seen.
if _DRIVERS:
    os.environ["VK_ICD_FILENAMES"] = os.environ["VK_DRIVER_FILES"] = str(_DRIVERS[0])


@cache
def missing() -> str:
    """Why there is no lavapipe here; nothing if there is."""
    way = f"make vulkan-driver, or apt-get install {PACKAGES}"
    if not _DRIVERS:
        return f"Mesa's lavapipe is not installed: {way}"
    try:
        devices.device("vulkan")
    except LoadError as error:
        return f"{error.message}: {way}"
    return ""


needs_vulkan = pytest.mark.skipif(bool(missing()), reason=missing())
