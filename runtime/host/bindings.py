"""What a program's host functions are bound to: Python functions here, machine code in ``host_native``."""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.errors import ArgumentError, ExecutionError, LoadError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.shapes import Shape
from hloforge.runtime.devices.devices import apart
from hloforge.runtime.session.arrays import Codec

Array: TypeAlias = np.ndarray[Any, Any]


class Bound(ABC):
    """A function as one program calls it. Arrays are in physical form, and tokens are left out.

    Args:
        call: what the program says of it.
        device: where the buffers of its results are made.
        gives_away: nobody else uses what it returns; the program takes it as it is, and may write into it.

    Attributes:
        takes, returns: the forms of its operands and results.
    """

    def __init__(self, call: HostCall, device: Any, *, gives_away: bool = True) -> None:
        self._call, self._device, self._apart = call, device, apart(device)
        self.takes = [Codec(f"operand {n}", leaf) for n, leaf in enumerate(arrays_of(call.operand_leaves))]
        # As if they were overwritten: what a function returns is copied, because it may keep and change it.
        self.returns = [
            Codec(f"result {n}", leaf, overwritten=not gives_away)
            for n, leaf in enumerate(arrays_of(call.result_leaves))
        ]

    @abstractmethod
    def on_views(self, views: Sequence[Any]) -> list[Any]:
        """Call it with IREE's buffer views; returns those of its results."""

    @abstractmethod
    def in_memory(self, operands: list[Array], results: list[Array]) -> None:
        """Call it with arrays of static shape; its results are written into others."""


class HostTarget(ABC):
    """A function of the host, of some kind, that any number of sessions may call."""

    @abstractmethod
    def bind(self, call: HostCall, device: Any, check_lifetimes: bool = False) -> Bound:
        """The function as one program calls it.

        Args:
            call: what the program says of it.
            device: where the buffers of its results are made.
            check_lifetimes: fail if the function keeps an operand, where that can be seen.

        Raises:
            LoadError: a function of this kind cannot be called so.
        """


@dataclass(frozen=True)
class PythonFunction(HostTarget):
    """A callable of numpy arrays.

    It is called with an array for each operand (a tuple for a tuple, nothing for a token), as the operand's shape says:
    read-only views of the program's memory, which is somebody else's when the function has returned. Typed attributes
    are keyword arguments, text is ``backend_config=``. It returns an array for a result that is an array, a tuple for
    several, anything for none.

    Attributes:
        function: the callable.
        copies: give it copies of the operands, which it may keep.
        gives_away: nobody else uses what it returns; the program takes it as it is, and may write into it.
    """

    function: Callable[..., Any]
    copies: bool = False
    gives_away: bool = False

    def bind(self, call: HostCall, device: Any, check_lifetimes: bool = False) -> Bound:
        named = {name: _plain(value) for name, value in call.attributes.items()}
        if call.configuration:
            named["backend_config"] = call.configuration
        visible = [operand for operand in map(_without_tokens, call.operands) if operand is not None]
        result = _without_tokens(call.result)
        function, flat = self.function, all(operand.is_array for operand in visible)

        def invoke(arrays: list[Any]) -> Sequence[Any]:
            returned = function(*(arrays if flat else _nested(visible, arrays)), **named)
            if result is None:
                return ()
            return (returned,) if result.is_array else list(_leaves(result, returned, call))

        return _OfArrays(
            call, device, invoke, copies=self.copies, gives_away=self.gives_away, check_lifetimes=check_lifetimes
        )


@dataclass(frozen=True)
class Callbacks(HostTarget):
    """The callbacks of a program that JAX lowered, which its calls name by their index.

    A callback takes and returns flat arrays, and None for tokens. JAX's may keep what they are given: they get copies.
    """

    functions: tuple[Callable[..., Any], ...]

    def bind(self, call: HostCall, device: Any, check_lifetimes: bool = False) -> Bound:
        index = int(call.attributes.get("index", -1))
        if not 0 <= index < len(self.functions):
            raise LoadError(f"the program calls callback {index} of @{call.target}, which has {len(self.functions)}")
        function = self.functions[index]
        takes = [leaf.is_token for leaf in call.operand_leaves]
        returns = [leaf.is_array for leaf in call.result_leaves]

        def invoke(arrays: list[Any]) -> Sequence[Any]:
            given = iter(arrays)
            returned = function(*(None if is_token else next(given) for is_token in takes))
            pairs = zip(returns, returned, strict=True) if any(returns) else ()
            return [value for is_array, value in pairs if is_array]

        return _OfArrays(call, device, invoke, copies=True, check_lifetimes=False)


class _OfArrays(Bound):
    """A function of logical arrays.

    Args:
        invoke: takes and returns as many as there are.
        copies: whether it gets copies of the operands.
        gives_away: as of ``PythonFunction``.
    """

    def __init__(
        self,
        call: HostCall,
        device: Any,
        invoke: Callable[[list[Any]], Sequence[Any]],
        *,
        copies: bool,
        gives_away: bool = False,
        check_lifetimes: bool,
    ) -> None:
        super().__init__(call, device, gives_away=gives_away)
        self._invoke, self._copies, self._checks = invoke, copies, check_lifetimes and not copies

    def on_views(self, views: Sequence[Any]) -> list[Any]:
        # A call costs what Python takes for these lines. IREE passes as many views as were declared.
        arrays = [codec.decode(view, self._apart) for codec, view in zip(self.takes, views)]  # noqa: B905
        device = self._device
        return self._run(arrays, lambda codec, _, value: codec.encode(value, device, []))

    def in_memory(self, operands: list[Array], results: list[Array]) -> None:
        arrays = [codec.logical(operand) for codec, operand in zip(self.takes, operands, strict=True)]
        self._run(arrays, lambda codec, number, value: codec.write(value, results[number]))

    def _run(self, arrays: list[Any], keep: Callable[[Codec, int, Any], Any]) -> list[Any]:
        if self._copies:
            arrays = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        if self._checks:
            return _checked(self._call, arrays, lambda arrays: self._kept(arrays, keep))
        return self._kept(arrays, keep)

    def _kept(self, arrays: list[Any], keep: Callable[[Codec, int, Any], Any]) -> list[Any]:
        results = self._invoke(arrays)
        if len(results) != len(self.returns):
            raise _misfit(self._call, f"{len(results)} arrays where {len(self.returns)} are expected")
        try:
            return [keep(codec, number, value) for number, (codec, value) in enumerate(zip(self.returns, results))]  # noqa: B905
        except ArgumentError as error:
            raise _misfit(self._call, error.message.removeprefix("argument ").replace("'", "", 2)) from None


def _checked(call: HostCall, arrays: list[Any], run: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """``run(arrays)``. Raises ExecutionError if more refers to the memory of an operand than before."""
    memory = [_memory(array) for array in arrays]
    before = _reference_counts(memory)
    results = run(arrays)
    if _reference_counts(memory) == before:
        return results
    # What only waits for the collector is not kept.
    gc.collect()
    after = _reference_counts(memory)
    kept = [number for number, count in enumerate(before) if after[number] > count]
    if not kept:
        return results
    raise ExecutionError(
        f"host function {call} keeps operand {kept[0]} after its call, when the program reuses its memory",
        hint="let it keep a copy: np.array(x), or register it with copy=True",
    )


def _memory(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that every view of an array refers to."""
    return _memory(array.base) if isinstance(array.base, np.ndarray) else array


def _reference_counts(arrays: list[np.ndarray[Any, Any]]) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


def arrays_of(leaves: Iterable[Shape]) -> list[Shape]:
    """The leaves that carry data."""
    return [leaf for leaf in leaves if leaf.is_array]


def _misfit(call: HostCall, what: str) -> ExecutionError:
    return ExecutionError(f"host function {call} returned what it did not declare: {what}")


def _plain(value: Any) -> Any:
    """Scalars as Python's."""
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _without_tokens(shape: Shape) -> Shape | None:
    """The shape as a Python function sees it; None if nothing is left of it."""
    if shape.elements is None:
        return shape if shape.is_array else None
    if not any(leaf.is_token for leaf in shape.leaves()):
        return shape if shape.elements else None
    kept = [element for element in map(_without_tokens, shape.elements) if element is not None]
    return Shape.tuple_of(*kept) if len(kept) > 1 else next(iter(kept), None)


def _nested(shapes: Sequence[Shape], arrays: Sequence[Any]) -> list[Any]:
    left = iter(arrays)
    return [_nest(shape, left) for shape in shapes]


def _nest(shape: Shape, arrays: Iterator[Any]) -> Any:
    if shape.elements is None:
        return next(arrays)
    return tuple(_nest(element, arrays) for element in shape.elements)


def _leaves(shape: Shape, value: Any, call: HostCall) -> Iterator[Any]:
    if shape.elements is None:
        yield value
        return
    if not isinstance(value, tuple | list) or len(value) != len(shape.elements):
        got = f"{len(value)} values" if isinstance(value, tuple | list) else f"a {type(value).__name__}"
        raise _misfit(call, f"{got} for {shape.without_layout()}")
    for element, member in zip(shape.elements, value, strict=True):
        yield from _leaves(element, member, call)
