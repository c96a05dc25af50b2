"""Recurrent layers as loops over the sequence, where PyTorch's decompositions write each step out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from hloforge.torch.operators.random import native_dropout
from hloforge.torch.registry import Call, draws_where, lowers

# One step: from the projected input, the projected hidden state and the states to the new states, and to what the
# gradient of the step reads (recurrent_gradients.py).
_Step = Callable[[Any, Any, tuple[Any, ...]], tuple[tuple[Any, ...], tuple[Any, ...]]]


def _lstm(given: Any, held: Any, states: tuple[Any, ...]) -> Any:
    enter, forget, new, leave = jnp.split(given + held, 4, -1)
    enter, forget, leave = jax.nn.sigmoid(enter), jax.nn.sigmoid(forget), jax.nn.sigmoid(leave)
    new, before = jnp.tanh(new), states[1]
    cell = forget * before + enter * new
    return (leave * jnp.tanh(cell), cell), (enter, forget, new, leave, before)


def _gru(given: Any, held: Any, states: tuple[Any, ...]) -> Any:
    reset, update, new = jnp.split(given, 3, -1)
    reset_held, update_held, new_held = jnp.split(held, 3, -1)
    share, reset = jax.nn.sigmoid(update + update_held), jax.nn.sigmoid(reset + reset_held)
    candidate = jnp.tanh(new + reset * new_held)
    return ((1 - share) * candidate + share * states[0],), (reset, share, candidate, new_held)


def _rnn_tanh(given: Any, held: Any, states: tuple[Any, ...]) -> Any:
    return (jnp.tanh(given + held),), ()


def _rnn_relu(given: Any, held: Any, states: tuple[Any, ...]) -> Any:
    return (jax.nn.relu(given + held),), ()


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
    keep: bool = False,
) -> list[Any]:
    """What ``torch.lstm``, ``torch.gru``, ``torch.rnn_tanh`` and ``torch.rnn_relu`` compute.

    Args:
        x: [length, batch, inputs], or [batch, length, inputs] with ``batch_first``.
        states: hidden states [layers * directions, batch, width]; of an LSTM then its cells.
        weights: for each layer and direction those of the input and of the state, then their biases if there are any,
            then that of an LSTM's projection if there is one.
        dropped: the dropout between layers.
        length: of the sequence, if what is behind it is padding.
        keep: whether to return what the gradient reads.

    Returns:
        the last layer's hidden states along the sequence, and the last states; then, if it is kept, what each layer and
        direction keeps, [length, batch, width] each.
    """
    directions = 2 if bidirectional else 1
    each = len(weights) // (layers * directions)
    sequence = x.swapaxes(0, 1) if batch_first else x
    last: list[tuple[Any, ...]] = []
    kept: list[Any] = []
    for layer in range(layers):
        outputs = []
        for number in range(layer * directions, (layer + 1) * directions):
            first = tuple(state[number] for state in states)
            chosen = weights[number * each : (number + 1) * each]
            backward = number % directions == 1
            step = _STEPS[kind]
            ended, output, own = _along(step, sequence, first, chosen, biases, length, reverse=backward, keep=keep)
            last.append(ended)
            kept += own
            outputs.append(output)
        sequence = jnp.concatenate(outputs, -1)
        if dropped is not None and layer < layers - 1:
            sequence = dropped(sequence)
    result = sequence.swapaxes(0, 1) if batch_first else sequence
    found = [result, *(jnp.stack(each) for each in zip(*last, strict=True))]
    return [*found, *kept] if keep else found


def _along(
    step: _Step,
    sequence: Any,
    first: tuple[Any, ...],
    weights: Sequence[Any],
    biases: bool,
    length: Any,
    *,
    reverse: bool,
    keep: bool,
) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
    """The last states, the hidden state at each position of the sequence, and what each step keeps."""
    given = sequence @ weights[0].T
    bias = 0
    if biases:
        given, bias = given + weights[2], weights[3]
    projections = weights[4 if biases else 2 :]

    def turn(states: tuple[Any, ...], own: Any) -> Any:
        (hidden, *others), kept = step(own, states[0] @ weights[1].T + bias, states)
        for projection in projections:
            hidden = hidden @ projection.T
        return (hidden, *others), (hidden, kept if keep else ())

    def turn_inside(states: tuple[Any, ...], row: Any) -> Any:
        place, own = row
        new, found = turn(states, own)
        return tuple(jnp.where(place < length, n, s) for n, s in zip(new, states, strict=True)), found

    if length is None:
        ended, (hidden, kept) = jax.lax.scan(turn, first, given, reverse=reverse)
    else:
        rows = (jnp.arange(given.shape[0]), given)
        ended, (hidden, kept) = jax.lax.scan(turn_inside, first, rows, reverse=reverse)
    return ended, hidden, kept


@lowers("hloforge.recurrent")
def recurrent(call: Call, *arguments: Any) -> list[Any]:
    return layers_of(*arguments)


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
