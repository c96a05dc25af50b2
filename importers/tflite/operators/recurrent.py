"""Layers that carry a state from step to step. It begins with zeros at every call, as in a new interpreter; that of a
layer of one step is an argument and a result of the program (states.py).

Source: TFLite "unidirectional_sequence_lstm", "unidirectional_sequence_rnn", "bidirectional_sequence_lstm",
"bidirectional_sequence_rnn", "lstm", "basic_rnn", "svdf".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.tensors import broadcast_to, cast, element_at, expand, fill, matmul, mean, put, total, window
from hloforge.importers.tflite.activations import activation
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator
from hloforge.importers.tflite.states import keep

# Numbers of inputs; four gates follow one another: input, forget, cell, output.
_INPUT_WEIGHTS, _STATE_WEIGHTS, _PEEPHOLES, _BIASES, _PROJECTION, _STATES, _NORMS = 1, 5, 9, 12, 16, 18, 20
_INPUT, _FORGET, _CELL, _OUTPUT = range(4)
# Of a layer of two directions: how far the backward weights follow the forward ones, their states, and an input
# that some layers have beside the first one.
_BACKWARD, _BOTH_STATES, _AUXILIARY = 17, 35, 39
_PLAIN_BACKWARD, _PLAIN_AUXILIARY = 4, 9
_BASIC = 1


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
def long_short_term(node: Node) -> Value:
    """``[batch, time, input]``, or time first, to as many outputs a step; quantized weights count as numbers."""
    return _steps(node, _Lstm(node).step, [_numbers(node, _STATES), _numbers(node, _STATES + 1)])


@operator("BIDIRECTIONAL_SEQUENCE_LSTM")
def long_short_term_both_ways(node: Node) -> list[Value]:
    """The results of the forward layer and of the backward one, one beside the other if they are merged."""
    _refuse_auxiliary(node, _AUXILIARY)
    found = []
    for number in range(2):
        states = [_numbers(node, _BOTH_STATES + 2 * number + part) for part in range(2)]
        layer = _Lstm(node, number * _BACKWARD, normed=False)
        found.append(_steps(node, layer.step, states, backward=number == 1))
    return _merged(node, found)


@operator("UNIDIRECTIONAL_SEQUENCE_RNN")
def plain(node: Node) -> Value:
    return _plain(node, 0, backward=False)


@operator("BIDIRECTIONAL_SEQUENCE_RNN")
def plain_both_ways(node: Node) -> list[Value]:
    _refuse_auxiliary(node, _PLAIN_AUXILIARY)
    return _merged(node, [_plain(node, 0, backward=False), _plain(node, _PLAIN_BACKWARD, backward=True)])


@operator("LSTM")
def one_step(node: Node) -> list[Value]:
    """A step. Of the basic kernel: input, output before, weights, biases, cell before; one matrix for all gates."""
    if node.option("KernelType") != _BASIC:
        states = _Lstm(node).step(_numbers(node, 0), [_numbers(node, _STATES), _numbers(node, _STATES + 1)])
        return [keep(node, _STATES + part, state) for part, state in enumerate(states)][:1]
    x, h, weights, biases, cell = (_numbers(node, number) for number in range(5))
    together = ops.concat_in_dim([x, h], 1)
    sums = _product(together, weights)
    sums = sums + broadcast_to(biases, sums.dims)
    units = cell.dims[1]
    # Here the candidate is before the forget gate.
    entering, candidate, forget, leaving = (
        ops.slice(sums, [0, gate * units], [sums.dims[0], (gate + 1) * units]) for gate in range(4)
    )
    after = ops.logistic(entering) * ops.tanh(candidate) + ops.logistic(forget) * cell
    return [ops.logistic(leaving) * ops.tanh(after), after, together, sums]


@operator("RNN")
def plain_step(node: Node) -> Value:
    """Input, weights, recurrent weights, bias, and the output before, which is the state."""
    weights, recurrent, bias = (_numbers(node, number) for number in (1, 2, 3))
    sums = _product(_numbers(node, 0), weights) + _product(_numbers(node, 4), recurrent)
    sums = sums + broadcast_to(bias, sums.dims)
    return keep(node, 4, activation(sums, node.option("FusedActivationFunction"), node))


@operator("SVDF")
def filtered(node: Node) -> Value:
    """A filter of the last steps of each feature; ``rank`` neighbouring features make an output.

    Input, weights of features ``[filters, input]``, weights of steps ``[filters, steps]``, a bias, and the features of
    the last steps, ``[batch, filters * steps]``, which are the state.
    """
    x, features, times, state = (_numbers(node, number) for number in (0, 1, 2, 4))
    filters, steps = times.dims
    batch, rank = x.dims[0], int(node.option("Rank", 1))
    before = ops.reshape(state, [batch, filters, steps])
    after = ops.concat_in_dim([window(before, 2, 1, steps), expand(_product(x, features), [2])], 2)
    after = ops.reshape(keep(node, 4, ops.reshape(after, state.dims)), before.dims)
    sums = total(after * ops.broadcast_in_dim(times, before.dims, [1, 2]), [2])
    sums = total(ops.reshape(sums, [batch, filters // rank, rank]), [2])
    if node.has(3):
        sums = sums + broadcast_to(_numbers(node, 3), sums.dims)
    return activation(sums, node.option("FusedActivationFunction"), node)


def _plain(node: Node, offset: int, *, backward: bool) -> Value:
    weights, recurrent, bias = (_numbers(node, offset + number) for number in (1, 2, 3))

    def step(x: Value, state: Sequence[Value]) -> list[Value]:
        sums = _product(x, weights) + _product(state[0], recurrent)
        return [activation(sums + broadcast_to(bias, sums.dims), node.option("FusedActivationFunction"), node)]

    return _steps(node, step, [_numbers(node, offset + 4)], backward=backward)


def _refuse_auxiliary(node: Node, number: int) -> None:
    if node.has(number):
        raise UnsupportedError(f"{node.name} with an auxiliary input is not imported")


def _merged(node: Node, found: list[Value]) -> list[Value]:
    return [ops.concat_in_dim(found, 2)] if node.option("MergeOutputs") else found


def _numbers(node: Node, number: int) -> Value:
    return cast(node.real(number), "f32")


def _product(x: Value, weights: Value) -> Value:
    return matmul(x, ops.transpose(weights, [1, 0]))


def _steps(
    node: Node, step: Callable[[Value, Sequence[Value]], list[Value]], states: list[Value], *, backward: bool = False
) -> Value:
    """The first state after each step, along the axis of time; backward, the last step comes first."""
    x = _numbers(node, 0)
    time = 0 if node.option("TimeMajor") else 1
    x = ops.rev(x, [time]) if backward else x
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
    stacked: Value = ops.rev(result.elements[1], [0]) if backward else result.elements[1]
    return stacked if node.option("TimeMajor") else ops.transpose(stacked, [1, 0, 2])


class _Lstm:
    """The weights of a layer; without those of the input gate, it is what the forget gate leaves.

    Args:
        offset: how far its weights follow the usual positions.
        normed: whether it may have coefficients of layer normalization.
    """

    def __init__(self, node: Node, offset: int = 0, *, normed: bool = True) -> None:
        self.node = node
        self.projection = offset + _PROJECTION
        self.coupled = not node.has(offset + _INPUT_WEIGHTS)
        gates = range(_FORGET, 4) if self.coupled else range(4)
        self.inputs = {gate: _numbers(node, offset + _INPUT_WEIGHTS + gate) for gate in gates}
        self.states = {gate: _numbers(node, offset + _STATE_WEIGHTS + gate) for gate in gates}
        self.biases = {gate: _numbers(node, offset + _BIASES + gate) for gate in gates}
        self.norms = {gate: _numbers(node, _NORMS + gate) for gate in gates if normed and node.has(_NORMS + gate)}
        places = {_INPUT: 0, _FORGET: 1, _OUTPUT: 2}
        self.peepholes = {
            gate: _numbers(node, offset + _PEEPHOLES + place)
            for gate, place in places.items()
            if gate in gates and node.has(offset + _PEEPHOLES + place)
        }

    def step(self, x: Value, state: Sequence[Value]) -> list[Value]:
        h, c = state
        forget = ops.logistic(self._gate(_FORGET, x, h, c))
        entering = 1.0 - forget if self.coupled else ops.logistic(self._gate(_INPUT, x, h, c))
        candidate = self._bent(self._gate(_CELL, x, h, c))
        cell = _limited(forget * c + entering * candidate, self.node.option("CellClip", 0.0))
        output = ops.logistic(self._gate(_OUTPUT, x, h, cell)) * self._bent(cell)
        if not self.node.has(self.projection):
            return [output, cell]
        projected = _product(output, _numbers(self.node, self.projection))
        if self.node.has(self.projection + 1):
            projected = projected + broadcast_to(_numbers(self.node, self.projection + 1), projected.dims)
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
