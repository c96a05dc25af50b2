"""Recurrent layers as operators of PyTorch that AOTAutograd keeps: loops instead of their steps.

``hloforge::recurrent`` computes all layers. Where gradients are recorded it is ``hloforge::recurrent_layer`` for each
layer, which also returns what its gradient, ``hloforge::recurrent_layer_backward``, would compute again: the gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

_SETTINGS = "str kind, bool biases, int layers, bool bidirectional, bool batch_first"
_SCHEMA = f"recurrent(Tensor x, Tensor[] states, Tensor[] weights, {_SETTINGS}) -> Tensor[]"
# How many arrays along the sequence a direction keeps: an LSTM's gates and the cell before, a GRU's gates and the
# projected state of its candidate.
_KEPT = {"lstm": 5, "gru": 4, "rnn_tanh": 0, "rnn_relu": 0}


def _in_pytorch(
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    kind: str,
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """The outputs of a recurrent layer and its last states; in PyTorch, by its own function."""
    given = states if kind == "lstm" else states[0]
    function = getattr(torch, kind)
    return list(function(x, given, weights, biases, layers, 0.0, False, bidirectional, batch_first))


def _sizes(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str, biases: bool, layers: int, *others: bool
) -> list[Tensor]:
    bidirectional, batch_first = others
    # Sizes that have to be equal are then one symbol for PyTorch, or known.
    torch._check(x.shape[-1] == weights[0].shape[-1])
    for state in states:
        torch._check(state.shape[0] == layers * (2 if bidirectional else 1))
        torch._check(state.shape[1] == x.shape[0 if batch_first else 1])
    torch._check(states[0].shape[-1] == weights[1].shape[-1])
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    rows, columns = x.shape[:2]
    # The sequence is the major dimension in memory.
    output = x.new_empty(columns, rows, width).transpose(0, 1) if batch_first else x.new_empty(rows, columns, width)
    return [output, *(torch.empty_like(state) for state in states)]


def _recorded(keys: Any, x: Tensor, states: list[Tensor], weights: list[Tensor], *settings: Any) -> list[Tensor]:
    """``hloforge::recurrent`` where gradients may be recorded: one layer after the other, if they are."""
    if not (torch.is_grad_enabled() and any(each.requires_grad for each in (x, *states, *weights))):
        with torch._C._AutoDispatchBelowAutograd():
            found: list[Tensor] = _RECURRENT.redispatch(
                keys & torch._C._after_autograd_keyset, x, states, weights, *settings
            )
            return found
    kind, biases, layers, *others = settings

    def one(x: Tensor, first: list[Tensor], chosen: list[Tensor]) -> list[Tensor]:
        return list(_LAYER(x, first, chosen, kind, biases, *others))[: 1 + len(states)]

    return one_by_one(one, x, states, weights, layers)


def one_by_one(
    one: Callable[[Tensor, list[Tensor], list[Tensor]], list[Tensor]],
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    layers: int,
    between: Callable[[Tensor], Tensor] | None = None,
) -> list[Tensor]:
    """The output of the last layer, and the last states of all.

    Args:
        one: computes one layer: its output, and its last states.
        between: what happens to the outputs of all layers but the last.
    """
    if layers == 1:
        return one(x, states, weights)
    last = []
    each = len(weights) // layers
    for number in range(layers):
        first = [state.chunk(layers)[number] for state in states]
        x, *ended = one(x, first, weights[number * each : (number + 1) * each])
        last.append(ended)
        if between is not None and number < layers - 1:
            x = between(x)
    return [x, *(torch.cat(found) for found in zip(*last, strict=True))]


def _layer_in_pytorch(
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    kind: str,
    biases: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """The output of one layer, its last states, and for each direction what its gradient reads, along the sequence."""
    output, *last = _in_pytorch(x, states, weights, kind, biases, 1, bidirectional, batch_first)
    if not _KEPT[kind]:
        return [output, *last]
    directions = 2 if bidirectional else 1
    each = len(weights) // directions
    along = output.transpose(0, 1) if batch_first else output
    rows = x.transpose(0, 1) if batch_first else x
    kept = []
    for number, hidden in enumerate(along.chunk(directions, -1)):
        first = [state[number : number + 1] for state in states]
        flipped = (0,) if number else ()
        before = torch.cat([first[0], hidden.flip(flipped)[:-1]]).flip(flipped)
        own = weights[number * each : (number + 1) * each]
        given, held = rows @ own[0].mT, before @ own[1].mT
        if biases:
            given, held = given + own[2], held + own[3]
        kept += _kept_by_gru(given, held) if kind == "gru" else _kept_by_lstm(given + held, first[1], flipped)
    return [output, *last, *kept]


def _kept_by_gru(given: Tensor, held: Tensor) -> list[Tensor]:
    (reset, update, new), (reset_held, update_held, new_held) = given.chunk(3, -1), held.chunk(3, -1)
    reset = (reset + reset_held).sigmoid()
    return [reset, (update + update_held).sigmoid(), (new + reset * new_held).tanh(), new_held.clone()]


def _kept_by_lstm(gates: Tensor, cell: Tensor, flipped: tuple[int, ...]) -> list[Tensor]:
    enter, forget, new, leave = gates.chunk(4, -1)
    found = [enter.sigmoid(), forget.sigmoid(), new.tanh(), leave.sigmoid()]
    before = [cell[0]]
    for enter, forget, new in zip(*(each.flip(flipped) for each in found[:3]), strict=True):
        before.append(forget * before[-1] + enter * new)
    return [*found, torch.stack(before[:-1]).flip(flipped)]


def _layer_sizes(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str, biases: bool, *others: bool
) -> list[Tensor]:
    bidirectional, batch_first = others
    found = _sizes(x, states, weights, kind, biases, 1, bidirectional, batch_first)
    rows, columns = x.shape[:2]
    sizes = (columns, rows) if batch_first else (rows, columns)
    width = states[-1].shape[-1]
    return [*found, *(x.new_empty(*sizes, width) for _ in range(_KEPT[kind] * (2 if bidirectional else 1)))]


def _gradient_in_pytorch(
    gradients: list[Tensor],
    x: Tensor,
    output: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    kept: list[Tensor],
    kind: str,
    biases: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """The gradients of x, the states and the weights; in PyTorch, by its own function, which keeps what it reads."""
    with _recording():
        given = [each.detach().requires_grad_() for each in (x, *states, *weights)]
        first, own = given[1 : 1 + len(states)], given[1 + len(states) :]
        outputs = _in_pytorch(given[0], first, own, kind, biases, 1, bidirectional, batch_first)
        found = torch.autograd.grad(outputs, given, gradients, allow_unused=True, materialize_grads=True)
    return [each.clone() for each in found]


@contextmanager
def _recording() -> Iterator[None]:
    """Gradients are recorded, though an operator is being computed, which hides what records them."""
    core = torch._C
    autograd = core.DispatchKeySet(core.DispatchKey.AutogradFunctionality)
    hidden = core._dispatch_tls_local_exclude_set() - autograd
    with core._ForceDispatchKeyGuard(core._dispatch_tls_local_include_set(), hidden), torch.enable_grad():
        yield


def _gradient_sizes(
    gradients: list[Tensor], x: Tensor, output: Tensor, states: list[Tensor], weights: list[Tensor], *others: Any
) -> list[Tensor]:
    return [torch.empty_like(each) for each in (x, *states, *weights)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, states, weights, *ctx.settings = inputs
    ctx.counts = len(states), len(weights)
    ended = 1 + len(states)
    kept = output[ended:]
    ctx.mark_non_differentiable(*kept)
    ctx.set_materialize_grads(False)
    ctx.likeness = [(each.shape, each.dtype) for each in output[:ended]]
    ctx.save_for_backward(x, output[0], *states, *weights, *kept)


def _backward(ctx: Any, gradients: list[Any]) -> tuple[Any, ...]:
    states, weights = ctx.counts
    x, output, *saved = ctx.saved_tensors
    given = [
        x.new_zeros(shape, dtype=dtype) if each is None else each
        for each, (shape, dtype) in zip(gradients, ctx.likeness, strict=False)
    ]
    first, chosen, kept = saved[:states], saved[states : states + weights], saved[states + weights :]
    found = _GRADIENT(given, x, output, first, chosen, kept, *ctx.settings)
    return (found[0], found[1 : 1 + states], found[1 + states :], *[None] * len(ctx.settings))


_LIBRARY = torch.library.Library("hloforge", "FRAGMENT")
_LIBRARY.define(_SCHEMA)
_LIBRARY.impl("recurrent", _in_pytorch, "CompositeExplicitAutograd")
_LIBRARY.impl("recurrent", _recorded, "Autograd", with_keyset=True)
_RECURRENT: Any = torch.ops.hloforge.recurrent.default
torch.library.register_fake("hloforge::recurrent", _sizes, lib=_LIBRARY)
_LAYER: Any = torch.library.custom_op("hloforge::recurrent_layer", _layer_in_pytorch, mutates_args=())
_LAYER.register_fake(_layer_sizes)
_LAYER.register_autograd(_backward, setup_context=_keep)
_GRADIENT: Any = torch.library.custom_op("hloforge::recurrent_layer_backward", _gradient_in_pytorch, mutates_args=())
_GRADIENT.register_fake(_gradient_sizes)
