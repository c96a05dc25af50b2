"""Importing this refuses a jaxlib of a version that hloforge does not work with: mlir.py imports it first."""

from __future__ import annotations

from hloforge.dialect.versions import RANGES, InstallationError, check_version

try:
    from jaxlib.version import __version__
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "jaxlib":
        raise
    raise InstallationError(
        "jaxlib, which reads programs, is not installed: this installation runs vmfbs alone",
        hint=f"pip install 'jaxlib{RANGES['jaxlib']}'",
    ) from None

check_version("jaxlib", __version__)
