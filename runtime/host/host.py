"""``hloforge.host``: functions of the host that programs call by ``custom_call``.

::

    @hloforge.host.register("normalize")
    def normalize(x):                       # a numpy array in, an array of the declared shape out
        return x / np.linalg.norm(x)

    hloforge.host.register("myfunc", "./libmy.so")       # void myfunc(void* out, void** in), or a handler of XLA's FFI

A name belongs to the process. ``hloforge.load(…, host={"name": function})`` gives functions to one session, and
``libraries=`` shared libraries whose symbols are tried for what is found nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from typing import Any

from hloforge.dialect.abi import SHAPE_ASSERTION
from hloforge.dialect.errors import ArgumentError, LoadError, OptionError
from hloforge.dialect.host_calls import INTERNAL, HostCall
from hloforge.dialect.marks import CHECK
from hloforge.dialect.program import Program
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.host.bindings import Callbacks, HostTarget, PythonFunction
from hloforge.runtime.host.native import library_function, native_function
from hloforge.runtime.options import CompileOptions

__all__ = ["HostCall", "HostTarget", "names", "register", "target", "unregister"]

KINDS = ("python", "c", "ffi")
_REGISTRY: dict[str, HostTarget] = {}


def register(
    name: str, function: Any = None, *, kind: str | None = None, copy: bool = False, replace: bool = False
) -> Any:
    """Make a function known to every program of this process by the target of its custom calls.

    Args:
        name: the target.
        function: a Python callable of numpy arrays; machine code as a function of ctypes or cffi, a PyCapsule, or the
            path of a shared library with a symbol of this name; a mapping of stages (``instantiate``, ``execute``) to
            capsules, as ``jax.ffi.register_ffi_target`` takes; a list of callables, which calls name by their attribute
            ``index``. None makes this a decorator.
        kind: ``python``, ``c`` (``void f(void* out, void** in)``) or ``ffi`` (XLA's typed FFI); by default what the
            function is, and for machine code what the call's API version says.
        copy: give a Python function copies of its operands, which it may keep.
        replace: take the name from the function that has it.

    Returns:
        the function, or a decorator.

    Raises:
        OptionError: the name is taken or empty, or the function is of no kind that is known.
        LoadError: the library cannot be loaded, or lacks the symbol.
    """
    if function is None:
        return lambda decorated: register(name, decorated, kind=kind, copy=copy, replace=replace)
    if not name:
        raise OptionError("a host function needs a name")
    if name in _REGISTRY and not replace:
        raise OptionError(f"host function {name!r} is registered already", hint="unregister it, or say replace=True")
    _REGISTRY[name] = target(name, function, kind=kind, copy=copy)
    return function


def unregister(name: str) -> None:
    """Forget a name; sessions that are loaded keep its function. Raises OptionError for an unknown name."""
    if _REGISTRY.pop(name, None) is None:
        raise OptionError(f"no host function is called {name!r}", hint=_similar(name, _REGISTRY))


def names() -> tuple[str, ...]:
    """The registered names, sorted."""
    return tuple(sorted(_REGISTRY))


def target(name: str, function: Any, *, kind: str | None = None, copy: bool = False) -> HostTarget:
    """A function in any of the forms that ``register`` takes, as what sessions bind; errors as of it."""
    if kind is not None and kind not in KINDS:
        raise OptionError(f"unknown kind {kind!r} of host function {name!r}", hint=f"kinds: {', '.join(KINDS)}")
    if isinstance(function, HostTarget):
        return function
    if isinstance(function, str | PathLike):
        found = library_function(function, name, kind)
        if found is None:
            raise LoadError(
                f"the library {function} has no symbol {name!r} of its own",
                hint='declare it extern "C"; functions of libraries that it links are not taken',
            )
        return found
    if isinstance(function, Sequence) and all(map(callable, function)):
        return Callbacks(tuple(function))
    native = native_function(function, name, kind)
    if native is not None and kind != "python":
        return native
    if not callable(function) or kind in ("c", "ffi"):
        raise OptionError(
            f"host function {name!r} is a {type(function).__name__}{f', which is not of kind {kind}' if kind else ''}",
            hint="give a callable, machine code (ctypes, cffi, PyCapsule), or the path of a shared library",
        )
    return PythonFunction(function, copies=copy)


def find(name: str, host: Mapping[str, Any], libraries: Iterable[str | PathLike[str]]) -> HostTarget | None:
    """The function that a name represents: of ``host``, else registered, else of the libraries, in this order.

    Raises:
        OptionError, LoadError: as ``register``.
    """
    if name == CHECK:
        return PythonFunction(_check)
    if name in host:
        return target(name, host[name])
    if name in _REGISTRY:
        return _REGISTRY[name]
    return next((found for path in libraries if (found := library_function(path, name)) is not None), None)


def _check(holds: Any, *, message: str) -> None:
    """End a call that a program's own assertion refuses."""
    if not holds:
        raise ArgumentError(message.removeprefix(SHAPE_ASSERTION))


def find_all(
    calls: Sequence[HostCall], host: Mapping[str, Any], libraries: Sequence[str | PathLike[str]]
) -> list[HostTarget]:
    """The functions that a program needs.

    Raises:
        LoadError: some are found nowhere; names them all.
    """
    found = {call.target: find(call.target, host, libraries) for call in calls}
    missing = [call for call in calls if found[call.target] is None]
    if missing:
        known = {*_REGISTRY, *host}
        names = list(dict.fromkeys(call.target for call in missing))
        raise LoadError(
            f"the program calls host functions that are not registered: {', '.join(names)}",
            notes=tuple(dict.fromkeys(f"called as {call}" for call in missing)),
            hint=f"hloforge.host.register({names[0]!r}, function), load(…, host={{…}}) or --library=FILE"
            + _similar(names[0], known),
        )
    return [function for call in calls if (function := found[call.target]) is not None]


def with_host_functions(program: Program, options: CompileOptions) -> Program:
    """A copy of a program that says which of the functions that it calls the host has; the program if it calls none.

    Raises:
        LoadError: a library cannot be loaded.
    """
    # Passes: what only runs vmfbs does not load them.
    from hloforge.pipelines.host_calls import custom_call_targets, declare_host_functions

    called = custom_call_targets(program.module)
    if not called:
        return program
    copy = program.clone()
    # All names, so that a misspelt one meets those that it is close to.
    known = {*_REGISTRY, *options.host_calls, *(name for name in called if find(name, {}, options.libraries))}
    declare_host_functions(copy.module, known)
    return copy


def has_functions(manifest: Manifest, options: CompileOptions) -> bool:
    """Whether a program that was compiled before would be compiled today: the functions that it calls are known."""
    names = {call.target for call in manifest.host_calls if not call.target.startswith(INTERNAL)}
    return all(name in options.host_calls or find(name, {}, options.libraries) for name in names)


def _similar(name: str, known: Iterable[str]) -> str:
    similar = get_close_matches(name, known, cutoff=0.6)
    return f"; names like it: {', '.join(similar)}" if similar else ""
