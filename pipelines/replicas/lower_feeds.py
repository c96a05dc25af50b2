"""``lower-feeds``: infeed, outfeed, send and recv as calls of functions of the host.

Before::

    %x, %t1 = "stablehlo.infeed"(%t0) : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    %t2 = "stablehlo.send"(%x, %t1) {channel_handle = #stablehlo.channel_handle<handle = 7, type = 2>, ...}

After::

    %x, %t1 = stablehlo.custom_call @hloforge.infeed(%t0) {backend_config = {...}, has_side_effect = true}
    %t2 = stablehlo.custom_call @hloforge.send(%x, %t1) {backend_config = {channel = 7, ...}, has_side_effect = true}

Tokens stay, for ``legalize-host-calls`` to take; calls are made in the order in which they are. A ``send`` that does
not need what a ``recv`` before it in the block brings moves before it: XLA begins both and awaits them later, and
StableHLO has one operation for begin and end, so that two devices that first receive and then send would wait for each
other. A transfer that names ``source_target_pairs`` is one between devices of the grid. Any other goes through the
channel of the session, where the host or another program has its other side.

Source: XLA "Infeed", "Outfeed", "Send", "Recv", "Scheduling of channel instructions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import i64, i64_matrix, text
from hloforge.dialect.idioms import zeros
from hloforge.dialect.marks import DEVICE, INFEED, OUTFEED, RECV, SEND
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import defining_op, operations, string_attribute
from hloforge.dialect.regions import read_values
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.replicas.grid import Grid, channel_of, grid_of, is_host_transfer, transfers_of
from hloforge.pipelines.replicas.lower_collectives import described, host_call
from hloforge.pipelines.replicas.names import NOBODY

_TARGETS = {"stablehlo.infeed": INFEED, "stablehlo.outfeed": OUTFEED, "stablehlo.send": SEND, "stablehlo.recv": RECV}
_CONFIGURATIONS = {"stablehlo.infeed": "infeed_config", "stablehlo.outfeed": "outfeed_config"}
_EFFECTS = frozenset({*_TARGETS, "stablehlo.custom_call", "stablehlo.rng"})


@register
@dataclass(frozen=True)
class LowerFeeds(Pass):
    """Replace infeed, outfeed, send and recv by host calls.

    Raises (on run):
        UnsupportedError: a transfer names devices that are not in the grid of the module.
    """

    name: ClassVar[str] = "lower-feeds"
    removes: ClassVar[frozenset[str]] = frozenset(_TARGETS)
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.HOST_CALLS})

    def run(self, module: ir.Module) -> None:
        grid = grid_of(module)
        with in_context(module):
            for recv in operations(module, {"stablehlo.recv"}):
                _send_before(recv)
            for op in operations(module, _TARGETS):
                with ir.InsertionPoint(op), op.location:
                    replace(op, _lowered(op, grid))


def _lowered(op: AnyOp, grid: Grid) -> list[Value]:
    what = _described(op, grid)
    operands = [Value(operand) for operand in op.operands]
    if op.name == "stablehlo.recv" and "sources" in what:
        # What a device has that nobody sends to.
        received = Value(op.results[0])
        operands.insert(0, zeros(received.element_type, received.dims))
    return host_call(_TARGETS[op.name], operands, [result.type for result in op.results], **what)


def _described(op: AnyOp, grid: Grid) -> dict[str, Any]:
    what = described(op, grid)
    if op.name in _CONFIGURATIONS:
        what["configuration"] = text(string_attribute(op, _CONFIGURATIONS[op.name]))
    elif "source_target_pairs" in op.attributes and not is_host_transfer(op):
        sources = transfers_of(op, grid)
        rows = [sources.get(device, NOBODY) for device in range(grid.devices)]
        what["sources"] = i64_matrix([rows], len(rows))
    # In a folded program each device has its own.
    what["device"] = op.attributes[DEVICE] if DEVICE in op.attributes else i64(NOBODY)
    return what


def _send_before(recv: Any) -> None:
    """Move the sends after a recv before it, with what they need, if they do not need what it brings."""
    every = [op.operation for op in recv.block.operations]
    later = every[every.index(recv) + 1 :]
    stuck: set[int] = set()
    for send in [op for op in later if op.name == "stablehlo.send"]:
        needed = _needed(send, set(later))
        moved = [op for op in later if op in needed]
        # What one channel carries keeps its order, and other effects theirs.
        if recv in needed or channel_of(send) in stuck or any(_has_effects(op) for op in moved if op != send):
            stuck.add(channel_of(send))
            continue
        for op in moved:
            op.move_before(recv)
            later.remove(op)


def _has_effects(op: AnyOp) -> bool:
    return op.name in _EFFECTS or bool(operations(op, _EFFECTS))


def _needed(op: AnyOp, later: set[Any]) -> set[Any]:
    """An operation with those after the recv, and the recv itself, that it depends on."""
    found, left = {op}, [op]
    while left:
        for value in read_values(left.pop()):
            owner = defining_op(value)
            if owner is None or owner in found:
                continue
            found.add(owner)
            if owner in later:
                left.append(owner)
    return found
