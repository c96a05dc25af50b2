"""Find the TensorFlow function in what a user passes, its argument specs, and the names of its variables."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from hloforge.dialect.errors import ArgumentError, UnsupportedError
from hloforge.tensorflow.saved_models import load_function


@dataclass(frozen=True)
class Source:
    """A function to compile.

    Attributes:
        function: takes and returns nests of tensors.
        name: of the program.
        positional, named: what it is traced for if the user says nothing; None if that is not known.
        holder: the object that the function came from, whose variables have names.
        input_names: of the tensors of ``positional``, where the model has names for them; else empty.
    """

    function: Callable[..., Any]
    name: str
    positional: Sequence[Any] | None = None
    named: Mapping[str, Any] = field(default_factory=dict)
    holder: Any = None
    input_names: tuple[str, ...] = ()


def source_of(given: Any, signature: str | None, *, has_examples: bool = True) -> Source:
    """The function in a function, a model, a module, or at a path.

    Args:
        signature: of a SavedModel.
        has_examples: whether the user says what it is called with; a loaded model is called by a signature otherwise.

    Raises:
        ArgumentError: a signature that is not there, or for what has none.
        UnsupportedError: a model of Keras that runs on another framework.
        ImporterError: a path at which there is no model that can be read.
        TypeError: nothing of these.
    """
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if path.suffix == ".keras" and path.is_file():
            return source_of(load_keras(path), signature)
        function, named, name = load_function(path, signature)
        return Source(function, name, (), named, function)
    if _is_keras(given):
        return _of_keras(given)
    signatures = getattr(given, "signatures", None)
    if isinstance(signatures, Mapping) and (signature is not None or not (has_examples and callable(given))):
        function, named, name = pick_signature(signatures, signature)
        return Source(function, name, (), named, given)
    if signature is not None:
        raise ArgumentError(f"{type(given).__name__} has no signatures, such as {signature!r}")
    if not callable(given):
        raise TypeError(
            f"no function of TensorFlow in {type(given).__name__}: give what is called with tensors, or a path"
        )
    return _of_callable(given)


def load_keras(path: Path) -> Any:
    """The model in a ``.keras`` file. Raises ImporterError."""
    import keras

    from hloforge.dialect.errors import ImporterError, Location

    try:
        return keras.saving.load_model(path, compile=False)
    except (ValueError, TypeError, OSError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ImporterError(f"Keras cannot read the model: {reason}", location=Location(str(path))) from None


def pick_signature(signatures: Mapping[str, Any], wanted: str | None) -> tuple[Any, dict[str, Any], str]:
    """A signature, the specs of its arguments and its name: the wanted one, the default one, or the only one.

    Raises:
        ArgumentError: there is none such.
    """
    names = list(signatures)
    chosen = wanted or ("serving_default" if "serving_default" in names else names[0] if len(names) == 1 else None)
    if chosen not in names:
        what = f"has no signature {chosen!r}" if chosen else "has several signatures" if names else "has no signature"
        hint = f"signatures: {', '.join(names)}" if names else "save it with tf.saved_model.save(…, signatures=…)"
        raise ArgumentError(f"the model {what}", hint=hint)
    function = signatures[chosen]
    return function, dict(function.structured_input_signature[1]), str(chosen)


def _is_keras(given: Any) -> bool:
    return any(base.__module__.startswith("keras.") and base.__name__ == "Layer" for base in type(given).__mro__)


def _of_keras(model: Any) -> Source:
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        way = {
            "jax": "hloforge.jit(lambda x: model(x))",
            "torch": "hloforge.torch.compile(model, (x,))",
        }.get(backend, "KERAS_BACKEND=tensorflow")
        raise UnsupportedError(f"this Keras runs on {backend}, not on TensorFlow", hint=f"use {way}")
    inputs = getattr(getattr(model, "_functional", None) or model, "_inputs_struct", None)
    positional = None if inputs is None else (tf.nest.map_structure(_keras_spec, _alone(inputs)),)
    return Source(model, str(model.name), positional, {}, model, _input_names(inputs))


def _input_names(inputs: Any) -> tuple[str, ...]:
    """The names of a model's ``Input``s; none for the only one, which is an argument by itself."""
    names = tuple(str(getattr(tensor, "name", "")) for tensor in tf.nest.flatten(inputs))
    return names if len(names) > 1 and all(names) and len(set(names)) == len(names) else ()


def _alone(inputs: Any) -> Any:
    """The only one of a list of inputs, because models are called with that."""
    return inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs


def _keras_spec(tensor: Any) -> Any:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _of_callable(given: Any) -> Source:
    name = getattr(given, "__name__", None) or getattr(given, "name", None) or type(given).__name__
    if hasattr(given, "structured_input_signature"):  # a concrete function
        positional, named = given.structured_input_signature
        return Source(given, _plain(str(name)), positional, named, given)
    function = given
    if not hasattr(given, "get_concrete_function"):
        # A module's call that is a tf.function knows its own signature.
        call = given.__call__ if isinstance(given, tf.Module) else None
        function = call if hasattr(call, "get_concrete_function") else tf.function(given)
    declared = getattr(function, "input_signature", None)
    return Source(function, _plain(str(name)), declared, {}, given)


def _plain(name: str) -> str:
    return "function" if name == "<lambda>" else name


def variable_names(source: Source) -> dict[int, str]:
    """Names of variables by ``id`` of their handles: the paths of Keras's, also of those that a function refers to."""
    found: dict[int, str] = {}
    for holder in _holders(source.holder):
        for variable in _variables(holder):
            handle = getattr(getattr(variable, "value", None), "handle", None)
            if handle is not None and hasattr(variable, "path"):
                found[id(handle)] = str(variable.path)
    return found


def _holders(holder: Any) -> Iterable[Any]:
    """An object, and what the function that it is can see."""
    yield holder
    function = inspect.unwrap(getattr(holder, "python_function", holder))
    if inspect.isroutine(function):
        try:
            seen = inspect.getclosurevars(function)
        except (TypeError, ValueError):
            return
        yield from (*seen.nonlocals.values(), *seen.globals.values())
        yield getattr(function, "__self__", None)


def _variables(holder: Any) -> Iterable[Any]:
    if not _is_of_keras(holder):
        return ()
    variables = getattr(holder, "variables", ())
    return variables if isinstance(variables, list | tuple) else ()


def _is_of_keras(holder: Any) -> bool:
    return any(base.__module__.startswith("keras.") for base in type(holder).__mro__)
