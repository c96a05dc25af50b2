"""RNN, GRU and LSTM: one product for the inputs of all steps, then a loop over the steps.

Source: ONNX "RNN", "GRU", "LSTM".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import TupleValue, Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import (
    broadcast_to,
    cast,
    element_at,
    expand,
    fill,
    matmul,
    numbers,
    pieces,
    put,
    window,
)

# By name: from (x, alpha, beta).
_ACTIVATIONS: dict[str, Callable[[Value, float, float], Value]] = {
    "Affine": lambda x, a, b: x * a + b,
    "Elu": lambda x, a, _: ops.select(x >= 0, x, ops.expm1(x) * a),
    "HardSigmoid": lambda x, a, b: ops.clamp(0.0, x * a + b, 1.0),
    "LeakyRelu": lambda x, a, _: ops.select(x >= 0, x, x * a),
    "Relu": lambda x, *_: ops.max(x, 0),
    "ScaledTanh": lambda x, a, b: ops.tanh(x * b) * a,
    "Sigmoid": lambda x, *_: ops.logistic(x),
    "Softplus": lambda x, *_: ops.max(x, 0) + ops.log1p(ops.exp(-ops.abs(x))),
    "Softsign": lambda x, *_: x / (1.0 + ops.abs(x)),
    "Tanh": lambda x, *_: ops.tanh(x),
    "ThresholdedRelu": lambda x, a, _: ops.select(x > a, x, x * 0),
}
_ALPHA = {"Affine": 1.0, "Elu": 1.0, "HardSigmoid": 0.2, "LeakyRelu": 0.01, "ScaledTanh": 1.0, "ThresholdedRelu": 1.0}
_BETA = {"Affine": 0.0, "HardSigmoid": 0.5, "ScaledTanh": 1.0}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class Cell:
    """One direction of a layer.

    Attributes:
        weights: ``W`` ``[gates * hidden, input]`` and ``R`` ``[gates * hidden, hidden]``.
        bias: of the inputs and of the states, ``[gates * hidden]`` each; None without.
        peepholes: ``[3 * hidden]`` of an LSTM, or None.
    """

    def __init__(self, node: Node, direction: int, hidden: int) -> None:
        self.node, self.hidden = node, hidden
        self.weights = [self.part(number, direction) for number in (1, 2)]
        bias = self.part(3, direction) if node.has(3) else None
        half = _GATES[node.name] * hidden
        self.bias = None if bias is None else [window(bias, 0, 0, half), window(bias, 0, half, 2 * half)]
        self.peepholes = self.part(7, direction) if node.name == "LSTM" and node.has(7) else None
        self.functions = self._functions(direction)

    def part(self, number: int, direction: int) -> Value:
        """What an input has for a direction, without that dimension."""
        x = self.node.value(number)
        return ops.reshape(window(x, 0, direction, direction + 1), x.dims[1:])

    def _functions(self, direction: int) -> list[Callable[[Value], Value]]:
        """Those of a direction. Numbers are for the functions that take one, in their order in all directions."""
        count = len(_DEFAULTS[self.node.name])
        given = self.node.attribute("activations")
        names = [str(name.decode() if isinstance(name, bytes) else name) for name in given] if given else []
        names = names or _DEFAULTS[self.node.name] * (direction + 1)
        alphas = iter(self.node.attribute("activation_alpha") or [])
        betas = iter(self.node.attribute("activation_beta") or [])
        found: list[Callable[[Value], Value]] = []
        for name in names:
            known = {key.lower(): key for key in _ACTIVATIONS}.get(name.lower())
            if known is None:
                raise UnsupportedError(f"the activation {name} is not imported")
            alpha = next(alphas, _ALPHA[known]) if known in _ALPHA else 0.0
            beta = next(betas, _BETA[known]) if known in _BETA else 0.0
            found.append(_bound(_ACTIVATIONS[known], float(alpha), float(beta)))
        return found[direction * count : (direction + 1) * count]

    def limited(self, x: Value) -> Value:
        clip = self.node.attribute("clip")
        return x if clip is None else ops.clamp(-float(clip), x, float(clip))

    def product(self, x: Value, number: int) -> Value:
        """Inputs (0) or states (1) by their weights."""
        return matmul(x, ops.transpose(self.weights[number], [1, 0]))

    def inputs(self, x: Value) -> Value:
        """What all steps ``[time, batch, input]`` add to the gates, ``[time, batch, gates * hidden]``."""
        product = self.product(x, 0)
        return product if self.bias is None else product + broadcast_to(self.bias[0], product.dims)

    def state(self, h: Value) -> Value:
        """What the last state adds to the gates."""
        product = self.product(h, 1)
        return product if self.bias is None else product + broadcast_to(self.bias[1], product.dims)

    def step(self, x: Value, state: list[Value]) -> list[Value]:
        """The next state of the gates' inputs and the state before: ``[h]``, or ``[h, c]``."""
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.node.name](x, state)

    def _rnn(self, x: Value, state: list[Value]) -> list[Value]:
        return [self.functions[0](self.limited(x + self.state(state[0])))]

    def _gru(self, x: Value, state: list[Value]) -> list[Value]:
        f, g = self.functions
        h, size = state[0], self.hidden
        x_update, x_reset, x_hidden = pieces(x, 1, [size] * 3)
        if self.node.attribute("linear_before_reset", 0):
            s_update, s_reset, s_hidden = pieces(self.state(h), 1, [size] * 3)
            reset = f(self.limited(x_reset + s_reset))
            candidate = g(self.limited(x_hidden + reset * s_hidden))
        else:
            s_update, s_reset, _ = pieces(self.state(h), 1, [size] * 3)
            reset = f(self.limited(x_reset + s_reset))
            candidate = g(self.limited(x_hidden + window(self.state(reset * h), 1, 2 * size, 3 * size)))
        update = f(self.limited(x_update + s_update))
        return [(1.0 - update) * candidate + update * h]

    def _lstm(self, x: Value, state: list[Value]) -> list[Value]:
        f, g, last = self.functions
        h, c = state
        enter, leave, forget, cell = pieces(x + self.state(h), 1, [self.hidden] * 4)
        peeps = None if self.peepholes is None else pieces(self.peepholes, 0, [self.hidden] * 3)
        if peeps:
            enter = enter + broadcast_to(peeps[0], c.dims) * c
            forget = forget + broadcast_to(peeps[2], c.dims) * c
        opened = f(self.limited(enter))
        kept = 1.0 - opened if self.node.attribute("input_forget", 0) else f(self.limited(forget))
        fresh = kept * c + opened * g(self.limited(cell))
        if peeps:
            leave = leave + broadcast_to(peeps[1], c.dims) * fresh
        return [f(self.limited(leave)) * last(fresh), fresh]


def _bound(function: Callable[[Value, float, float], Value], alpha: float, beta: float) -> Callable[[Value], Value]:
    return lambda x: function(x, alpha, beta)


@operator("RNN", "GRU", "LSTM")
@rounds_once
def recurrent(node: Node) -> Any:
    return layer(node, Cell)


def layer(node: Node, kind: type[Cell]) -> Any:
    """A layer whose directions are of one kind.

    Outputs: the states of all steps ``[time, directions, batch, hidden]``, the last ones; of an LSTM the cells.
    """
    x = node.value(0)
    by_batch = bool(node.attribute("layout", 0))
    if by_batch:
        x = ops.transpose(x, [1, 0, 2])
    hidden = int(node.attribute("hidden_size") or node.dims(2)[-1])
    lengths = cast(node.value(4), "s32") if node.has(4) else None
    way = node.attribute("direction", "forward")
    directions = ["forward", "reverse"] if way == "bidirectional" else [way]
    rows, last = [], []
    for number, turn in enumerate(directions):
        cell = kind(node, number, hidden)
        given = reversed_steps(x, lengths) if turn == "reverse" else x
        row, states = _run(cell, cell.inputs(given), _start(node, number, x, hidden, by_batch), lengths)
        rows.append(expand(reversed_steps(row, lengths) if turn == "reverse" else row, [1]))
        last.append([expand(state, [0]) for state in states])
    outputs = [ops.concat_in_dim(rows, 1), *(ops.concat_in_dim(list(parts), 0) for parts in zip(*last, strict=True))]
    if by_batch:
        outputs = [ops.transpose(outputs[0], [2, 0, 1, 3]), *(ops.transpose(state, [1, 0, 2]) for state in outputs[1:])]
    return Outputs(outputs)


def _start(node: Node, direction: int, x: Value, hidden: int, by_batch: bool) -> list[Value]:
    states = []
    for number in (5, 6) if node.name == "LSTM" else (5,):
        if not node.has(number):
            states.append(fill([x.dims[1], hidden], 0, x.element_type))
            continue
        given = node.value(number)
        given = ops.transpose(given, [1, 0, 2]) if by_batch else given
        states.append(ops.reshape(window(given, 0, direction, direction + 1), given.dims[1:]))
    return states


def _run(cell: Cell, gates: Value, start: list[Value], lengths: Value | None) -> tuple[Value, list[Value]]:
    """All states, and the last ones; a sequence that has ended keeps its state, and yields zeros."""
    time, batch, _ = gates.dims

    def run(turn: Value, *values: Value) -> list[Value]:
        row, state = values[0], list(values[1:])
        fresh = cell.step(element_at(gates, 0, turn), state)
        shown = fresh[0]
        if lengths is not None:
            goes_on = lengths > ops.broadcast_in_dim(turn, [batch], [])
            mask = ops.broadcast_in_dim(goes_on, shown.dims, [0])
            fresh = [ops.select(mask, new, old) for new, old in zip(fresh, state, strict=True)]
            shown = ops.select(mask, shown, shown * 0)
        return [turn + 1, put(row, shown, turn), *fresh]

    rows = fill([time, batch, cell.hidden], 0, gates.element_type)
    result = ops.while_(lambda turn, *_: turn < time, run, [fill([], 0, "s32"), rows, *start])
    assert isinstance(result, TupleValue)
    return result.elements[1], list(result.elements[2:])


def reversed_steps(x: Value, lengths: Value | None) -> Value:
    """``[time, batch, ...]`` with each sequence in reverse; what lies after its length stays."""
    if lengths is None:
        return ops.rev(x, [0])
    sizes = [x.dims[0], x.dims[1]]
    place = numbers(sizes, 0)
    length = ops.broadcast_in_dim(lengths, sizes, [1])
    source = ops.select(place < length, length - 1 - place, place)
    starts = ops.concat_in_dim([expand(source, [2]), expand(numbers(sizes, 1), [2])], 2)
    layout = ops.GatherDimensionNumbers(range(2, x.rank), [0, 1], [0, 1], 2)
    return ops.gather(x, starts, layout, [1, 1, *x.dims[2:]])
