"""Recurrent layers as loops over the sequence, where PyTorch's decompositions write each step out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from hloforge.torch.operators.random import native_dropout
from hloforge.torch.registry import Call, draws_where, lowers

# One step: from the projected input, the projected hidden state and the states to the new states.
_Step = Callable[[Any, Any, tuple[Any, ...]], tuple[Any, ...]]


def _lstm(given: Any, kept: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    enter, forget, new, leave = jnp.split(given + kept, 4, -1)
    cell = jax.nn.sigmoid(forget) * states[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell


def _gru(given: Any, kept: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    reset, update, new = jnp.split(given, 3, -1)
    reset_kept, update_kept, new_kept = jnp.split(kept, 3, -1)
    share = jax.nn.sigmoid(update + update_kept)
    candidate = jnp.tanh(new + jax.nn.sigmoid(reset + reset_kept) * new_kept)
    return ((1 - share) * candidate + share * states[0],)


def _rnn_tanh(given: Any, kept: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    return (jnp.tanh(given + kept),)


def _rnn_relu(given: Any, kept: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    return (jax.nn.relu(given + kept),)


_STEPS: dict[str, _Step] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn_tanh, "rnn_relu": _rnn_relu}


def layers_of(
    x: Any,
    states: Sequence[Any],
    weights: Sequence[Any],
    kind: str,
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    dropped: Callable[[Any], Any] | None = None,
    *,
    length: Any = None,
) -> list[Any]:
    """What ``torch.lstm``, ``torch.gru``, ``torch.rnn_tanh`` and ``torch.rnn_relu`` compute.

    Args:
        x: [length, batch, inputs], or [batch, length, inputs] with ``batch_first``.
        states: hidden states [layers * directions, batch, width]; of an LSTM then its cells.
        weights: for each layer and direction those of the input and of the state, then their biases if there are any,
            then that of an LSTM's projection if there is one.
        dropped: the dropout between layers.
        length: of the sequence, if what is behind it is padding.

    Returns:
        the last layer's hidden states along the sequence, and the last states.
    """
    directions = 2 if bidirectional else 1
    each = len(weights) // (layers * directions)
    sequence = x.swapaxes(0, 1) if batch_first else x
    last: list[tuple[Any, ...]] = []
    for layer in range(layers):
        outputs = []
        for number in range(layer * directions, (layer + 1) * directions):
            first = tuple(state[number] for state in states)
            chosen = weights[number * each : (number + 1) * each]
            backward = number % directions == 1
            ended, output = _along(_STEPS[kind], sequence, first, chosen, biases, length, reverse=backward)
            last.append(ended)
            outputs.append(output)
        sequence = jnp.concatenate(outputs, -1)
        if dropped is not None and layer < layers - 1:
            sequence = dropped(sequence)
    result = sequence.swapaxes(0, 1) if batch_first else sequence
    return [result, *(jnp.stack(found) for found in zip(*last, strict=True))]


def _along(
    step: _Step,
    sequence: Any,
    first: tuple[Any, ...],
    weights: Sequence[Any],
    biases: bool,
    length: Any,
    *,
    reverse: bool,
) -> Any:
    """The last states and the hidden state at each position of the sequence."""
    given = sequence @ weights[0].T
    bias = 0
    if biases:
        given, bias = given + weights[2], weights[3]
    projections = weights[4 if biases else 2 :]
    if projections:
        return _scan(step, first, given, weights[1], bias, projections, length, reverse=reverse)
    return _summed_apart(partial(_scan, step, length=length, reverse=reverse), reverse)(
        first, given, weights[1], jnp.broadcast_to(bias, given.shape[-1:])
    )


def _scan(
    step: _Step,
    first: tuple[Any, ...],
    given: Any,
    weights: Any,
    bias: Any,
    projections: Sequence[Any] = (),
    length: Any = None,
    added: Any = None,
    *,
    reverse: bool,
) -> Any:
    """``_along`` of a projected input.

    Args:
        added: to each position's projected hidden state, if it is given.
    """

    def turn(states: tuple[Any, ...], row: Any) -> Any:
        own, more = row
        kept = states[0] @ weights.T + bias
        hidden, *others = step(own, kept if added is None else kept + more, states)
        for projection in projections:
            hidden = hidden @ projection.T
        return (hidden, *others), hidden

    def turn_inside(states: tuple[Any, ...], row: Any) -> Any:
        place, own = row
        new, hidden = turn(states, own)
        return tuple(jnp.where(place < length, n, s) for n, s in zip(new, states, strict=True)), hidden

    rows = (given, added)
    if length is not None:
        return jax.lax.scan(turn_inside, first, (jnp.arange(given.shape[0]), rows), reverse=reverse)
    return jax.lax.scan(turn, first, rows, reverse=reverse)


def _summed_apart(scan: Callable[..., Any], reverse: bool) -> Callable[..., Any]:
    """A scan of states, an input, weights and a bias whose gradients of both are found after its loop.

    The gradient of what is added to each projected hidden state is an array along the sequence, and that of the
    weights one product of it and the states. Scan's own gradient adds to all weights at each position.
    """

    @jax.custom_vjp
    def along(first: tuple[Any, ...], given: Any, weights: Any, bias: Any) -> Any:
        return scan(first, given, weights, bias)

    def forward(first: tuple[Any, ...], given: Any, weights: Any, bias: Any) -> Any:
        def run(first: tuple[Any, ...], given: Any, added: Any) -> Any:
            return scan(first, given, weights, bias, added=added)

        (ended, hidden), backward = jax.vjp(run, first, given, jnp.zeros_like(given))
        start = first[0][None]
        before = jnp.concatenate([hidden[1:], start] if reverse else [start, hidden[:-1]])
        return (ended, hidden), (before, backward)

    def gradient(kept: Any, found: Any) -> Any:
        before, backward = kept
        of_first, of_given, of_added = backward(found)
        return of_first, of_given, jnp.einsum("...g,...h->gh", of_added, before), of_added.sum((0, 1))

    along.defvjp(forward, gradient)
    return along


@lowers("hloforge.recurrent")
def recurrent(call: Call, *arguments: Any) -> list[Any]:
    return layers_of(*arguments)


@lowers("hloforge.recurrent_backward")
def recurrent_backward(
    call: Call, gradients: Sequence[Any], x: Any, states: Any, weights: Any, *settings: Any, length: Any = None
) -> list[Any]:
    """Computed from the arguments: no state along the sequence is kept from the forward pass."""

    def forward(*leaves: Any) -> list[Any]:
        return layers_of(*leaves, *settings, length=length)

    _, backward = jax.vjp(forward, x, list(states), list(weights))
    of_x, of_states, of_weights = backward(list(gradients))
    return [of_x, *of_states, *of_weights]


def _of_aten(kind: str) -> Callable[..., Any]:
    def lower(
        call: Call,
        x: Any,
        states: Any,
        weights: Sequence[Any],
        biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> list[Any]:
        given = states if kind == "lstm" else (states,)
        dropped = (lambda rows: native_dropout(call, rows, dropout)[0]) if dropout and train else None
        return layers_of(x, given, weights, kind, biases, layers, bidirectional, batch_first, dropped)

    return draws_where(_has_dropout)(lower)


def _has_dropout(arguments: tuple[Any, ...]) -> bool:
    return bool(arguments[5] and arguments[6])


for _kind in _STEPS:
    lowers(f"aten.{_kind}.input")(_of_aten(_kind))
