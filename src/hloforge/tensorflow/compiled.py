"""``hloforge.tensorflow.compile``: a function of TensorFlow, compiled by hloforge and called with tensors."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import tensorflow as tf

from hloforge import api
from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Program
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.session.arrays import Codec, DeviceArray
from hloforge.runtime.session.session import Session
from hloforge.tensorflow.arrays import LARGE, NumpyArray, to_numpy, to_tensor
from hloforge.tensorflow.nests import describe
from hloforge.tensorflow.sources import source_of, variable_names
from hloforge.tensorflow.tracing import Tracer


def compile(
    source: Any,
    example_args: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    signature: str | None = None,
    freeze: bool = False,
    target: Target | str = "cpu",
    **options: Any,
) -> Compiled:
    """Compile a function of TensorFlow.

    Args:
        source: a ``tf.function``, a function of tensors, a model or layer of Keras, a ``tf.Module``, what
            ``tf.saved_model.load`` returns, or the path of a SavedModel or of a ``.keras`` file.
        example_args: a sequence with an example of each positional argument, or the only one: nests of tensors, arrays,
            or ``tf.TensorSpec``s, in which a size of None is any size. Values of Python are part of the program, as in
            ``tf.function``. None for what the function declares, or the model's inputs.
        example_kwargs: likewise of named arguments.
        signature: of a SavedModel; by default ``serving_default``, or the only one.
        freeze: make constants of the variables, as they are now; they must not be assigned.
        target, options: as of ``hloforge.compile``.

    Returns:
        what is called like the function. A size that no call had before is traced and compiled when it comes.

    Raises:
        UnsupportedError: an operation that XLA or the target does not have, at the user's line.
        ArgumentError: no example where one is needed, or an unknown signature.
        ImporterError: a path without a model that can be read.
        TypeError: ``source`` is none of these.
        Exception: what the function raises when it is traced; errors as of ``hloforge.compile``.
    """
    tracer = tracer_of(source, example_args, example_kwargs, signature, freeze)
    return Compiled(api.compile(tracer.program(), target, **options), tracer)


def read(
    source: Any,
    example_args: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    signature: str | None = None,
    freeze: bool = False,
) -> Program:
    """The program that ``compile`` would compile: its results are followed by the new values of assigned variables.

    Args, Raises:
        as of ``compile``.
    """
    return tracer_of(source, example_args, example_kwargs, signature, freeze).program()


def tracer_of(
    source: Any,
    example_args: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    signature: str | None = None,
    freeze: bool = False,
) -> Tracer:
    """What traces a function for the sizes of a call, and knows the variables after its arguments.

    Args, Raises:
        as of ``compile``.
    """
    found = source_of(source, signature, has_examples=example_args is not None or bool(example_kwargs))
    positional, named = _examples(example_args), dict(example_kwargs or {})
    if positional is None and not named and found.positional is None:
        hint = "compile(f, [tf.TensorSpec([None, 8], tf.float32)])"
        raise ArgumentError(f"{found.name} does not say what it is called with", hint=hint)
    if positional is None:
        positional = tuple(found.positional or ())
        named = {**found.named, **named}
    arguments = describe(positional, named, found.function)
    if not named and len(found.input_names) == len(arguments.names):
        arguments = replace(arguments, names=found.input_names)
    return Tracer(found.function, arguments, found.name, variable_names(found), freeze)


def _examples(given: Any) -> tuple[Any, ...] | None:
    """Examples of the positional arguments; a tensor or a dictionary by itself is the only one."""
    if given is None:
        return None
    return tuple(given) if isinstance(given, list | tuple) else (given,)


class Compiled:
    """A compiled function of TensorFlow. Calls are safe from several threads at once; assignments keep their order.

    Attributes:
        executable: the vmfb and its manifest.
        session: the loaded program, a function of flat arrays: the arguments, then the variables.
    """

    def __init__(self, executable: Executable, tracer: Tracer) -> None:
        self.executable = executable
        self.session: Session = executable.load()
        self._tracer = tracer
        self._codecs = self.session.parameters
        self._is_large = any(not c.shape.is_static or c.byte_count >= LARGE for c in self.session.results)
        self._assigning = threading.Lock()

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the parameters after the arguments: variables, and tensors from outside of the function."""
        return tuple(codec.name for codec in self._codecs[len(self._tracer.arguments.specs) :])

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the function; variables that it assigns have their new values afterwards.

        Raises:
            ArgumentError: another structure, element type or size than it was compiled for.
            ExecutionError: the program failed.
            UnsupportedError, Exception: as of ``compile``, for sizes that come for the first time.
        """
        tensors = self._tracer.arguments.tensors_of(arguments, named)
        if not self._tracer.assigns:
            return self._run(tensors)
        with self._assigning:
            return self._run(tensors)

    def _run(self, tensors: Sequence[Any]) -> Any:
        arrays = [to_numpy(tensor, codec.dtype) for tensor, codec in zip(tensors, self._codecs, strict=False)]
        values = [capture.value() for capture in self._tracer.captures]
        results = [to_tensor(result) for result in self._called([*arrays, *values])]
        form = self._tracer.form([array.shape for array in arrays])
        count = len(results) - len(form.updates)
        for capture, value in zip(form.updates, results[count:], strict=True):
            tf.raw_ops.AssignVariableOp(resource=capture.tensor, value=value)
        return form.packed(results[:count])

    def _called(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The flat results of the session, arrays that nobody else refers to."""
        if not self._is_large:
            found = self.session(*arguments)
            return found if type(found) is tuple else (found,)
        found = self.session.call_device(*arguments)
        results = found if type(found) is tuple else (found,)
        # A form of a program for some sizes returns the variables that it assigns after what is declared.
        return [self._own(result, codec) for result, codec in zip_longest(results, self.session.results)]

    def _own(self, result: DeviceArray, codec: Codec | None) -> NumpyArray:
        """The memory of a result, or a copy where something else refers to it."""
        if codec is None or result.is_shared or result.host.nbytes < LARGE:
            return np.array(result)
        return codec.logical(self.session.lasting(result))

    def __repr__(self) -> str:
        return f"Compiled({self.executable.manifest.name}: {self.session.signature})"
