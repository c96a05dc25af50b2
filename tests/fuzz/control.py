"""Steps of control flow."""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from tests.fuzz.maker import DEEPEST, Maker
from tests.fuzz.step import grow, step

_TURNS = (0, 1, 2, 3, 3, 4)


def _next(inner: Maker, value: Value) -> Value:
    """A value of a shape, most often one that the computation has made."""
    return inner.like(value.element_type.name, value.dims)


@step(3, nests=True)
def looped(m: Maker) -> Any:
    """A loop that counts; its body sees the values around it, and updates, passes on and swaps what it carries."""
    exact = m.chance(0.5)
    kept, m.limit = m.limit, 0 if exact else m.limit
    carried = [m.pick() for _ in range(m.random.choice((1, 1, 2, 3)))]
    turns = ops.constant(m.random.choice(_TURNS), "s32")
    if m.chance(0.4):
        turns = ops.clamp(ops.constant(0, "s32"), m.scalar("s32"), ops.constant(4, "s32"))
    outside = m.visible()
    m.limit = kept
    depth = 0 if exact else 1

    def body(*values: Value) -> list[Value]:
        counter, *carries = values
        inner = m.inner(
            [*(outside if m.chance(0.7) else []), (counter, 0), *((carry, depth) for carry in carries)], exact=exact
        )
        grow(inner, m.random.randint(1, 6))
        inner.limit = 0 if exact else DEEPEST
        made = [_next(inner, carry) if m.chance(0.85) else carry for carry in carries]
        return [counter + 1, *made]

    results = ops.while_(lambda counter, *_: counter < turns, body, [ops.constant(0, "s32"), *carried])
    m.taken = 0 if exact else DEEPEST
    return results


@step(2, nests=True)
def branched(m: Maker) -> Any:
    exact = m.chance(0.5)
    kept, m.limit = m.limit, 0
    is_index = m.chance(0.4)
    selector = m.scalar("s32" if is_index else "pred")
    m.limit = 0 if exact else kept
    like = [m.pick() for _ in range(m.random.choice((1, 2, 3)))]
    outside = m.visible()
    m.limit = kept

    def branch(value: Value) -> Any:
        inner = m.inner([*outside, *((leaf, 0 if exact else 1) for leaf in value)], exact=exact)
        grow(inner, m.random.randint(0, 4))
        inner.limit = 0 if exact else DEEPEST
        return tuple(_next(inner, leaf) for leaf in like)

    m.taken = 0 if exact else DEEPEST
    operand = ops.tuple(like)
    if not is_index:
        return ops.conditional(selector, operand, branch, operand, branch)
    count = m.random.randint(1, 4)
    return ops.conditional(selector, [branch] * count, [operand] * count)


@step(0.5)
def fenced(m: Maker) -> Any:
    return ops.optimization_barrier(ops.tuple([m.pick(), m.pick()]))
