"""The probes of JAX's interface, by name, and what they show of errors and warnings."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

PROBES: dict[str, Callable[[], Any]] = {}
# Those that want several devices.
ON_DEVICES: dict[str, Callable[[], Any]] = {}
DEVICES = 4
_NAMES = re.compile(r"CpuDevice|HloforgeDevice|TFRT_CPU|hloforge|\bcpu\b|\bCPU\b")
_ADDRESSES = re.compile(r"0x[0-9a-f]+|\b\d{12,}\b")


def probe(function: Callable[[], Any]) -> Callable[[], Any]:
    PROBES[function.__name__] = function
    return function


def probe_on_devices(function: Callable[[], Any]) -> Callable[[], Any]:
    ON_DEVICES[function.__name__] = function
    return function


def told(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, or its error."""
    try:
        return function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {neutral(str(error))[:100]}"


def neutral(text: str) -> str:
    """A text without names of platforms and addresses, each of which may have another length."""
    return _ADDRESSES.sub("0x", _NAMES.sub("P", text))


def warned(function: Callable[..., Any], *arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told(function, *arguments)
    return [str(one.message)[:160] for one in caught]
