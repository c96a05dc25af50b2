"""Weights of a graph that seldom change: parts of the loaded program, which computes once what depends on them alone.

IREE computes rearranged and folded weights when a program is loaded. It multiplies with transposed matrices as
they lie, which is slower (8 rows by 768x3072: 2.4 ms for 1.0), so these are given to it transposed. A weight that was
changed in place, or lies elsewhere, is noticed at the next call by PyTorch's version counters and by its address.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import fx

from hloforge.dialect.element_types import element_type
from hloforge.dialect.program import Program
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.pipelines.weights import ELEMENTS, take_parameters
from hloforge.torch.memory import Order, Range, order_of
from hloforge.torch.registry import is_random
from hloforge.torch.types import dtype_of, to_numpy

_ATEN = torch.ops.aten
_TRANSPOSING = (_ATEN.t.default, _ATEN.permute.default, _ATEN.transpose.int)


class Weights:
    """The weights among the inputs of a graph.

    Args:
        graph: whose inputs they are.
        inputs: examples.
        numbers: of those that may be weights; some types cannot.

    Attributes:
        graph: with transposed weights as further inputs, if there are any.
        inputs: examples of its inputs.
        numbers: of those of its inputs that are weights.
    """

    def __init__(self, graph: fx.GraphModule, inputs: Sequence[Any], numbers: Collection[int]) -> None:
        self._sources = tuple(n for n in sorted(numbers) if _can_be_weight(inputs[n]))
        self.graph, self.inputs = graph, list(inputs)
        # By the number of an input, the weight and the order of its dimensions in memory.
        self._taken: dict[int, tuple[int, Order]] = {n: (n, order_of(inputs[n])) for n in self._sources}
        if self._sources:
            self._take_transposed()
        self.numbers = tuple(self._taken)

    def _take_transposed(self) -> None:
        self.graph = fx.GraphModule(self.graph, copy.deepcopy(self.graph.graph))
        graph = self.graph.graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        last = placeholders[-1]
        for number in self._sources:
            for node in [user for user in placeholders[number].users if user.target in _TRANSPOSING]:
                order = _dimensions(node)
                with graph.inserting_after(last):
                    last = graph.placeholder(f"{placeholders[number].name}_transposed_{len(self.inputs)}")
                value = node.meta["val"]
                last.meta["val"] = value.new_empty_strided(value.shape, _dense_strides(value.shape))
                node.replace_all_uses_with(last)
                graph.erase_node(node)
                self._taken[len(self.inputs)] = number, order
                self.inputs.append(last.meta["val"])
        self.graph.recompile()

    def state(self, tensors: Sequence[Any]) -> list[Any]:
        """What tells whether the weights are those of another call."""
        return [(tensors[n].data_ptr(), _version(tensors[n])) for n in self._sources]

    def taken(self, tensors: Sequence[Any]) -> tuple[Any, dict[str, np.ndarray[Any, Any]], tuple[Range, ...]]:
        """State, arrays by the names of ``taken_out`` and the memory of the weights among the tensors of a call.

        The arrays keep the memory alive, so that no other tensor can lie there.
        """
        arrays, borrowed = {}, []
        state = self.state(tensors) if self.numbers else None
        for name, (number, order) in self._taken.items():
            dense = tensors[number].detach().permute(order).contiguous()
            arrays[_name(name)] = to_numpy(dense)
            start = dense.data_ptr()
            borrowed.append((start, start + dense.nbytes))
        return state, arrays, tuple(borrowed)


def _can_be_weight(tensor: Any) -> bool:
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return False
    return element_type(dtype_of(tensor.dtype)).name in ELEMENTS


def _dimensions(node: fx.Node) -> Order:
    """The order of dimensions that a transposition makes."""
    source, *arguments = node.args
    assert isinstance(source, fx.Node)  # a placeholder
    rank = source.meta["val"].ndim
    order = list(range(rank))
    if node.target is _ATEN.t.default:
        order.reverse()
    elif node.target is _ATEN.permute.default:
        order = [order[d] for d in arguments[0]]
    elif rank:
        first, second = arguments
        order[first], order[second] = order[second], order[first]
    return tuple(order)


def _dense_strides(sizes: Sequence[int]) -> list[int]:
    return [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]


def _version(tensor: torch.Tensor) -> int:
    """How often a tensor was changed in place; tensors of ``inference_mode`` do not count."""
    return -1 if tensor.is_inference() else tensor._version


def _name(number: int) -> str:
    return f"weight.{number}"


def taken_out(program: Program, places: Mapping[int, int]) -> Program:
    """The program that looks its weights up.

    Args:
        places: by the number of a parameter, the number of the weight.
    """
    if not places:
        return program
    parameters = tuple(
        replace(parameter, name=_name(places[n]) if n in places else parameter.name)
        for n, parameter in enumerate(program.signature.parameters)
    )
    changed = program.clone()
    changed.signature = replace(changed.signature, parameters=parameters)
    changed.signature.attach(changed.module)
    normalize(changed.module)
    return take_parameters(changed, {_name(number) for number in places.values()})


def fixed_nodes(graph: fx.GraphModule, weights: Collection[int]) -> set[fx.Node]:
    """The nodes of a graph that depend on no input but weights."""
    fixed: set[fx.Node] = set()
    placeholders = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            is_fixed = placeholders in weights
            placeholders += 1
        else:
            is_fixed = not is_random(node) and fixed.issuperset(node.all_input_nodes)
        if is_fixed:
            fixed.add(node)
    return fixed
