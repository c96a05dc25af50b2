"""Layers that carry a state from step to step. It begins with zeros at every call, as in a new interpreter.

Source: TFLite "unidirectional_sequence_lstm", "unidirectional_sequence_rnn".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.tensors import broadcast_to, cast, element_at, expand, fill, matmul, mean, put
from hloforge.importers.tflite.activations import activation
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator

# Numbers of inputs; four gates follow one another: input, forget, cell, output.
_INPUT_WEIGHTS, _STATE_WEIGHTS, _PEEPHOLES, _BIASES, _PROJECTION, _STATES, _NORMS = 1, 5, 9, 12, 16, 18, 20
_INPUT, _FORGET, _CELL, _OUTPUT = range(4)


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
def long_short_term(node: Node) -> Value:
    """``[batch, time, input]``, or time first, to as many outputs a step; quantized weights count as numbers."""
    return _steps(node, _Lstm(node).step, [_numbers(node, _STATES), _numbers(node, _STATES + 1)])


@operator("UNIDIRECTIONAL_SEQUENCE_RNN")
def plain(node: Node) -> Value:
    weights, recurrent, bias = (_numbers(node, number) for number in (1, 2, 3))

    def step(x: Value, state: Sequence[Value]) -> list[Value]:
        sums = _product(x, weights) + _product(state[0], recurrent)
        return [activation(sums + broadcast_to(bias, sums.dims), node.option("FusedActivationFunction"), node)]

    return _steps(node, step, [_numbers(node, 4)])


@operator("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "SVDF", "LSTM", "RNN")
def refused(node: Node) -> Value:
    raise UnsupportedError(
        f"{node.name} is not imported", hint="convert the layer as a loop, or as layers of one direction"
    )


def _numbers(node: Node, number: int) -> Value:
    return cast(node.real(number), "f32")


def _product(x: Value, weights: Value) -> Value:
    return matmul(x, ops.transpose(weights, [1, 0]))


def _steps(node: Node, step: Callable[[Value, Sequence[Value]], list[Value]], states: list[Value]) -> Value:
    """The first state after each step, along the axis of time."""
    x = _numbers(node, 0)
    time = 0 if node.option("TimeMajor") else 1
    count, batch = x.dims[time], x.dims[1 - time]
    # The file's states are of the batch that it was written for.
    states = [
        ops.broadcast_in_dim(element_at(state, 0, fill([], 0, "s32")), [batch, state.dims[1]], [1]) for state in states
    ]
    rows = fill([count, batch, states[0].dims[1]], 0, "f32")

    def turn(place: Value, rows: Value, *state: Value) -> list[Value]:
        after = step(element_at(x, time, place), state)
        return [place + 1, put(rows, after[0], place), *after]

    result: Any = ops.while_(lambda place, *_: place < count, turn, [fill([], 0, "s32"), rows, *states])
    stacked: Value = result.elements[1]
    return stacked if node.option("TimeMajor") else ops.transpose(stacked, [1, 0, 2])


class _Lstm:
    """The weights of a layer; without those of the input gate, it is what the forget gate leaves."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.coupled = not node.has(_INPUT_WEIGHTS)
        gates = range(_FORGET, 4) if self.coupled else range(4)
        self.inputs = {gate: _numbers(node, _INPUT_WEIGHTS + gate) for gate in gates}
        self.states = {gate: _numbers(node, _STATE_WEIGHTS + gate) for gate in gates}
        self.biases = {gate: _numbers(node, _BIASES + gate) for gate in gates}
        self.norms = {gate: _numbers(node, _NORMS + gate) for gate in gates if node.has(_NORMS + gate)}
        places = {_INPUT: 0, _FORGET: 1, _OUTPUT: 2}
        self.peepholes = {
            gate: _numbers(node, _PEEPHOLES + place)
            for gate, place in places.items()
            if gate in gates and node.has(_PEEPHOLES + place)
        }

    def step(self, x: Value, state: Sequence[Value]) -> list[Value]:
        h, c = state
        forget = ops.logistic(self._gate(_FORGET, x, h, c))
        entering = 1.0 - forget if self.coupled else ops.logistic(self._gate(_INPUT, x, h, c))
        candidate = self._bent(self._gate(_CELL, x, h, c))
        cell = _limited(forget * c + entering * candidate, self.node.option("CellClip", 0.0))
        output = ops.logistic(self._gate(_OUTPUT, x, h, cell)) * self._bent(cell)
        if not self.node.has(_PROJECTION):
            return [output, cell]
        projected = _product(output, _numbers(self.node, _PROJECTION))
        if self.node.has(_PROJECTION + 1):
            projected = projected + broadcast_to(_numbers(self.node, _PROJECTION + 1), projected.dims)
        return [_limited(projected, self.node.option("ProjClip", 0.0)), cell]

    def _gate(self, gate: int, x: Value, h: Value, c: Value) -> Value:
        sums = _product(x, self.inputs[gate]) + _product(h, self.states[gate])
        if gate in self.peepholes:
            sums = sums + c * broadcast_to(self.peepholes[gate], c.dims)
        if gate in self.norms:
            sums = _normal(sums) * broadcast_to(self.norms[gate], sums.dims)
        return sums + broadcast_to(self.biases[gate], sums.dims)

    def _bent(self, x: Value) -> Value:
        return activation(x, self.node.option("FusedActivationFunction"), self.node)


def _limited(x: Value, most: float) -> Value:
    return ops.clamp(-float(most), x, float(most)) if most else x


def _normal(x: Value) -> Value:
    """Of mean 0 and variance 1 along the last axis."""
    centered = x - broadcast_to(expand(mean(x, [1]), [1]), x.dims)
    variance = expand(mean(centered * centered, [1]), [1])
    return centered * broadcast_to(ops.rsqrt(variance + 1e-8), x.dims)
