"""The arguments of a function of TensorFlow: a nest whose leaves are tensors, or values that Python computes with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from hloforge.dialect.errors import ArgumentError, UnsupportedError


@dataclass(frozen=True)
class Arguments:
    """What a function is traced for.

    Attributes:
        structure: the nest ``(positional, named)`` with a spec in place of each tensor.
        leaves: of the structure, composite tensors taken apart: specs, and values of Python that are fixed.
        names: of the tensors, in the order of the leaves.
    """

    structure: Any
    leaves: tuple[Any, ...]
    names: tuple[str, ...]

    @property
    def specs(self) -> tuple[tf.TensorSpec, ...]:
        """Of the tensors alone."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, tf.TensorSpec))

    def packed(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """Positional and named arguments with these tensors."""
        rest = iter(tensors)
        flat = [next(rest) if isinstance(leaf, tf.TensorSpec) else leaf for leaf in self.leaves]
        positional, named = tf.nest.pack_sequence_as(self.structure, flat, expand_composites=True)
        return positional, named

    def tensors_of(self, positional: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The tensors of a call, in order.

        Raises:
            ArgumentError: another structure, or another value where Python's values are fixed.
        """
        given = (tuple(positional), dict(named))
        try:
            tf.nest.assert_same_structure(self.structure, given, expand_composites=True)
        except (TypeError, ValueError):
            message = f"the arguments have the structure {_sketch(given)}"
            raise ArgumentError(message, hint=f"expected: {_sketch(self.structure)}") from None
        tensors = []
        for leaf, value in zip(self.leaves, tf.nest.flatten(given, expand_composites=True), strict=True):
            if isinstance(leaf, tf.TensorSpec):
                tensors.append(value)
            elif not _is_same(leaf, value):
                hint = "a value of Python is part of the program: pass an array, or compile again"
                raise ArgumentError(f"an argument is {value!r}, and the program was compiled for {leaf!r}", hint=hint)
        return tensors


def describe(positional: Sequence[Any], named: Mapping[str, Any], function: Callable[..., Any]) -> Arguments:
    """The arguments for examples: arrays, tensors, variables and Keras's tensors become specs; specs stay.

    Raises:
        UnsupportedError: a tensor of strings, resources or variants.
        ArgumentError: a tensor of unknown rank.
    """
    given = tf.nest.map_structure(_spec, (tuple(positional), dict(named)))
    leaves = [_spec(leaf) for leaf in tf.nest.flatten(given, expand_composites=True)]
    paths = list(_paths(given, function))
    names = []
    for path, leaf in zip(paths, leaves, strict=True):
        if isinstance(leaf, tf.TensorSpec):
            _check(path, leaf)
            names.append(path)
    return Arguments(given, tuple(leaves), tuple(names))


def _spec(leaf: Any) -> Any:
    """A spec for what represents a tensor; composite tensors and other values as they are."""
    if isinstance(leaf, tf.TypeSpec):
        return tf.TensorSpec(leaf.shape, leaf.dtype) if type(leaf) is tf.TensorSpec else leaf
    if isinstance(leaf, tf.Tensor | tf.Variable):
        return tf.TensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf, np.ndarray | np.generic):
        return tf.TensorSpec(leaf.shape, tf.as_dtype(leaf.dtype))
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not isinstance(leaf, tf.__internal__.CompositeTensor):
        return tf.TensorSpec(tuple(leaf.shape), tf.as_dtype(leaf.dtype))
    return leaf


def _check(name: str, spec: tf.TensorSpec) -> None:
    if spec.dtype in (tf.string, tf.resource, tf.variant):
        raise UnsupportedError(f"the argument {name!r} is a tensor of {spec.dtype.name}; XLA has numeric types only")
    if spec.shape.rank is None:
        raise ArgumentError(f"the argument {name!r} has no rank", hint="tf.TensorSpec([None, 8], …)")


def _is_same(expected: Any, given: Any) -> bool:
    return type(expected) is type(given) and bool(expected == given)


def _sketch(nest: Any) -> str:
    """The nest in short; its tensors as element type and sizes."""

    def shown(leaf: Any) -> str:
        spec = _spec(leaf)
        if not isinstance(spec, tf.TensorSpec):
            return repr(leaf)
        return f"{spec.dtype.name}[{','.join('?' if size is None else str(size) for size in spec.shape)}]"

    return str(tf.nest.map_structure(shown, nest)).replace("'", "")


def _paths(given: tuple[tuple[Any, ...], dict[str, Any]], function: Callable[..., Any]) -> Iterator[str]:
    """A name for each leaf: of the function's parameter, and the keys and positions inside of its nest."""
    positional, named = given
    names = _parameter_names(function, len(positional))
    for name, value in zip(names, positional, strict=True):
        yield from _paths_in(name, value)
    for name in sorted(named):
        yield from _paths_in(name, named[name])


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    # Layers of Keras are called by way of their ``call``.
    named = getattr(function, "python_function", getattr(function, "call", function))
    try:
        parameters = inspect.signature(named).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    names = [parameter.name for parameter in parameters if parameter.kind in kinds]
    return [*names[:count], *(f"arg{number}" for number in range(len(names), count))]


def _paths_in(name: str, value: Any) -> Iterator[str]:
    """Paths within an argument, which begin with its name."""
    yield from (".".join((name, *path)) for path in paths_of(value))


def paths_of(value: Any) -> Iterator[tuple[str, ...]]:
    """The keys and positions that lead to each leaf, in the order of ``tf.nest``: dictionaries by their sorted keys."""
    if isinstance(value, Mapping):
        parts = [(str(key), value[key]) for key in sorted(value)]
    elif isinstance(value, list | tuple):
        keys = getattr(value, "_fields", range(len(value)))
        parts = [(str(key), member) for key, member in zip(keys, value, strict=True)]
    else:
        members = tf.nest.flatten(value, expand_composites=True)
        yield from [()] if len(members) == 1 else [(str(number),) for number in range(len(members))]
        return
    for key, member in parts:
        yield from ((key, *path) for path in paths_of(member))
