"""``jax.experimental.buffer_callback``: Python functions that write their results in place.

The backend calls Python functions that return their results, so each becomes one that makes the memory for them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental.buffer_callback import ExecutionStage

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import AnyOp, ir, stablehlo

# What JAX calls them by on the CPU.
TARGET = "xla_buffer_python_cpu_callback"
_ALIASES = "output_operand_aliases"
_DLPACK_CPU = (1, 0)

NumpyArray = np.ndarray[Any, Any]


class CallbackError(RuntimeError):
    """What a Python function that a program called raised, as text that begins as XLA's."""


@dataclass(frozen=True)
class Buffer:
    """An argument or a result as the function sees it: ``np.asarray(buffer)`` shows its memory."""

    array: NumpyArray
    writeable: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def ndim(self) -> int:
        return self.array.ndim

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumpyArray:
        return np.array(self.array, dtype) if copy else np.asarray(self.array, dtype)

    def __dlpack__(self, **arguments: Any) -> Any:
        arguments.pop("stream", None)
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU


class Context:
    """What the function is told of the run: there is one stage, and no stream."""

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        # The words and the class of JAX's CPU.
        message = "UNIMPLEMENTED: XLA FFI GPU context is not available: hloforge runs on the CPU, which has no streams"
        raise jax.errors.JaxRuntimeError(message)


def returning(function: Callable[..., Any], op: AnyOp) -> Callable[..., Sequence[NumpyArray]]:
    """The function as one that returns its results.

    Args:
        function: called with a context, the arguments and the results.
        op: the custom call, which says what the results are and which of them begin as arguments.
    """
    kinds = [_kind(result.type) for result in op.results]
    aliases = _aliases(op)

    def call(*arguments: NumpyArray) -> Sequence[NumpyArray]:
        for argument in arguments:  # copies, which may be handed on as what DLPack shares
            argument.flags.writeable = argument.flags.owndata
        results = [
            np.array(arguments[aliases[number]]) if number in aliases else np.empty(*kind)
            for number, kind in enumerate(kinds)
        ]
        # What begins as an argument is the argument's memory, however the function writes to it.
        given = list(arguments)
        for number, alias in aliases.items():
            given[alias] = results[number]
        try:
            function(Context(), *(Buffer(x, False) for x in given), *(Buffer(x, True) for x in results))
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            raise CallbackError(f"Error when calling buffer callback: {text}") from None
        return results

    return call


def _kind(type_: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    array = ir.RankedTensorType(type_)
    return tuple(array.shape), element_type(array.element_type).dtype


def _aliases(op: Any) -> Mapping[int, int]:
    """Numbers of arguments by those of the results that begin as them. The attribute ends with this."""
    if _ALIASES not in op.attributes:
        return {}
    aliases = map(stablehlo.OutputOperandAlias, op.attributes[_ALIASES])
    found = {(*alias.output_tuple_indices, 0)[0]: alias.operand_index for alias in aliases}
    del op.attributes[_ALIASES]
    return found
