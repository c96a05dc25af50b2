"""The only module that imports jaxlib: its MLIR bindings, its HLO reader and its XLA client.

Everything that hloforge needs of jaxlib's private modules is named here, so that a newer jaxlib is met in one file.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

# XLA logs device counts and frame-id warnings at start; both flags are read once, when the library loads.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from hloforge.dialect.errors import ImporterError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "AnyOp",
    "SSAValue",
    "_hlo",
    "_jax",
    "arith",
    "chlo",
    "context",
    "context_for",
    "dense_elements",
    "entries",
    "func",
    "hlo_proto_to_stablehlo",
    "in_context",
    "inlined_func_call",
    "ir",
    "math_dialect",
    "mhlo",
    "parse_module",
    "passmanager",
    "prepare_context",
    "provide_lapack",
    "rewrite",
    "scf",
    "sdy",
    "stablehlo",
    "vector_dialect",
]

# An operation; the classes of single operations (stablehlo.AddOp) derive from OpView, a walk gives Operations.
AnyOp: TypeAlias = "ir.Operation | ir.OpView"
# A value of any type. An attribute or type of an unknown class stays Any where its members are read, because the stubs
# give the base classes no members (`Attribute.value`, `Type.shape`), and one check would follow another.
SSAValue: TypeAlias = "ir.Value[Any]"


# The names of all that is loaded late, in order.
_LATE: list[str] = []


class _Late(ModuleType):
    """A module of jaxlib that is loaded when something of it is first asked for: what only runs vmfbs never does.

    From then on it has the module's own names, so that they cost what they cost there.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        _LATE.append(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by import machinery and debuggers: no reason to load anything
            raise AttributeError(name)
        _prepare_jaxlib()
        module = importlib.import_module(self.__name__)
        found = getattr(module, name)  # dialects may get names later
        self.__dict__.update({key: value for key, value in vars(module).items() if not key.startswith("__")})
        return found

    def __dir__(self) -> list[str]:
        _prepare_jaxlib()
        return dir(importlib.import_module(self.__name__))


@functools.cache
def _prepare_jaxlib() -> None:
    """Before anything private of jaxlib, which another version may lack. Raises InstallationError."""
    from hloforge.dialect import jaxlib_check  # noqa: F401

    # At each operation of a dialect without a module of classes the bindings look for one along the path, in 20 µs.
    for dialect in ("flow", "iree_tensor_ext", "linalg", "shape", "tensor", "util"):
        name = f"jaxlib.mlir.dialects.{dialect}"
        if find_spec(name) is None:
            sys.modules[name] = ModuleType(name)
    # All at once: a process that forks children, which read and compile, shares with them what it has loaded.
    for module in _LATE:
        importlib.import_module(module)


if TYPE_CHECKING:
    from jaxlib import _hlo, _jax  # type: ignore[attr-defined]  # native, without stubs
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir._mlir_libs._mlir import rewrite
    from jaxlib.mlir.dialects import (
        arith,
        chlo,
        func,
        math as math_dialect,
        mhlo,
        scf,
        sdy,
        stablehlo,
        vector as vector_dialect,
    )
else:
    _hlo, _jax = _Late("jaxlib._hlo"), _Late("jaxlib._jax")
    ir, passmanager = _Late("jaxlib.mlir.ir"), _Late("jaxlib.mlir.passmanager")
    _jax_mlir_ext = _Late("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    rewrite = _Late("jaxlib.mlir._mlir_libs._mlir.rewrite")
    arith, chlo, func, math_dialect, mhlo, scf, sdy, stablehlo, vector_dialect = (
        _Late(f"jaxlib.mlir.dialects.{name}")
        for name in ("arith", "chlo", "func", "math", "mhlo", "scf", "sdy", "stablehlo", "vector")
    )


def inlined_func_call(*arguments: Any, **named: Any) -> Any:
    """JAX's inlining of a call, natively."""
    return _jax_mlir_ext.inlined_func_call(*arguments, **named)


_register_lock = threading.Lock()


@functools.cache
def _registry() -> ir.DialectRegistry:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    stablehlo.register_stablehlo_passes()
    mhlo.register_mhlo_passes()
    return registry


# `quant` registers no Python hook: a pass that depends on it loads it into a context.
_LOAD_QUANT = "builtin.module(vhlo-legalize-to-stablehlo)"


_LOADED = ("arith", "cf", "func", "math", "memref", "scf", "shape", "tensor", "vector")


# Contexts that nobody has used.
_prepared: list[ir.Context] = []


@dataclass
class _Kept:
    """A context of small programs.

    Attributes:
        uses: by programs to come.
    """

    context: ir.Context
    uses: int = 32


# What a context has once seen stays in it, so that a large program has one of its own.
_SMALL = 1 << 16
_kept: deque[_Kept] = deque(maxlen=2)
_kept_lock = threading.Lock()


def _references(kept: _Kept) -> int:
    """All that lives in a context refers to it."""
    return sys.getrefcount(kept.context)


# So many are left when nothing lives in it. A context would load jaxlib here.
_UNUSED = _references(_Kept(cast("ir.Context", object())))


def context() -> ir.Context:
    """A fresh MLIR context with the dialects of StableHLO programs, and of those that passes build with, loaded.

    Unregistered dialects are allowed: attributes such as ``jax.result_info`` travel through, and an unknown operation
    is reported by the audit with its location instead of by the parser.
    """
    try:
        return _prepared.pop()
    except IndexError:
        return _made()


def context_for(size: int) -> ir.Context:
    """As ``context``; a small program gets that of an earlier one of which nothing is left.

    To make and to destroy a context takes 2.5 ms, a third of what a small program takes whose kernels are known.

    Args:
        size: bytes of the program.
    """
    if size > _SMALL:
        return context()
    with _kept_lock:
        for kept in _unused():
            kept.uses -= 1
            if not kept.uses:
                _kept.remove(kept)
            return kept.context
        _kept.append(_Kept(context()))
        return _kept[-1].context


def _unused() -> list[_Kept]:
    return [kept for kept in _kept if _references(kept) == _UNUSED]


def prepare_context() -> ir.Context | None:
    """Make the next context now, unless one is left, where this process would wait for another one."""
    with _kept_lock:
        if _prepared or _unused():
            return None
    _prepared.append(_made())
    return _prepared[-1]


def _forget_contexts() -> None:
    """In a forked child nobody uses or destroys the contexts of its parent, because their threads are not there."""
    global _prepared, _kept, _kept_lock
    _of_parents.extend((_prepared, _kept))
    _prepared, _kept, _kept_lock = [], deque(maxlen=_kept.maxlen), threading.Lock()


_of_parents: list[object] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_contexts)


def _made() -> ir.Context:
    with _register_lock:
        registry = _registry()
    ctx = ir.Context()
    ctx.append_dialect_registry(registry)
    # The parser loads the others, of GPUs and LLVM, where a program has them: they take a millisecond.
    for name in _LOADED:
        _ = ctx.dialects[name]
    ctx.allow_unregistered_dialects = True
    stablehlo.register_dialect(ctx)
    chlo.register_dialect(ctx)
    mhlo.register_mhlo_dialect(ctx)
    # JAX writes its shardings in the custom syntax of sdy.
    sdy.register_dialect(ctx)
    with ctx, ir.Location.unknown():
        passmanager.PassManager.parse(_LOAD_QUANT).run(ir.Module.create().operation)
    return ctx


@contextmanager
def in_context(op: ir.Module | AnyOp) -> Iterator[ir.Context]:
    """Enter the context of a module or operation, with an unknown default location."""
    with op.context as ctx, ir.Location.unknown():
        yield ctx


def parse_module(asm: str | bytes, ctx: ir.Context | None = None) -> ir.Module:
    """Parse MLIR text or bytecode into a verified ``ir.Module``.

    Raises:
        ImporterError: with the parser's own message.
    """
    with ctx or context():
        try:
            return ir.Module.parse(asm)
        except ir.MLIRError as error:
            raise ImporterError(first_diagnostic(error)) from None


def entries(dictionary: ir.Attribute) -> dict[str, Any]:
    """The attributes in a dictionary attribute, by name."""
    # The stubs do not say that it can be iterated.
    pairs: Any = ir.DictAttr(dictionary)
    return {pair.name: pair.attr for pair in pairs}


def dense_elements(
    array: np.ndarray[Any, Any], type_: ir.Type | None = None, shape: Sequence[int] | None = None
) -> ir.DenseElementsAttr:
    """The numbers of an array as an attribute, by default of the array's own element type and shape."""
    # The stubs ask for a buffer; numpy's types say that an array is one from Python 3.12 on.
    buffer: Any = array
    return ir.DenseElementsAttr.get(buffer, type=type_, shape=shape)


def first_diagnostic(error: Any) -> str:
    """What MLIR says first of an error."""
    diagnostics = getattr(error, "error_diagnostics", None)
    return diagnostics[0].message if diagnostics else str(error).splitlines()[0]


def hlo_proto_to_stablehlo(proto: bytes) -> bytes:
    """XLA's own converter: serialized ``HloModuleProto`` to StableHLO (and leftover ``mhlo``) bytecode, unverified."""
    result: bytes = _jax.mlir.hlo_to_stablehlo(proto)
    return result


@functools.cache
def provide_lapack() -> None:
    """Make LAPACK's functions, which JAX's programs call, known to XLA's client. Without SciPy they stay unknown."""
    with suppress(ImportError):
        from jaxlib import lapack

        lapack._lapack.initialize()  # type: ignore[attr-defined]
        for name, target, version in lapack.registrations()["cpu"]:
            _jax.register_custom_call_target(name.encode(), target, "Host", version)
