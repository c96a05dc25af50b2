"""``hloforge.jit``: functions of JAX, compiled by hloforge when they are called."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import jax
import numpy as np
from jax.tree_util import tree_flatten

from hloforge.jax import platform
from hloforge.jax.compiled import Compiled, compile
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.session.session import Session

# Signatures whose avals are compared one by one before all are looked up.
_RECENT = 4
# Signatures that JAX does not tell as they were called, after which it is not asked any more.
_MOST_MISSES = 8
# What XLA says of an array that is donated and passed a second time, of which it makes no copy.
_GIVEN_TWICE = "previously donated in the same call"


@overload
def jit(function: None = None, **arguments: Any) -> Callable[[Callable[..., Any]], Jitted]: ...
@overload
def jit(function: Callable[..., Any], **arguments: Any) -> Jitted: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    target: Target | str = "cpu",
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    **options: Any,
) -> Any:
    """A function that hloforge compiles for each signature it is called with, and runs; a decorator, like ``jax.jit``.

    Under another transformation of JAX (``jax.grad(hloforge.jit(f))``) it is ``jax.jit(function)``: put
    ``hloforge.jit`` outside, ``hloforge.jit(jax.grad(f))``, so that hloforge runs all of it.

    Args:
        function: a function of pytrees of arrays, which JAX can trace; None for a decorator with the other arguments.
        target, options: as of ``hloforge.compile``.
        static_argnums, static_argnames: arguments that are constants of the program; hashable.
        donate_argnums, donate_argnames: arguments that the program may overwrite; their arrays are deleted by a call.

    Returns:
        a callable whose results are ``jax.Array``s on the CPU; errors of a call: those of JAX where it traces, those of
        ``hloforge.compile`` and of a session's call.
    """
    arguments = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
    }
    if function is None:
        return functools.partial(jit, target=target, **arguments, **options)
    return Jitted(function, target, options, **arguments)


class _Entry:
    """A signature that was called not long ago."""

    __slots__ = ("avals", "compiled", "context", "tree")

    def __init__(self, tree: Any, avals: tuple[Any, ...], context: Any, compiled: Compiled) -> None:
        self.tree, self.avals, self.context, self.compiled = tree, avals, context, compiled


class _UnknownError(Exception):
    """Nothing is compiled yet for arguments like these."""


class Jitted:
    """What ``hloforge.jit`` returns.

    The first call of a signature compiles it and runs it from Python. Later ones are JAX's (``direct.py``), where the
    program is one that custom calls run.
    """

    def __init__(
        self, function: Callable[..., Any], target: Target | str, options: dict[str, Any], **arguments: Any
    ) -> None:
        functools.update_wrapper(self, function)
        platform.register()
        self._jax: Any = jax.jit(function, **arguments)
        self._target, self._options = target, options
        self._static = platform.static_arguments(function, arguments["static_argnums"], arguments["static_argnames"])
        self._has_static = any(self._static)
        self._recent: list[_Entry] = []
        self._found: dict[Any, Compiled] = {}
        # By what JAX tells of arguments that it traces, and how often that was something else.
        self._known: dict[Any, Compiled] = {}
        self._misses = 0
        self._direct: Any = jax.jit(functools.update_wrapper(functools.partial(self._traced), function), **arguments)
        self._lock = threading.RLock()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the function; arguments and result as its own."""
        known = len(self._known)
        if not known or not platform.is_eager():
            return self._run(arguments, named)
        try:
            return self._direct(*arguments, **named)
        except _UnknownError:
            pass
        except NotImplementedError:  # the arguments lie on a device of another platform
            self._be_indirect()
        except jax.errors.JaxRuntimeError as error:
            if _GIVEN_TWICE not in str(error):
                raise
            self._be_indirect()
        result = self._run(arguments, named)
        self._misses += len(self._known) == known
        if self._misses > _MOST_MISSES:
            self._be_indirect()
        return result

    def _run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call from Python."""
        if platform.is_tracing():
            return self._jax(*arguments, **named)
        if not self._has_static:
            leaves, tree = tree_flatten((arguments, named))
            compiled = self._recently(leaves, tree)
            if compiled is not None:
                return compiled.run(leaves)
        leaves, compiled = self._compiled(arguments, named)
        return self._jax(*arguments, **named) if compiled is None else compiled.run(leaves)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method of an instance, as of any function in a class."""
        return self if instance is None else functools.partial(self, instance)

    def _recently(self, leaves: Sequence[Any], tree: Any) -> Compiled | None:
        """What was compiled for arguments like these, if all are JAX's arrays and it is not long ago.

        Arrays keep the very aval that they were made with, so that comparing them rarely means to look into them.
        """
        if set(map(type, leaves)) != {platform.Array}:
            return None
        avals = tuple([leaf.aval for leaf in leaves])
        context = platform.context()
        for entry in self._recent:
            if entry.avals == avals and entry.tree == tree and entry.context == context:
                return entry.compiled
        return None

    def _compiled(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], Compiled | None]:
        """The leaves of the arguments and what is compiled for them; None for arguments that JAX traces."""
        static, dynamic = self._split(arguments, named)
        leaves, tree = tree_flatten(dynamic)
        if any(isinstance(leaf, platform.Tracer) for leaf in leaves):
            return leaves, None
        context = platform.context()
        key = (tree, tuple(map(_kind, leaves)), static, context)
        try:
            compiled = self._found.get(key)
        except TypeError:  # an unhashable static argument, for which JAX has the message
            self._jax.trace(*arguments, **named)
            raise
        if compiled is None:
            compiled = self._compile(key, arguments, named)
        self._know(compiled, tree, leaves, static, context)
        if not static and leaves and set(map(type, leaves)) == {platform.Array}:
            entry = _Entry(tree, tuple([leaf.aval for leaf in leaves]), context, compiled)
            self._recent = [entry, *self._recent[: _RECENT - 1]]
        return leaves, compiled

    def _know(self, compiled: Compiled, tree: Any, leaves: Sequence[Any], static: Any, context: Any) -> None:
        """Let the next call of arguments like these be JAX's."""
        if self._misses > _MOST_MISSES:
            return
        if not compiled.is_direct:
            self._be_indirect()
            return
        self._known[tree, tuple(map(platform.aval, leaves)), static, context] = compiled

    def _be_indirect(self) -> None:
        self._misses = _MOST_MISSES + 1
        self._known = {}

    def _traced(self, *arguments: Any, **named: Any) -> Any:
        """A call as JAX traces it. Raises _UnknownError."""
        if platform.is_eager():  # without ``jit``, as JAX asks where it looks for NaN
            return self._jax(*arguments, **named)
        static, dynamic = self._split(arguments, named)
        leaves, tree = tree_flatten(dynamic)
        compiled = self._known.get((tree, tuple(map(platform.aval, leaves)), static, platform.context()))
        if compiled is None:
            raise _UnknownError
        return compiled.traced(leaves)

    def _split(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        """Static arguments with their types, and the others."""
        if not self._has_static:
            return (), (arguments, named)
        numbers = {number % len(arguments) for number in self._static[0] if -len(arguments) <= number < len(arguments)}
        names = self._static[1]
        static = [(number, type(arguments[number]), arguments[number]) for number in sorted(numbers)]
        fixed = [(name, type(named[name]), named[name]) for name in sorted(named.keys() & set(names))]
        others = tuple(argument for number, argument in enumerate(arguments) if number not in numbers)
        return (*static, *fixed), (others, {name: value for name, value in named.items() if name not in names})

    def _compile(self, key: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Compiled:
        """Compile once, whichever thread comes first."""
        with self._lock:
            compiled = self._found.get(key)
            if compiled is None:
                compiled = compile(self.lower(*arguments, **named), self._target, **self._options)
                self._found[key] = compiled
            return compiled

    def lower(self, *arguments: Any, **named: Any) -> Any:
        """The ``jax.stages.Lowered`` for the platform hloforge; arguments may be ``jax.ShapeDtypeStruct``s."""
        arguments, named = self._described(arguments, named)
        return self._jax.trace(*arguments, **named).lower(lowering_platforms=(platform.PLATFORM,))

    def _described(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with shapes and types in place of JAX's arrays, which may lie on several devices."""

        def described(value: Any) -> Any:
            return jax.tree.map(_described_leaf, value)

        numbers = {number % len(arguments) for number in self._static[0] if -len(arguments) <= number < len(arguments)}
        positional = tuple(value if n in numbers else described(value) for n, value in enumerate(arguments))
        return positional, {n: value if n in self._static[1] else described(value) for n, value in named.items()}

    def compiled(self, *arguments: Any, **named: Any) -> Compiled:
        """What is compiled for arguments like these, compiling it where nothing is."""
        found = self._compiled(arguments, named)[1]
        if found is None:
            raise TypeError("these arguments are being traced by JAX: nothing is compiled for them")
        return found

    def session(self, *arguments: Any, **named: Any) -> Session:
        """The session that runs calls with arguments like these."""
        return self.compiled(*arguments, **named).session

    def executable(self, *arguments: Any, **named: Any) -> Executable:
        """The vmfb and its manifest for calls with arguments like these."""
        return self.compiled(*arguments, **named).executable

    def clear_cache(self) -> None:
        """Forget what was compiled; the cache on disk stays."""
        with self._lock:
            self._found.clear()
            self._known.clear()
            self._recent = []
        self._jax.clear_cache()
        self._direct.clear_cache()

    def __repr__(self) -> str:
        return f"<hloforge.jit of {getattr(self, '__name__', 'a function')}, {len(self._found)} compiled>"


def _kind(leaf: Any) -> Any:
    """What of a leaf decides which program it needs, quickly found for common types."""
    kind = type(leaf)
    if kind is np.ndarray:
        return leaf.shape, leaf.dtype
    if kind in (bool, int, float, complex):
        return kind
    return platform.aval(leaf)


def _described_leaf(leaf: Any) -> Any:
    if type(leaf) is not platform.Array:
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
