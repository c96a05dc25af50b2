"""Which function imports which operator of ONNX, since which version of its domain."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from hloforge.importers.onnx.node import Node

# From a node to its output, or to a list of them.
Handler: TypeAlias = "Callable[[Node], Any]"

# ONNX's own domain has two names.
DEFAULT_DOMAIN = ""
_ALIASES = {"ai.onnx": DEFAULT_DOMAIN}

_HANDLERS: dict[tuple[str, str], dict[int, Handler]] = {}


def operator(*names: str, since: int = 1, domain: str = DEFAULT_DOMAIN) -> Callable[[Handler], Handler]:
    """Decorate the function that imports the operators of these names.

    Args:
        since: the version of the domain from which on it does; a later one may have a function of its own. Differences
            that are only where an input is (``axes`` as an attribute, then as an input) are the node's to hide.

    Raises:
        ValueError: the operator has a function for that version.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            versions = _HANDLERS.setdefault((domain, name), {})
            if since in versions:
                raise ValueError(f"{name} has two functions since version {since}")
            versions[since] = handler
        return handler

    return register


def handler_of(domain: str, name: str, version: int) -> Handler | None:
    """The function for an operator of a model that imports ``version`` of the domain; None if there is none."""
    _load()
    versions = _HANDLERS.get((canonical(domain), name), {})
    known = [since for since in versions if since <= version]
    return versions[max(known)] if known else None


def canonical(domain: str) -> str:
    """One name for each domain."""
    return _ALIASES.get(domain, domain)


def registered() -> dict[tuple[str, str], tuple[int, ...]]:
    """The versions that functions are registered for, by domain and operator."""
    _load()
    return {key: tuple(sorted(versions)) for key, versions in sorted(_HANDLERS.items())}


def _load() -> None:
    """Import every file of operators, once."""
    from hloforge.importers.onnx import operators

    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")
