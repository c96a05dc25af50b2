"""The turns of loops that keep the values of all, for gradients of ``while_loop``, from inside of graphs to the caller.

A program has room for some turns; its caller has to know whether a loop made more. A loop within a branch, a map or
another loop tells it through what is around it, which carries the most turns along with its own values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
import torch
from torch import fx

from hloforge.torch.registry import Call

# The most turns, or nothing where no loop keeps values.
Turns: TypeAlias = tuple[Any, ...]


def keep_turns(*graphs: Any) -> bool:
    """Whether a loop in some graphs, or in the graphs that they refer to, keeps the values of its turns."""
    keeping = torch.ops.higher_order.while_loop_stack_output
    parts = [part for graph in graphs for part in graph.modules() if isinstance(part, fx.GraphModule)]
    return any(node.target is keeping for part in parts for node in part.graph.nodes)


def no_turns(keeps: bool) -> Turns:
    """What a loop carries before its first turn."""
    return (jnp.zeros((), np.int64),) if keeps else ()


def run(call: Call, graph: Any, arguments: Sequence[Any], keeps: bool) -> tuple[tuple[Any, ...], Turns]:
    """What a graph within the graph returns, and the most turns of its loops."""
    if not keeps:
        return tuple(call.run(graph, arguments)), ()
    found, turns = call.counted(graph, arguments)
    return tuple(found), (turns,)


def most(one: Turns, other: Turns) -> Turns:
    """Of two runs of a graph."""
    return tuple(map(jnp.maximum, one, other))


def note(call: Call, turns: Turns) -> None:
    """Say to whoever calls the program how many there were."""
    for each in turns:
        call.note_turns(jnp.max(each, initial=0))
