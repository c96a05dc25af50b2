"""Calls of typed foreign functions, written as HLO and run by XLA's CPU client after the pass has replaced them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.library_calls.decompose_library_calls import DecomposeLibraryCalls
from hloforge.pipelines.normalize.normalization import normalize
from tests.engines import shared_reference

_NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0fnu",
    "int32": "s32",
    "int64": "s64",
    "uint32": "u32",
    "uint8": "u8",
    "bool": "pred",
}


def shape(array: Any) -> str:
    """An array's shape as HLO writes it."""
    return f"{_NAMES[array.dtype.name]}[{','.join(map(str, array.shape))}]"


def attribute(value: Any) -> str:
    """An attribute of a typed call: booleans, integers of 64 bits, floats of 64 bits, texts, dictionaries."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {attribute(member)}" for name, member in sorted(value.items())) + "}"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value} : i64" if isinstance(value, int) else f"{value:e} : f64"


def program(target: str, results: list[str], arguments: list[Any], configuration: Any) -> Program:
    """A program of one call; a configuration that is text is one of an older interface."""
    parameters = [f"  p{i} = {shape(array)} parameter({i})" for i, array in enumerate(arguments)]
    operands = ", ".join(f"p{i}" for i in range(len(arguments)))
    typed = not isinstance(configuration, str)
    version = ", api_version=API_VERSION_TYPED_FFI" if typed else ""
    written = attribute(configuration) if typed else configuration
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    body = "\n".join(parameters)
    return read(
        f"HloModule m\n\nENTRY e {{\n{body}\n  ROOT c = {result} custom-call({operands}), "
        f'custom_call_target="{target}"{version}, backend_config={written}\n}}\n'
    )


def run(target: str, results: list[str], arguments: list[Any], configuration: Any) -> list[np.ndarray[Any, Any]]:
    """The results of a call that the pass replaced, by XLA."""
    called = program(target, results, arguments, configuration)
    normalize(called.module)
    DecomposeLibraryCalls().run(called.module)
    found = shared_reference("xla").prepare(called)(*map(np.asarray, arguments))
    return list(found) if isinstance(found, tuple | list) else [found]
