"""An operator for recurrent layers that AOTAutograd keeps, with its gradient: a loop instead of its steps.

Dynamo gives ``torch.lstm`` and its like, whose decompositions write each step of the sequence out. ``keep_recurrent``
puts ``hloforge::recurrent`` in their places.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional

from hloforge.dialect.errors import UnsupportedError

_KINDS = {torch.lstm: "lstm", torch.gru: "gru", torch.rnn_tanh: "rnn_tanh", torch.rnn_relu: "rnn_relu"}


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
    width = states[0].shape[-1] * (2 if others[0] else 1)
    return [x.new_empty(*x.shape[:2], width), *(torch.empty_like(state) for state in states)]


def _refused(
    gradients: list[Tensor],
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    kind: str,
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """The gradients of x, the states and the weights; only compiled programs compute them."""
    raise UnsupportedError("the gradient of a recurrent layer runs in compiled programs only")


def _gradient_sizes(gradients: list[Tensor], x: Tensor, states: Any, weights: Any, *others: Any) -> list[Tensor]:
    return [torch.empty_like(each) for each in (x, *states, *weights)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, states, weights, *ctx.settings = inputs
    ctx.counts = len(states), len(weights)
    ctx.save_for_backward(x, *states, *weights, *output)


def _backward(ctx: Any, gradients: list[Any]) -> tuple[Any, ...]:
    states, weights = ctx.counts
    x, *saved = ctx.saved_tensors
    outputs = saved[states + weights :]
    given = [
        torch.zeros_like(output) if each is None else each for each, output in zip(gradients, outputs, strict=True)
    ]
    found = _GRADIENT(given, x, saved[:states], saved[states : states + weights], *ctx.settings)
    return (found[0], found[1 : 1 + states], found[1 + states :], *[None] * len(ctx.settings))


_RECURRENT: Any = torch.library.custom_op("hloforge::recurrent", _in_pytorch, mutates_args=())
_RECURRENT.register_fake(_sizes)
_RECURRENT.register_autograd(_backward, setup_context=_keep)
_GRADIENT: Any = torch.library.custom_op("hloforge::recurrent_backward", _refused, mutates_args=())
_GRADIENT.register_fake(_gradient_sizes)


def keep_recurrent(graph: fx.GraphModule) -> None:
    """Put ``hloforge::recurrent`` where a graph of Dynamo's calls recurrent layers, if it computes the same."""
    for node in list(graph.graph.nodes):
        settings = _settings(node) if node.op == "call_function" and not node.kwargs else None
        if settings is None:
            continue
        states = node.args[1] if settings[1] == "lstm" else [node.args[1]]
        arguments = (node.args[0], list(states), list(node.args[2]), *settings)
        # AOTAutograd traces what the function calls.
        with graph.graph.inserting_before(node):
            own = graph.graph.call_function(_with_dropout, arguments)
        own.meta = {name: value for name, value in node.meta.items() if name in ("stack_trace", "nn_module_stack")}
        node.replace_all_uses_with(own)
        graph.graph.erase_node(node)
    graph.recompile()


def _with_dropout(
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    dropout: float,
    kind: str,
    biases: bool,
    layers: int,
    *others: bool,
) -> list[Tensor]:
    """A recurrent layer with dropout between its layers: one operator if there is none, else one for each layer."""
    recurrent = torch.ops.hloforge.recurrent.default
    if not dropout:
        return list(recurrent(x, states, weights, kind, biases, layers, *others))
    last = []
    for number in range(layers):
        first = [state.chunk(layers)[number] for state in states]
        each = len(weights) // layers
        chosen = weights[number * each : (number + 1) * each]
        x, *ended = recurrent(x, first, chosen, kind, biases, 1, *others)
        last.append(ended)
        if number < layers - 1:
            x = functional.dropout(x, dropout)
    return [x, *(torch.cat(found) for found in zip(*last, strict=True))]


def _settings(node: fx.Node) -> tuple[Any, ...] | None:
    """Dropout, kind, biases, layers, directions and order of a call; None for none and packed sequences."""
    kind = _KINDS.get(node.target)
    if kind is None or len(node.args) != 9 or not isinstance(node.args[2], list | tuple):
        return None
    biases, layers, dropout, train, bidirectional, batch_first = node.args[3:]
    if not isinstance(biases, bool):
        return None
    return dropout if train else 0.0, kind, biases, layers, bidirectional, batch_first
