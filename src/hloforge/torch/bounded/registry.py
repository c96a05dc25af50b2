"""The table of rules: what an operator does with padding, by the operator's name.

An operator that reads or makes a tensor of open sizes is called by its rule, which gets an ``OpenCall``. Padding may
hold anything, so a rule lets no element before the real size depend on one after it. What has no rule is refused.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.utils import _pytree as pytree

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.sizes import Sizes, fit, is_open, open_dims
from hloforge.torch.registry import Call, Lowering, lowering_of, name_of

Rule = Callable[..., Any]
_RULES: dict[str, Rule] = {}


@dataclass
class OpenCall(Call):
    """One use of an operator with open sizes. What ``Call`` says of tensors has the sizes of the padded arrays.

    Attributes:
        sizes: what the symbols are.
        said: the arguments as PyTorch says them, with symbols.
        result: of the result.
    """

    sizes: Sizes
    said: tuple[Any, ...]
    result: Any

    @property
    def wanted(self) -> Any:
        """The result with the sizes of its arrays; a rule that makes a size says first what it is."""
        return self.sizes.padded(self.result)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the result's array."""
        return tuple(self.wanted.shape)

    @property
    def is_open(self) -> bool:
        """Whether a size of an argument, or of the result, is open."""
        leaves = pytree.tree_leaves((self.said, self.result))
        return any(open_dims(leaf) or is_open(leaf) for leaf in leaves)

    def plain(self, *arguments: Any, **named: Any) -> Any:
        """What the operator's lowering makes of arrays.

        Raises:
            UnsupportedError: the operator has none.
        """
        function = lowering_of(self.target)
        if function is None:
            raise UnsupportedError("it has no lowering")
        self.value = self.wanted
        return function(self, *arguments, **named)

    def open(self, number: int) -> list[int]:
        """The open dimensions of an argument."""
        return open_dims(self.said[number]) if number < len(self.said) else []

    def count(self, number: int, dim: int) -> Any:
        """The real size of a dimension of an argument."""
        return self.sizes.real(self.said[number].shape[dim])

    def inside(self, number: int, array: Any, dims: Sequence[int] | None = None) -> Any:
        """Where an argument's elements are no padding, as booleans of the array's sizes.

        Args:
            array: the argument.
            dims: those to look at; by default all.
        """
        return within(array.shape, self.counts(number, dims))

    def counts(self, number: int, dims: Sequence[int] | None = None) -> dict[int, Any]:
        """The real sizes of an argument's open dimensions."""
        return {d: self.count(number, d) for d in self.open(number) if dims is None or d in dims}

    def fitted(self, array: Any) -> Any:
        """An array with the padding of the result, whose last dimensions it has (or 1)."""
        extents = self.shape[len(self.shape) - array.ndim :]
        return fit(array, [1 if size == 1 else extent for size, extent in zip(array.shape, extents, strict=True)])


def within(shape: Sequence[int], counts: dict[int, Any]) -> Any:
    """Where positions are before these sizes."""
    found = jnp.ones(tuple(shape), np.bool_)
    for dim, count in counts.items():
        found &= jax.lax.broadcasted_iota(np.int64, tuple(shape), dim) < count
    return found


def bounded(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators; ``aten.sum`` means each overload."""

    def register(rule: Rule) -> Rule:
        for name in names:
            if name in _RULES:
                raise ValueError(f"two rules of {name}")
            _RULES[name] = rule
        return rule

    return register


@cache
def _load() -> None:
    from hloforge.torch import bounded as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def rule_of(target: Any) -> Rule | None:
    """The rule of an operator; None if there is none."""
    _load()
    name = name_of(target)
    found = _RULES.get(name) or _RULES.get(name.rpartition(".")[0])
    if found is None and _is_elementwise(lowering_of(target)):
        return _RULES["elementwise"]
    return found


def _is_elementwise(lowering: Lowering | None) -> bool:
    return (lowering is not None and lowering.__module__.endswith((".elementwise", ".special"))) or bool(
        getattr(lowering, "is_pointwise", False)
    )


def made(call: OpenCall, results: Any, largest: int, count: Any) -> Any:
    """The results of an operator that makes an open size.

    Args:
        largest, count: of the first dimension of the first result.
    """
    first = call.result[0] if isinstance(call.result, list | tuple) else call.result
    assert isinstance(first, torch.Tensor)
    call.sizes.bind(first.shape[0], largest, count)
    return results
