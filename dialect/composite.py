"""``@composite``: a function of Values whose calls become named composite operations.

::

    @composite("my.gelu", version=1)
    def gelu(x, *, approximate=True):
        ...

    y = gelu(x, approximate=False)

A target that knows ``my.gelu`` takes the operation as it is; any other one takes the function's body, and so does a
program that is run by a reference engine. Source: XLA "CompositeCall", StableHLO specification "composite".
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import user_location
from hloforge.dialect.ops.program import composite_call
from hloforge.dialect.values import Results, Value


def composite(
    name: str, *, version: int = 0, **attributes: Any
) -> Callable[[Callable[..., Results]], Callable[..., Value]]:
    """Decorate a function so that its calls become ``composite_call``, with itself as the decomposition.

    Positional parameters are the operands. Keyword-only ones configure the operation: their values, defaults included,
    become attributes beside those given here.

    Args:
        name: of the operation, with the name of its library: ``my.gelu``.
        version: counts the changes of its meaning.
        attributes: as of ``composite_call``, the same in all calls.

    Raises:
        TypeError: a parameter has the name of an attribute given here.
        OperationError (when called): as of ``composite_call``, or the function has no such parameters.
    """

    def decorate(function: Callable[..., Results]) -> Callable[..., Value]:
        signature = inspect.signature(function)
        defaults = {
            parameter.name: parameter.default
            for parameter in signature.parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
        }
        taken = attributes.keys() & signature.parameters.keys()
        if taken:
            raise TypeError(f"{name}: {', '.join(sorted(taken))} is a parameter of {function.__name__} as well")
        decompositions = _Decompositions(function)

        @functools.wraps(function)
        def call(*operands: Results, **given: Any) -> Value:
            try:
                signature.bind(*operands, **given)
            except TypeError as error:
                raise OperationError(f"{name}: {error}", location=user_location()) from None
            configuration = defaults | given
            decomposition = decompositions.configured(configuration)
            return composite_call(decomposition, operands, name, {**attributes, **configuration}, version)

        return call

    return decorate


class _Decompositions:
    """The function with its keywords bound: one object for equal ones, so that a module holds its body once."""

    def __init__(self, function: Callable[..., Results]) -> None:
        self.function = function
        self.known: dict[Any, Callable[..., Results]] = {}

    def configured(self, keywords: dict[str, Any]) -> Callable[..., Results]:
        if not keywords:
            return self.function
        # The types tell 1, 1.0 and True apart.
        key = tuple((name, type(value), value) for name, value in sorted(keywords.items()))
        try:
            hash(key)
        except TypeError:
            return self._bound(keywords)
        return self.known.setdefault(key, self._bound(keywords))

    def _bound(self, keywords: dict[str, Any]) -> Callable[..., Results]:
        bound = functools.partial(self.function, **keywords)
        bound.__name__ = self.function.__name__  # type: ignore[attr-defined]
        return bound
