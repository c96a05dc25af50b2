"""A program of JAX that hloforge compiled: called with pytrees like the function that it was traced from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np

from hloforge import api
from hloforge.dialect.errors import ArgumentError, UnsupportedError
from hloforge.jax import direct, donation, platform
from hloforge.jax.arrays import LARGE, leaf_to_numpy, result_maker, writable
from hloforge.jax.direct import Direct
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.session.session import Session


def compile(source: Any, target: Target | str = "cpu", **options: Any) -> Compiled:
    """Compile a program of JAX.

    Args:
        source: what ``jax.jit(f).lower(x)`` (for any platform), ``jax.jit(f).trace(x)`` or ``jax.export.export``
            return, or a serialized export (bytes).
        target, options: as of ``hloforge.compile``.

    Returns:
        what is called like the function, with pytrees of arrays.

    Raises:
        UnsupportedError: an export for platforms of which none is ``cpu`` or ``hloforge``.
        TypeError: none of these sources.
        Errors as of ``hloforge.compile``.
    """
    platform.register()
    if isinstance(source, bytes | bytearray):
        source = jax.export.deserialize(bytearray(source))
    if isinstance(source, jax.stages.Traced):
        source = source.lower(lowering_platforms=(platform.PLATFORM,))
    if isinstance(source, jax.stages.Lowered):
        convention = _of_lowered(source)
    elif isinstance(source, jax.export.Exported):
        convention = _of_exported(source)
    else:
        message = f"hloforge.jax.compile takes what jax lowers, traces or exports, not {type(source).__name__}"
        raise TypeError(message)
    return Compiled(api.compile(source, target, **options), convention)


@dataclass(frozen=True)
class Convention:
    """How the leaves of a call become the arguments of the program.

    Attributes:
        in_tree, out_tree: pytrees of arguments (a tuple and a dict) and result.
        first: arguments before those of the caller: the platform's number, tokens, constants.
        kept: numbers of the leaves that the program takes, in order; it has no parameter for what it does not use.
        donated: numbers of the leaves that are given up.
        in_avals: of the leaves that it takes.
        out_avals: of the result's leaves.
        tokens: how many results of the program are tokens, which come first.
        captured: ``Ref``s that the function closes over, which the program takes after the leaves.
        changed: by the number of a result after the tokens, the number of the ``Ref`` whose new value it is, among
            the arguments that the program takes.
    """

    in_tree: Any
    out_tree: Any
    first: tuple[Any, ...]
    kept: tuple[int, ...]
    donated: frozenset[int]
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    tokens: int
    captured: tuple[Any, ...] = ()
    changed: Mapping[int, int] = field(default_factory=dict)


def _of_lowered(lowered: Any) -> Convention:
    arguments = platform.compile_arguments(lowered)
    changes = arguments["mut"]
    constants = platform.constant_arguments(lowered)
    count = len(constants)
    tokens = len(arguments["ordered_effects"])
    infos = jax.tree.leaves(lowered.args_info)
    leaves = range(count, count + len(infos))
    return Convention(
        lowered.in_tree,
        lowered.out_tree,
        first=(*[None] * tokens, *map(np.asarray, constants)),
        kept=tuple(number - count for number in sorted(arguments["kept_var_idx"]) if number in leaves),
        donated=frozenset(number for number, info in enumerate(infos) if info.donated),
        in_avals=tuple(arguments["global_in_avals"])[count:],
        out_avals=tuple(arguments["global_out_avals"]),
        tokens=tokens,
        captured=tuple(changes.in_mut) if changes is not None else (),
        changed={n: i - count for n, i in enumerate(changes.out_mut) if i is not None} if changes is not None else {},
    )


def _of_exported(exported: Any) -> Convention:
    names = exported.platforms
    chosen = next((name for name in (platform.PLATFORM, "cpu") if name in names), None)
    if chosen is None:
        raise UnsupportedError(
            f"the program was exported for {', '.join(names)}", hint='export it with platforms=["cpu"]'
        )
    index = [np.array(names.index(chosen), np.int32)] if len(names) > 1 else []
    tokens = len(exported.ordered_effects)
    kept = exported.module_kept_var_idx
    return Convention(
        exported.in_tree,
        exported.out_tree,
        first=(*index, *[None] * tokens),
        kept=tuple(kept),
        donated=frozenset(),
        in_avals=tuple(exported.in_avals[number] for number in kept),
        out_avals=tuple(exported.out_avals),
        tokens=tokens,
    )


class Compiled:
    """A compiled program of JAX. Calls are safe from several threads at once.

    Attributes:
        executable: the vmfb and its manifest.
        session: the loaded program, a function of flat numpy arrays.
        is_direct: whether ``traced`` can be asked.
    """

    def __init__(self, executable: Executable, convention: Convention) -> None:
        self.executable = executable
        self.session: Session = executable.load()
        self._convention = convention
        self._kept = convention.kept
        self._all = convention.kept == tuple(range(convention.in_tree.num_leaves)) and not convention.changed
        self._dtypes = [np.dtype(_dtype(aval)) for aval in convention.in_avals]
        self._makers = [result_maker(aval) for aval in convention.out_avals] if _is_static(convention) else None
        self._donated = self._donated_codecs()
        self.is_direct = self._is_direct()
        # Results of sizes that a call decides may be large.
        self._is_large = any(not c.shape.is_static or c.byte_count >= LARGE for c in self.session.results)

    def _donated_codecs(self) -> dict[int, Any]:
        """The codecs of the arguments whose memory the program takes: donated ones, and what ``Ref``s hold."""
        codecs = self.session.parameters[len(self._convention.first) - self._convention.tokens :]
        given = {number for number, leaf in enumerate(self._kept) if leaf in self._convention.donated}
        given.update(self._convention.changed.values())
        return {number: codec for number, codec in enumerate(codecs) if number in given and codec.donated}

    def _is_direct(self) -> bool:
        convention = self._convention
        if self._makers is None or convention.tokens or convention.changed or convention.captured:
            return False
        if any(aval.dtype == jax.dtypes.float0 for aval in (*convention.in_avals, *convention.out_avals)):
            return False
        return direct.fits(self.session, convention.first)

    @cached_property
    def _direct(self) -> Direct:
        native = self.session.native
        if native is None:
            raise RuntimeError("the session is closed")
        return direct.direct(native, self._convention.out_avals)

    def traced(self, leaves: Sequence[Any]) -> Any:
        """The result, as JAX traces a call of the program."""
        kept = leaves if self._all else [leaves[number] for number in self._kept]
        numbers = [
            jax.random.key_data(leaf) if platform.is_key(aval) else leaf
            for leaf, aval in zip(kept, self._convention.in_avals, strict=True)
        ]
        results = direct.call_p.bind(*self._convention.first, *numbers, program=self._direct)
        made = [
            platform.wrapped_keys(result, aval) if platform.is_key(aval) else result
            for result, aval in zip(results, self._convention.out_avals, strict=True)
        ]
        return self.out_tree.unflatten(made)

    @property
    def in_tree(self) -> Any:
        """The pytree of the arguments: a tuple of the positional ones, a dict of the others."""
        return self._convention.in_tree

    @property
    def out_tree(self) -> Any:
        """The pytree of the result."""
        return self._convention.out_tree

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program.

        Raises:
            ArgumentError: other pytrees, element types or sizes than it was compiled for.
            ExecutionError: the program failed.
            Exception: what a callback raised.
        """
        leaves, tree = jax.tree.flatten((arguments, named))
        if tree != self.in_tree:
            raise ArgumentError(f"the arguments have the structure {tree}", hint=f"expected: {self.in_tree}")
        kept = [leaves[number] for number in self._kept]
        for leaf, aval in zip(kept, self._convention.in_avals, strict=True):
            _check(leaf, aval)
        return self.run(leaves)

    def run(self, leaves: Sequence[Any]) -> Any:
        """Run the program on the leaves of its arguments, of the types that it was compiled for."""
        kept = leaves if self._all else [leaves[number] for number in self._kept]
        references = self._references(kept) if self._convention.changed else {}
        if references:
            kept = [platform.held(leaf) for leaf in (*kept, *self._convention.captured)]
        arguments = [*self._convention.first, *(self._donated_arguments(kept) if self._donated else self._arrays(kept))]
        results = self._called(arguments)[self._convention.tokens :]
        makers = self._makers or map(result_maker, _sized(self._convention.out_avals, results))
        made = [make(result) for make, result in zip(makers, results, strict=True)]
        for number, reference in references.items():
            platform.hold(reference, made[number])
        if references:
            made = [one for number, one in enumerate(made) if number not in references]
        return self.out_tree.unflatten(made)

    def _references(self, kept: Sequence[Any]) -> dict[int, Any]:
        """The ``Ref``s that the results of these numbers are put into.

        Raises:
            ArgumentError: one ``Ref`` is given twice.
        """
        given = [*kept, *self._convention.captured]
        found = {number: given[place] for number, place in self._convention.changed.items()}
        if len(set(map(id, found.values()))) < len(found):
            raise ArgumentError("a Ref is given twice, or is one that the function captures", hint="pass each Ref once")
        return found

    def _arrays(self, kept: Sequence[Any]) -> list[Any]:
        arrays = [leaf_to_numpy(leaf, dtype) for leaf, dtype in zip(kept, self._dtypes, strict=True)]
        return arrays if self.session.native is not None else [writable(array) for array in arrays]

    def _called(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The flat results of the session."""
        if not self._is_large:
            found = self.session(*arguments)
            return found if type(found) is tuple else (found,)
        found = self.session.call_device(*arguments)
        results = found if type(found) is tuple else (found,)
        tokens = self._convention.tokens
        shown = [donation.show(self.session, r, c) for r, c in zip(results[tokens:], self.session.results, strict=True)]
        return [*results[:tokens], *shown]

    def _donated_arguments(self, kept: Sequence[Any]) -> list[Any]:
        """Arguments of which some give their memory up: these go last, when it is known who else looks at them."""
        arguments: list[Any] = [None] * len(kept)
        for number, (leaf, dtype) in enumerate(zip(kept, self._dtypes, strict=True)):
            if number not in self._donated or type(leaf) is not platform.Array:
                array = leaf_to_numpy(leaf, dtype)
                arguments[number] = array if self.session.native is not None else writable(array)
        for number, codec in self._donated.items():
            if arguments[number] is None:
                arguments[number] = donation.take(kept[number], codec)
        return arguments

    def __repr__(self) -> str:
        return f"Compiled({self.executable.manifest.name}: {self.session.signature})"


def _dtype(aval: Any) -> Any:
    if aval.dtype == jax.dtypes.float0:
        return np.bool_
    return platform.physical(aval).dtype


def _is_static(convention: Convention) -> bool:
    return all(isinstance(size, int) for aval in convention.out_avals for size in aval.shape)


def _sized(avals: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Avals of dynamic sizes with those of the results."""
    return [aval.update(shape=result.shape) for aval, result in zip(avals, results, strict=True)]


def _check(leaf: Any, aval: Any) -> None:
    """Raises ArgumentError for an argument that is not of the aval."""
    given = platform.aval(leaf)
    if given.dtype != aval.dtype or len(given.shape) != len(aval.shape):
        raise ArgumentError(f"an argument is {given.str_short()}", hint=f"expected: {aval.str_short()}")
