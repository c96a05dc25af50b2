"""Recurrent layers of Dynamo's graphs as operators that AOTAutograd keeps: loops instead of their steps.

Dynamo gives ``torch.lstm`` and its like, whose decompositions write each step of the sequence out. ``keep_recurrent``
replaces them by ``hloforge::recurrent`` (recurrent_operators.py). Those decompositions also drop the dropout between
layers (PyTorch 2.13), so that what stays PyTorch's is called for one layer at a time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.recurrent_operators import one_by_one

_NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_KINDS: dict[Any, str] = {getattr(torch, name): name for name in _NAMES}
for _name in _NAMES:
    _packet = getattr(torch.ops.aten, _name)
    _KINDS |= {_packet.input: _name, _packet.data: _name}
_SETTINGS = ("has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", "hx", "params", *_SETTINGS, "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", *_SETTINGS)


class RecurrentKept(TorchFunctionMode):  # type: ignore[misc]  # PyTorch's overrides have no types
    """``torch.export`` of recurrent layers along sequences of dynamic length, which its own operators make constant."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kind = _KINDS.get(func)
        given = dict(zip(_PADDED, args, strict=False)) | (kwargs or {})
        if kind is None or len(given) != len(_PADDED) or isinstance(given["params"], Tensor):
            return func(*args, **(kwargs or {}))
        return tuple(_padded(None, *_of(kind, {name: given[name] for name in _PADDED})))


def keep_recurrent(graph_module: fx.GraphModule) -> None:
    """Put ``hloforge::recurrent`` where a graph of Dynamo's calls recurrent layers; of packed sequences, one by one.

    Raises:
        UnsupportedError: a call of which it is not known whether there is dropout, which PyTorch would lose.
    """
    for module in graph_module.modules():
        if isinstance(module, fx.GraphModule):
            _keep_in(module)


def _keep_in(module: fx.GraphModule) -> None:
    graph = module.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _KINDS:
            continue
        kind, given = _KINDS[node.target], _given(node)
        given |= {name: _known(given[name]) for name in _SETTINGS}
        if not isinstance(given["params"], list | tuple) or any(isinstance(given[n], fx.Node) for n in _SETTINGS):
            raise UnsupportedError(f"{kind} with weights or settings that are computed is not imported")
        function, arguments = (_packed, (kind, *given.values())) if "data" in given else (_padded, _of(kind, given))
        # AOTAutograd traces what the function calls.
        with graph.inserting_before(node):
            own = graph.call_function(function, (_type_of(node), *arguments))
        own.meta = {name: value for name, value in node.meta.items() if name in ("stack_trace", "nn_module_stack")}
        node.replace_all_uses_with(own)
        graph.erase_node(node)
    module.recompile()


def _type_of(node: fx.Node) -> torch.dtype | None:
    """The element type that a layer is computed in, which autocast decides where it is on."""
    value = node.meta.get("example_value")
    first = value[0] if isinstance(value, list | tuple) and value else value
    return first.dtype if isinstance(first, Tensor) else None


def _in_type(dtype: torch.dtype | None, tensors: list[Tensor]) -> list[Tensor]:
    return tensors if dtype is None else [each.to(dtype) for each in tensors]


def _known(setting: Any) -> Any:
    """The value of a setting, which Dynamo guards then, where ``dynamic=True`` makes it a number that may change."""
    value = setting.meta.get("example_value") if isinstance(setting, fx.Node) else setting
    for kind, number in ((bool, torch.SymBool), (int, torch.SymInt), (float, torch.SymFloat)):
        if isinstance(value, kind | number):
            return kind(value)
    return setting


def _given(node: fx.Node) -> dict[str, Any]:
    """The arguments of a call by their names."""
    is_packed = "batch_sizes" in node.kwargs or (len(node.args) > 3 and isinstance(node.args[3], list | tuple))
    names = _PACKED if is_packed else _PADDED
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return {name: given[name] for name in names}


def _of(kind: str, given: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of ``_padded``."""
    x, states, weights, biases, layers, dropout, train, *others = given.values()
    first = list(states) if kind == "lstm" else [states]
    return (x, first, list(weights), dropout if train else 0.0, kind, biases, layers, *others)


def _padded(
    dtype: torch.dtype | None,
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
    (x,), states, weights = _in_type(dtype, [x]), _in_type(dtype, states), _in_type(dtype, weights)
    if not dropout:
        return list(recurrent(x, states, weights, kind, biases, layers, *others))

    def one(x: Tensor, first: list[Tensor], chosen: list[Tensor]) -> list[Tensor]:
        return list(recurrent(x, first, chosen, kind, biases, 1, *others))

    return one_by_one(one, x, states, weights, layers, partial(functional.dropout, p=dropout))


def _packed(
    dtype: torch.dtype | None,
    kind: str,
    x: Tensor,
    sizes: Tensor,
    states: Any,
    weights: list[Tensor],
    biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> list[Tensor]:
    """A recurrent layer of packed sequences, by PyTorch's function of one layer."""
    function, is_lstm = getattr(torch, kind), kind == "lstm"
    (x,), weights = _in_type(dtype, [x]), _in_type(dtype, weights)
    first_states = _in_type(dtype, list(states) if is_lstm else [states])

    def one(x: Tensor, first: list[Tensor], chosen: list[Tensor]) -> list[Tensor]:
        given = first if is_lstm else first[0]
        return list(function(x, sizes, given, chosen, biases, 1, 0.0, train, bidirectional))

    between = partial(functional.dropout, p=dropout) if dropout and train else None
    return one_by_one(one, x, first_states, weights, layers, between)
