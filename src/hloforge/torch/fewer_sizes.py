"""Graphs of Dynamo's with fewer open sizes: none, or the first one alone, mostly the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
import torch.fx.traceback as fx_traceback
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.open_sizes import OpenSizes, is_nested


def at_sizes(graph: fx.GraphModule, arguments: Sequence[Any]) -> fx.GraphModule:
    """A graph with symbolic sizes for the sizes of these arguments; the lines of its nodes stay."""
    with fx_traceback.preserve_node_meta():
        return make_fx(_runner(graph), tracing_mode="fake")(*arguments)


def with_first_open(graph: fx.GraphModule, sizes: OpenSizes, arguments: Sequence[Any]) -> fx.GraphModule:
    """A graph whose first open size, of 2 and more, stays open; all others are those of these arguments.

    Raises:
        UnsupportedError: the graph is another one for some sizes.
        RuntimeError: PyTorch asks for more about sizes than is known of them.
    """
    environment = ShapeEnv()
    numbers = sizes.numbers(arguments)
    # PyTorch assumes that a symbol is neither 0 nor 1.
    first = environment.create_symbol(numbers[0], ConstantSource("size"), DimDynamic.DYNAMIC)
    others = dict(zip(sizes.symbols[1:], map(sympy.Integer, numbers[1:]), strict=True))

    def at(size: Any) -> Any:
        if not isinstance(size, torch.SymInt):
            return size
        expression = size.node.expr.xreplace(others).xreplace({sizes.symbols[0]: first})
        if expression.is_number:
            return int(expression)
        return environment.create_symintnode(expression, hint=int(expression.xreplace({first: numbers[0]})))

    fake = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    # Operators with symbols for sizes are those of PyTorch's Python.
    with fake, enable_python_dispatcher(), fx_traceback.preserve_node_meta():
        inputs = [
            torch.empty_strided([*map(at, said.shape)], [*map(at, said.stride())], dtype=said.dtype)
            if isinstance(said, torch.Tensor)
            else None
            if is_nested(said)
            else at(said)
            if isinstance(said, torch.SymInt)
            else given
            for said, given in zip(sizes.values, arguments, strict=True)
        ]
        found = make_fx(_runner(graph))(*inputs)
    if environment.guards:
        raise UnsupportedError(f"the graph is another one unless {environment.guards[0].expr}")
    return found


def _runner(graph: fx.GraphModule) -> Any:
    def run(*values: Any) -> Any:
        return fx.Interpreter(graph).run(*values)

    return run
