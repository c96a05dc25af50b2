"""The type of the ``call`` fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from click.testing import Result

Call: TypeAlias = Callable[..., Result]
