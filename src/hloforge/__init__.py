"""hloforge turns XLA programs (HLO, StableHLO) into IREE modules that run with XLA's answers.

::

    import hloforge
    program = hloforge.compile("model.hlo")        # also StableHLO text or bytecode, a proto, jax.jit(f).lower(x)
    print(program(x))                              # numpy in, numpy out

Every public name is imported when it is first used, so ``import hloforge`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hloforge._version import __version__

if TYPE_CHECKING:
    from hloforge import jax
    from hloforge.api import as_program, compile, join, replicate
    from hloforge.computation import Builder, Computation, program
    from hloforge.dialect import index_util, layout_util, ops, shape_util
    from hloforge.dialect.composite import composite
    from hloforge.dialect.errors import (
        ArgumentError,
        CompileError,
        ElidedConstantError,
        Error,
        ExecutionError,
        ImporterError,
        LoadError,
        Location,
        MismatchError,
        OperationError,
        OptionError,
        PassError,
        PipelineError,
        ReferenceEngineError,
        UnregisteredError,
        UnsupportedError,
    )
    from hloforge.dialect.layouts import Tile
    from hloforge.dialect.packing import pack, unpack
    from hloforge.dialect.program import Program, Signature
    from hloforge.dialect.shapes import Layout, Shape
    from hloforge.dialect.values import Value
    from hloforge.importers.reader import read
    from hloforge.jax import jit
    from hloforge.profiling import profile
    from hloforge.runtime.artifact.executable import Executable
    from hloforge.runtime.compile.targets import Target
    from hloforge.runtime.data.random_inputs import random_inputs
    from hloforge.runtime.host import host
    from hloforge.runtime.options import CompileOptions
    from hloforge.runtime.profiling.result import Roofline, TimeProfile
    from hloforge.runtime.reference.compare import Report, compare
    from hloforge.runtime.reference.engines import reference
    from hloforge.runtime.replicas.replicas import Replicas
    from hloforge.runtime.session.feeds import Feeds
    from hloforge.runtime.session.session import Session, load

_HOMES = {
    "ArgumentError": "hloforge.dialect.errors",
    "Builder": "hloforge.computation",
    "CompileError": "hloforge.dialect.errors",
    "CompileOptions": "hloforge.runtime.options",
    "Computation": "hloforge.computation",
    "ElidedConstantError": "hloforge.dialect.errors",
    "Error": "hloforge.dialect.errors",
    "ExecutionError": "hloforge.dialect.errors",
    "Executable": "hloforge.runtime.artifact.executable",
    "Feeds": "hloforge.runtime.session.feeds",
    "ImporterError": "hloforge.dialect.errors",
    "Layout": "hloforge.dialect.shapes",
    "LoadError": "hloforge.dialect.errors",
    "Location": "hloforge.dialect.errors",
    "MismatchError": "hloforge.dialect.errors",
    "OperationError": "hloforge.dialect.errors",
    "OptionError": "hloforge.dialect.errors",
    "PassError": "hloforge.dialect.errors",
    "PipelineError": "hloforge.dialect.errors",
    "Program": "hloforge.dialect.program",
    "ReferenceEngineError": "hloforge.dialect.errors",
    "Replicas": "hloforge.runtime.replicas.replicas",
    "Report": "hloforge.runtime.reference.compare",
    "Roofline": "hloforge.runtime.profiling.result",
    "Session": "hloforge.runtime.session.session",
    "Shape": "hloforge.dialect.shapes",
    "Signature": "hloforge.dialect.program",
    "Target": "hloforge.runtime.compile.targets",
    "Tile": "hloforge.dialect.layouts",
    "TimeProfile": "hloforge.runtime.profiling.result",
    "UnregisteredError": "hloforge.dialect.errors",
    "UnsupportedError": "hloforge.dialect.errors",
    "Value": "hloforge.dialect.values",
    "as_program": "hloforge.api",
    "compare": "hloforge.runtime.reference.compare",
    "composite": "hloforge.dialect.composite",
    "compile": "hloforge.api",
    "host": "hloforge.runtime.host",
    "index_util": "hloforge.dialect",
    "jax": "hloforge",
    "jit": "hloforge.jax",
    "join": "hloforge.api",
    "layout_util": "hloforge.dialect",
    "load": "hloforge.runtime.session.session",
    "ops": "hloforge.dialect",
    "pack": "hloforge.dialect.packing",
    "profile": "hloforge.profiling",
    "program": "hloforge.computation",
    "random_inputs": "hloforge.runtime.data.random_inputs",
    "read": "hloforge.importers.reader",
    "reference": "hloforge.runtime.reference.engines",
    "replicate": "hloforge.api",
    "shape_util": "hloforge.dialect",
    "unpack": "hloforge.dialect.packing",
}

# Public names that are modules of their home.
_MODULES = frozenset({"host", "index_util", "jax", "layout_util", "ops", "shape_util"})

__all__ = [
    "ArgumentError",
    "Builder",
    "CompileError",
    "CompileOptions",
    "Computation",
    "ElidedConstantError",
    "Error",
    "Executable",
    "ExecutionError",
    "Feeds",
    "ImporterError",
    "Layout",
    "LoadError",
    "Location",
    "MismatchError",
    "OperationError",
    "OptionError",
    "PassError",
    "PipelineError",
    "Program",
    "ReferenceEngineError",
    "Replicas",
    "Report",
    "Roofline",
    "Session",
    "Shape",
    "Signature",
    "Target",
    "Tile",
    "TimeProfile",
    "UnregisteredError",
    "UnsupportedError",
    "Value",
    "__version__",
    "as_program",
    "compare",
    "compile",
    "composite",
    "host",
    "index_util",
    "jax",
    "jit",
    "join",
    "layout_util",
    "load",
    "ops",
    "pack",
    "profile",
    "program",
    "random_inputs",
    "read",
    "reference",
    "replicate",
    "shape_util",
    "unpack",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hloforge' has no attribute {name!r}")
    from hloforge.dialect.garbage import seldom_collecting

    # What is loaded stays: Python would search it for garbage again and again while it grows.
    with seldom_collecting():
        module = importlib.import_module(f"{home}.{name}" if name in _MODULES else home)
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
