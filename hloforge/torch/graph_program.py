"""Graphs of ATen operators as programs on tensors: compiled for fixed sizes, called with tensors of the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import torch
from torch import fx
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx

from hloforge import api
from hloforge.jax import platform
from hloforge.runtime import devices
from hloforge.runtime.targets import Target
from hloforge.torch.compiled import draw_seed
from hloforge.torch.interpreter import Interpreter, calls, check
from hloforge.torch.memory import Argument, Order, Range, Result, detach, inverse, order_of
from hloforge.torch.registry import lowering_of
from hloforge.torch.types import dtype_of


@dataclass(frozen=True)
class Output:
    """Where one output of a graph comes from.

    Attributes:
        argument: the number of the argument that is returned as it came.
        result: the number of the program's result.
        value: what it always is, if it is neither.
    """

    argument: int | None = None
    result: int | None = None
    value: Any = None


class GraphProgram:
    """A graph compiled for fixed sizes. Calls are safe from several threads at once.

    Args:
        graph: of functional ATen operators; its outputs are a list of tensors, integers and None.
        inputs: what it is called with: tensors (only sizes, strides and types are looked at) and integers, which
            become constants.
        name: of the program.
        target, options: as of ``hloforge.compile``.

    Attributes:
        executable: the vmfb and its manifest.

    Raises:
        UnsupportedError: operators that are not imported, by name with the lines of the user's program.
        ArgumentError: an input is sparse, or not on the CPU.
        Errors as of ``hloforge.compile``.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        inputs: Sequence[Any],
        name: str,
        target: Target | str = "cpu",
        **options: Any,
    ) -> None:
        check(graph)
        platform.register()
        self._numbers = [n for n, each in enumerate(inputs) if isinstance(each, torch.Tensor)]
        self._draws = _is_random(graph)
        traced = _Traced(graph, inputs)
        lowered = traced.lower(name, with_seed=self._draws)
        self._outputs = traced.outputs
        self.executable = api.compile(lowered, target, **options)
        self._session = session = self.executable.load()
        device = devices.device("local-sync")
        constants = platform.constant_arguments(lowered)
        self._constants = [session.put(np.asarray(each), n).buffer_view for n, each in enumerate(constants)]
        codecs = session.parameters[len(constants) :]
        self._arguments = [Argument(inputs[n], codec, device) for n, codec in zip(self._numbers, codecs, strict=False)]
        self._results = [
            Result(codec, order, dtype, device)
            for codec, (order, dtype) in zip(session.results, traced.results, strict=True)
        ]

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Run the graph.

        Raises:
            ArgumentError: a tensor of other sizes, type or device.
            ExecutionError: the program failed.
        """
        borrowed: list[Range] = []
        views = [
            argument.view(arguments[n], borrowed) for argument, n in zip(self._arguments, self._numbers, strict=True)
        ]
        seed = (
            [self._session.put(np.array(draw_seed(), np.int64), len(self._constants) + len(views)).buffer_view]
            if self._draws
            else []
        )
        found = self._session.call_views([*self._constants, *views, *seed])
        tensors = [result.tensor(view) for result, view in zip(self._results, found, strict=True)]
        detach(tensors, self._results, borrowed)
        return [_taken(output, arguments, tensors) for output in self._outputs]


def _taken(output: Output, arguments: Sequence[Any], results: Sequence[torch.Tensor]) -> Any:
    if output.argument is not None:
        return arguments[output.argument]
    return output.value if output.result is None else results[output.result]


def _is_random(graph: fx.GraphModule) -> bool:
    return any(getattr(lowering_of(node.target), "draws", False) for node in calls(graph))


class _Traced:
    """A graph as a function of JAX's arrays, in the order in which tensors lie in memory.

    Attributes:
        outputs: of the graph.
        results: of each result of the function: the order of its dimensions, and its element type.
    """

    def __init__(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> None:
        self._graph, self._inputs = graph, inputs
        self._orders = [order_of(each) if isinstance(each, torch.Tensor) else None for each in inputs]
        self.outputs: list[Output] = []
        self.results: list[tuple[Order, torch.dtype]] = []

    def lower(self, name: str, *, with_seed: bool) -> Any:
        """What JAX lowers the graph to.

        Args:
            with_seed: whether the last parameter is a seed, ``s64[]``.
        """

        def function(*arrays: Any) -> list[Any]:
            return self._run(arrays[:-1] if with_seed else arrays, arrays[-1] if with_seed else None)

        function.__name__ = name
        pairs = zip(self._inputs, self._orders, strict=True)
        with jax.enable_x64(True):
            shapes = [_aval(each, order) for each, order in pairs if order is not None]
            if with_seed:
                shapes.append(jax.ShapeDtypeStruct((), np.int64))
            traced = jax.jit(function, keep_unused=True).trace(*shapes)
            return traced.lower(lowering_platforms=(platform.PLATFORM,))

    def _run(self, arrays: Sequence[Any], seed: Any) -> list[Any]:
        given = iter(arrays)
        arguments = [
            each if order is None else next(given).transpose(inverse(order))
            for each, order in zip(self._inputs, self._orders, strict=True)
        ]
        found = Interpreter(seed).run(self._graph, arguments)
        returned = next(iter(reversed(self._graph.graph.nodes))).args[0]
        return self._returned(returned, found)

    def _returned(self, nodes: Any, values: Sequence[Any]) -> list[Any]:
        """The results; each once, though it may be several outputs."""
        places = {node: n for n, node in enumerate(n for n in self._graph.graph.nodes if n.op == "placeholder")}
        numbers: dict[fx.Node, int] = {}
        results = []
        self.outputs, self.results = [], []
        for node, value in zip(nodes, values, strict=True):
            if not isinstance(node, fx.Node) or not isinstance(value, jax.Array | np.ndarray):
                self.outputs.append(Output(value=value))
            elif node in places:
                self.outputs.append(Output(argument=places[node]))
            else:
                if node not in numbers:
                    numbers[node] = len(numbers)
                    order = order_of(node.meta["val"])
                    self.results.append((order, node.meta["val"].dtype))
                    results.append(value.transpose(order))
                self.outputs.append(Output(result=numbers[node]))
        return results


def _aval(tensor: torch.Tensor, order: Order) -> Any:
    return jax.ShapeDtypeStruct([tensor.shape[d] for d in order], dtype_of(tensor.dtype))


def at_sizes(graph: fx.GraphModule, arguments: Sequence[Any]) -> fx.GraphModule:
    """A graph with symbolic sizes for the sizes of these arguments; the lines of its nodes stay."""

    def run(*values: Any) -> Any:
        return fx.Interpreter(graph).run(*values)

    with fx_traceback.preserve_node_meta():
        return make_fx(run, tracing_mode="fake")(*arguments)
