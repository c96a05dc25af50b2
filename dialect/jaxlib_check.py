"""Importing this refuses a jaxlib of a version that hloforge does not work with: mlir.py imports it first."""

from __future__ import annotations

from jaxlib.version import __version__

from hloforge.dialect.versions import check_version

check_version("jaxlib", __version__)
