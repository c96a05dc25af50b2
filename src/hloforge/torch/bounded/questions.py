"""Questions that Python asks of sizes that depend on elements, answered while a module is exported.

``if boxes.numel() == 0: return empty`` has no answer before the elements are known, and ``torch.export`` refuses it.
Code of this kind takes a shorter way for special sizes to the same results, so the answer for many elements is right
for all. That is an assumption, which the caller makes and sees.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv, SymT, symbol_is_type
from torch.utils._sympy.numbers import int_oo

# More elements than any special case is for, where nothing bounds a size.
_MANY = 1 << 20


@contextmanager
def answered(is_wanted: bool = True) -> Iterator[list[str]]:
    """Answer such questions as for many elements; gives what was answered.

    ``len(boxes)`` is ``boxes.shape[0]`` meanwhile: Python's own would want a number.

    Args:
        is_wanted: else nothing is answered.
    """
    answers: list[str] = []
    if not is_wanted:
        yield answers
        return
    asked: Any = ShapeEnv._evaluate_expr

    def answer(self: Any, expression: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return asked(self, expression, *arguments, **named)
        except GuardOnDataDependentSymNode:
            found = _for_many(self, expression)
            if found is None:
                raise
            text = f"{expression} is {found}"
            if text not in answers:
                answers.append(text)
            return found

    counted: Any = builtins.len

    def length(counts: Any) -> Any:
        return counts.shape[0] if isinstance(counts, torch.Tensor) and counts.dim() else counted(counts)

    ShapeEnv._evaluate_expr = answer
    builtins.len = length
    try:
        yield answers
    finally:
        ShapeEnv._evaluate_expr = asked
        builtins.len = counted


def _for_many(environment: Any, expression: Any) -> Any:
    """What an expression is if each size is as large as it may be; None if it asks of something else than sizes.

    Nothing is equal by chance: code that asks for equal sizes has a special case for them.
    """
    expression = expression.replace(sympy.Eq, lambda *_: sympy.false).replace(sympy.Ne, lambda *_: sympy.true)
    sizes = {}
    for symbol in expression.free_symbols:
        if not symbol_is_type(symbol, SymT.UNBACKED_INT):
            return None
        upper = environment.var_to_range[symbol].upper
        sizes[symbol] = sympy.Integer(_MANY if upper is int_oo or upper > _MANY else int(upper))
    found = expression.xreplace(sizes)
    # A number that Python wants, as range() does, would fix a size.
    return found if found in (sympy.true, sympy.false) else None
