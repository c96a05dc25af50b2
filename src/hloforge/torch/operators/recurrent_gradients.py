"""Gradients of recurrent layers: one loop against the direction of theirs, and products of whole sequences after it.

The loop reads what the forward pass has kept and multiplies by the weights of the hidden state alone. What belongs to
weights, biases and the input is found of the gates' gradients along the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from hloforge.torch.operators.recurrent import layers_of
from hloforge.torch.registry import Call, lowers

# The gradient of one step, from those of its new states, what it has kept, and its hidden state before and after: of
# the projected hidden state [batch, gates], of the last gate of the projected input if it differs there (None if it
# does not), and of the states apart from the product (None for 0).
_Gradient = Callable[[tuple[Any, ...], tuple[Any, ...], Any, Any], tuple[Any, Any, tuple[Any, ...]]]


def _lstm(of_states: tuple[Any, ...], kept: tuple[Any, ...], before: Any, hidden: Any) -> Any:
    of_hidden, of_cell = of_states
    enter, forget, new, leave, cell_before = kept
    curved = jnp.tanh(forget * cell_before + enter * new)
    of_cell = of_cell + of_hidden * leave * (1 - curved * curved)
    gates = (
        of_cell * new * enter * (1 - enter),
        of_cell * cell_before * forget * (1 - forget),
        of_cell * enter * (1 - new * new),
        of_hidden * curved * leave * (1 - leave),
    )
    return jnp.concatenate(gates, -1), None, (None, of_cell * forget)


def _gru(of_states: tuple[Any, ...], kept: tuple[Any, ...], before: Any, hidden: Any) -> Any:
    (of_hidden,) = of_states
    reset, share, candidate, new_held = kept
    of_new = of_hidden * (1 - share) * (1 - candidate * candidate)
    gates = (
        of_new * new_held * reset * (1 - reset),
        of_hidden * (before - candidate) * share * (1 - share),
        of_new * reset,
    )
    return jnp.concatenate(gates, -1), of_new, (of_hidden * share,)


def _rnn_tanh(of_states: tuple[Any, ...], kept: tuple[Any, ...], before: Any, hidden: Any) -> Any:
    return of_states[0] * (1 - hidden * hidden), None, (None,)


def _rnn_relu(of_states: tuple[Any, ...], kept: tuple[Any, ...], before: Any, hidden: Any) -> Any:
    return jnp.where(hidden > 0, of_states[0], jnp.zeros_like(hidden)), None, (None,)


_GRADIENTS: dict[str, _Gradient] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn_tanh, "rnn_relu": _rnn_relu}


@lowers("hloforge.recurrent_layer")
def layer(
    call: Call,
    x: Any,
    states: Any,
    weights: Any,
    kind: str,
    biases: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    length: Any = None,
) -> list[Any]:
    return layers_of(x, states, weights, kind, biases, 1, bidirectional, batch_first, length=length, keep=True)


@lowers("hloforge.recurrent_layer_backward")
def gradient(
    call: Call,
    gradients: Sequence[Any],
    x: Any,
    output: Any,
    states: Sequence[Any],
    weights: Sequence[Any],
    kept: Sequence[Any],
    kind: str,
    biases: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    length: Any = None,
) -> list[Any]:
    directions = 2 if bidirectional else 1
    sequence, hidden, of_hidden = (each.swapaxes(0, 1) if batch_first else each for each in (x, output, gradients[0]))
    each, own = len(weights) // directions, len(kept) // directions
    of_x: Any = 0
    of_weights: list[Any] = []
    of_states = []
    for number in range(directions):
        width = hidden.shape[-1] // directions
        part = slice(number * width, (number + 1) * width)
        of_given, of_first, found = _against(
            _GRADIENTS[kind],
            (of_hidden[..., part], *(ended[number] for ended in gradients[1:])),
            sequence,
            hidden[..., part],
            states[0][number],
            weights[number * each : (number + 1) * each],
            kept[number * own : (number + 1) * own],
            biases,
            length,
            reverse=number == 1,
        )
        of_x = of_x + of_given
        of_weights += found
        of_states.append(of_first)
    of_x = of_x.swapaxes(0, 1) if batch_first else of_x
    return [of_x, *(jnp.stack(found) for found in zip(*of_states, strict=True)), *of_weights]


def _against(
    gradient: _Gradient,
    given: tuple[Any, ...],
    sequence: Any,
    hidden: Any,
    first: Any,
    weights: Sequence[Any],
    kept: Sequence[Any],
    biases: bool,
    length: Any,
    *,
    reverse: bool,
) -> tuple[Any, tuple[Any, ...], list[Any]]:
    """The gradients of a direction's input along the sequence, of its first states, and of its weights.

    Args:
        given: the gradients of the hidden state along the sequence, and of the last states.
        sequence, hidden: input and hidden state along the sequence.
        first: the first hidden state.
        reverse: whether the direction itself goes from the end to the beginning.
    """
    of_sequence, *of_last = given
    projections = weights[4 if biases else 2 :]
    start = first[None]
    before = jnp.concatenate([hidden[1:], start] if reverse else [start, hidden[:-1]])
    places = None if length is None else jnp.arange(sequence.shape[0])
    if places is not None and reverse:
        before = jnp.where((places == length - 1)[:, None, None], start, before)

    def turn(of_states: tuple[Any, ...], row: Any) -> Any:
        place, of_output, before, hidden, kept = row
        of_hidden, *others = of_states
        of_hidden = of_hidden + of_output
        of_raw = of_hidden
        for projection in projections:
            of_raw = of_hidden @ projection
        gates, last_gate, direct = gradient((of_raw, *others), kept, before, hidden)
        of_before = gates @ weights[1]
        of_before = of_before if direct[0] is None else of_before + direct[0]
        new: tuple[Any, ...] = (of_before, *direct[1:])
        found = (gates, last_gate, of_hidden if projections else None)
        if length is None:
            return new, found
        # Steps in the padding have changed nothing: the gradients of the states go past them.
        inside = place < length
        passed = tuple(jnp.where(inside, n, s) for n, s in zip(new, of_states, strict=True))
        return passed, jax.tree.map(lambda each: jnp.where(inside, each, jnp.zeros_like(each)), found)

    rows = (places, of_sequence, before, hidden, tuple(kept))
    of_first, (of_held, last_gate, of_projected) = jax.lax.scan(turn, tuple(of_last), rows, reverse=not reverse)
    of_given = of_held
    if last_gate is not None:
        of_given = jnp.concatenate([of_held[..., : -last_gate.shape[-1]], last_gate], -1)
    of_weights = [_summed(of_given, sequence), _summed(of_held, before)]
    if biases:
        of_weights += [of_given.sum((0, 1)), of_held.sum((0, 1))]
    if projections:
        enter, forget, new, leave, cell = kept
        of_weights.append(_summed(of_projected, leave * jnp.tanh(forget * cell + enter * new)))
    return of_given @ weights[0], of_first, of_weights


def _summed(of_results: Any, terms: Any) -> Any:
    """The gradient of a matrix: [length, batch, results] and [length, batch, terms] to [results, terms]."""
    return jnp.einsum("tbr,tbi->ri", of_results, terms)
