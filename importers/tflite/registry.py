"""Which function imports which operator of TFLite."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from hloforge.importers.tflite.node import Node

# From a node to its output, or to a list of them. Floats for a quantized output are quantized by the walk.
Handler: TypeAlias = "Callable[[Node], Any]"

_HANDLERS: dict[str, Handler] = {}


def operator(*names: str) -> Callable[[Handler], Handler]:
    """Decorate the function that imports the builtin operators of these names, as the schema writes them.

    Raises:
        ValueError: an operator has a function.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in _HANDLERS:
                raise ValueError(f"{name} has two functions")
            _HANDLERS[name] = handler
        return handler

    return register


def handler_of(name: str) -> Handler | None:
    """The function for an operator; None if there is none."""
    return registered().get(name)


def registered() -> dict[str, Handler]:
    """Every operator's function; imports the files of operators, once."""
    from hloforge.importers.tflite import operators

    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")
    return _HANDLERS
