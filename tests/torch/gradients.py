"""Gradients as the backend of ``torch.compile`` makes them: AOTAutograd's graphs, run by JAX's CPU client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import torch
from torch import fx
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition

from hloforge.torch import decompositions, to_numpy, to_torch
from hloforge.torch.interpreter import Interpreter, check
from tests.torch.opinfo import Case


def compiled_by_jax(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], list[Any]]:
    """A compiler for AOTAutograd: the graph by JAX's CPU client. Raises UnsupportedError for what is not imported."""
    check(graph)
    nodes = next(iter(reversed(graph.graph.nodes))).args[0]

    def call(arguments: list[Any]) -> list[Any]:
        given = list(arguments)
        arguments.clear()
        places = [n for n, each in enumerate(given) if isinstance(each, torch.Tensor)]

        def function(*arrays: Any) -> Any:
            for place, array in zip(places, arrays, strict=True):
                given[place] = array
            return list(Interpreter(np.int64(7)).run(graph, given))

        arrays = [np.ascontiguousarray(to_numpy(given[n])).reshape(given[n].shape) for n in places]
        with jax.enable_x64(True):
            found = jax.jit(function)(*arrays)
        return [_output(node, value) for node, value in zip(nodes, found, strict=True)]

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _output(node: Any, value: Any) -> Any:
    if value is None:
        return None
    declared = node.meta["val"] if isinstance(node, fx.Node) else node
    return to_torch(np.array(value)) if isinstance(declared, torch.Tensor) else declared


def by_aot(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its results and gradients computed by ``compiled_by_jax``."""
    options = {"partition_fn": min_cut_rematerialization_partition, "decompositions": decompositions()}
    compiled: Callable[..., Any] = aot_function(function, compiled_by_jax, compiled_by_jax, **options)
    return compiled


def gradients(function: Callable[..., Any], case: Case) -> list[torch.Tensor]:
    """Of all arguments of floats, where each element of the results has a weight of its own."""
    given = [each.clone().requires_grad_(each.dtype.is_floating_point) for each in case.tensors]
    results = [each for each in function(*given) if each.requires_grad]
    total = sum((each * torch.arange(each.numel()).add(1.0).cos().reshape(each.shape)).sum() for each in results)
    wanted = [each for each in given if each.requires_grad]
    return list(torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True))
