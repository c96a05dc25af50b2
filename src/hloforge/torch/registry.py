"""The table of lowerings: the name of an operator of PyTorch → a function of JAX's arrays.

A function takes the ``Call`` and the operator's own arguments, tensors as arrays of JAX::

    @lowers("aten.flip")
    def flip(call, x, dims):
        return jnp.flip(x, dims)

``aten.flip`` means each overload, ``aten.flip.default`` one. Results are converted to the element type that PyTorch
says, so a function needs to compute in the right one only.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as _KINDS, elementwise_dtypes

from hloforge.torch.types import dtype_of

Lowering = Callable[..., Any]
# How PyTorch promotes the types of operands.
Kind: Any = _KINDS

_LOWERINGS: dict[str, Lowering] = {}
_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


@dataclass
class Call:
    """One use of an operator.

    Attributes:
        target: the operator.
        value: what PyTorch says of the result: a FakeTensor, a number, or a list of them.
        arguments: as the graph has them, tensors as FakeTensors.
        key: makes a new key for random numbers.
        run: runs a sub-graph on arrays: ``run(graph_module, arguments)``.
        counted: as ``run``, of a graph whose loops may keep the values of their turns: its results, and the most turns.
        note_turns: says to whoever calls the program how many turns such loops made.
        has_doubles: whether the target is known to compute f64.
    """

    target: Any
    value: Any
    arguments: tuple[Any, ...]
    key: Callable[[], Any] = field(repr=False)
    run: Callable[..., Any] = field(repr=False)
    counted: Callable[..., tuple[Any, Any]] = field(repr=False)
    note_turns: Callable[[Any], None] = field(repr=False)
    has_doubles: bool = field(default=False, kw_only=True)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the (first) result."""
        first = self.value[0] if isinstance(self.value, list | tuple) else self.value
        return dtype_of(first.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the result."""
        return tuple(self.value.shape)

    def computed_in(self, kind: Any, *, wide: bool = False) -> np.dtype[Any]:
        """The element type that PyTorch's promotion gives the arguments.

        Args:
            wide: compute with 16-bit floats in f32, as PyTorch does within one operator.
        """
        operands = [a for a in self.arguments if isinstance(a, torch.Tensor | int | float | complex)]
        dtype, _ = elementwise_dtypes(*operands, type_promotion_kind=kind)
        return dtype_of(_WIDER.get(dtype, dtype) if wide else dtype)


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a function for operators."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            if name in _LOWERINGS:
                raise ValueError(f"two lowerings of {name}")
            _LOWERINGS[name] = function
        return function

    return register


def draws(function: Lowering) -> Lowering:
    """Mark a lowering that draws random numbers by ``call.key()``."""
    function.draws = True  # type: ignore[attr-defined]
    return function


def draws_where(condition: Callable[[tuple[Any, ...]], bool]) -> Callable[[Lowering], Lowering]:
    """Mark a lowering that draws random numbers for some arguments, by their values in the graph."""

    def mark(function: Lowering) -> Lowering:
        function.draws = condition  # type: ignore[attr-defined]
        return function

    return mark


def is_random(node: torch.fx.Node) -> bool:
    """Whether a node calls an operator that draws random numbers."""
    if node.op != "call_function":
        return False
    draws = getattr(lowering_of(node.target), "draws", False)
    return draws(node.args) if callable(draws) else bool(draws)


def pointwise(
    *names: str, kind: Any = Kind.DEFAULT, wide: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of elements, which gets its tensors and numbers in the type that PyTorch computes in.

    Args:
        kind: how PyTorch promotes the operands.
        wide: the function is of several steps: 16-bit floats are computed in f32.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def lower(call: Call, *operands: Any, **others: Any) -> Any:
            dtype = call.computed_in(kind, wide=wide)
            return function(*(_as(operand, dtype) for operand in operands), **others)

        lower.is_pointwise = True  # type: ignore[attr-defined]
        lowers(*names)(lower)
        return function

    return register


def wider(dtype: Any) -> np.dtype[Any]:
    """The type that PyTorch computes in within an operator: f32 for 16-bit floats, which it rounds at the end."""
    dtype = np.dtype(dtype)
    is_narrow = dtype.itemsize == 2 and bool(jnp.issubdtype(dtype, jnp.floating))
    return np.dtype(np.float32) if is_narrow else dtype


def _as(operand: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(operand, jax.Array | np.ndarray):
        return operand.astype(dtype)
    if isinstance(operand, bool | int | float | complex):
        return number(operand, dtype)
    return operand


def number(value: Any, dtype: Any) -> Any:
    """A number of an element type; integers wrap as C's do."""
    if np.dtype(dtype).kind in "iu" and isinstance(value, int | float):
        return jnp.asarray(np.array(int(value) & ((1 << 64) - 1), np.uint64).astype(dtype))
    return jnp.asarray(value, dtype)


@cache
def _load() -> None:
    from hloforge.torch import operators

    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")


def name_of(target: Any) -> str:
    """``aten.add.Tensor`` of an overload, ``cond`` of a higher-order operator, a qualified name of a function."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    module = getattr(target, "__module__", "")
    return f"{module}.{getattr(target, '__name__', repr(target))}"


def lowering_of(target: Any) -> Lowering | None:
    """The function for an operator; None if there is none."""
    _load()
    name = name_of(target)
    found = _LOWERINGS.get(name)
    if found is None and isinstance(target, torch._ops.OpOverload):
        found = _LOWERINGS.get(name.rpartition(".")[0])
    return found


def known() -> Sequence[str]:
    """The names of all operators in the table."""
    _load()
    return sorted(_LOWERINGS)
