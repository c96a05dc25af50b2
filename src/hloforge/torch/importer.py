"""``program_of``: a graph of PyTorch's to a Program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram

from hloforge import api
from hloforge.dialect import ops
from hloforge.dialect.bounded_sizes import BoundedSize, Padded
from hloforge.dialect.builder import Builder
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ArgumentError, UnsupportedError
from hloforge.dialect.marks import GRAPH
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.jax import platform
from hloforge.torch.bounded.expressions import Choices, equalities
from hloforge.torch.bounded.results import cut
from hloforge.torch.bounded.sizes import Sizes, open_dims, opened
from hloforge.torch.exported import names_of, overwritten, prepared
from hloforge.torch.interpreter import Interpreter, calls, check, flat, is_token
from hloforge.torch.registry import is_random
from hloforge.torch.sizes import bounds_of, check_sizes
from hloforge.torch.types import dtype_of

# The last parameter of a program that draws random numbers.
SEED = "seed"
_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_TAKEN = (torch.Tensor, *_NUMBERS)


def program_of(
    source: ExportedProgram | fx.GraphModule,
    examples: Sequence[Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    name: str = "torch",
) -> Program:
    """The program of an exported program, or of a graph of ATen operators (what AOTAutograd or ``make_fx`` make).

    Args:
        source: functional, and decomposed by ``decompositions()``; an exported program is decomposed here.
        examples: for a graph without ``meta["val"]`` at its placeholders: tensors (also FakeTensors) or numbers.
        names: of the parameters, one a placeholder; by default those of the graph signature, else of the placeholders.
        name: of the program.

    Returns:
        A program that takes one array a placeholder, in the order of the graph (parameters, buffers, constants and the
        user's tensors of an exported program), symbolic numbers as scalars of s64, f64 or pred; then, if it draws
        random numbers, ``seed: s64[]``. Plain numbers, strings and None at placeholders are constants of the program,
        and no parameters. Its results are the graph's outputs that are tensors or numbers known at run time only, in
        order (updates of buffers first); outputs that are None or plain numbers are no results. With sizes left open
        it has a ``template``. What PyTorch changes in place of an exported program (buffers, the user's tensors) may be
        overwritten by the new values.

    Raises:
        UnsupportedError: operators that are not imported, each named with its lines.
    """
    exported = None
    if isinstance(source, ExportedProgram):
        exported = prepared(source)
        names = names or names_of(exported)
    graph_module = exported.graph_module if exported is not None else source
    assert isinstance(graph_module, fx.GraphModule)
    graph = graph_of(graph_module, examples, names=names, name=name)
    if any(not shape.is_static for shape in graph.shapes):
        return graph.placeholder()
    program = graph.traced(graph.shapes, {})
    if exported is not None:
        program.describe(aliases=overwritten(exported, program))
    return program


def graph_of(
    graph_module: fx.GraphModule,
    examples: Sequence[Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    name: str = "torch",
) -> Graph:
    """A graph whose operators are all imported, before it is traced; arguments and errors as of ``program_of``."""
    check(graph_module)
    nodes = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    values = [None if is_token(node) else node.meta.get("val") for node in nodes]
    if examples is not None:
        values = [example if value is None else value for value, example in zip(values, examples, strict=True)]
    return Graph(graph_module, tuple(names or (node.target for node in nodes)), tuple(values), name)


@dataclass(eq=False)
class Graph:
    """A graph, to be traced for the sizes of its inputs.

    Attributes:
        names: of the placeholders.
        values: what PyTorch says of them.
        title: of the program.
    """

    module: fx.GraphModule
    names: tuple[str, ...]
    values: tuple[Any, ...]
    title: str

    @property
    def is_random(self) -> bool:
        return _draws(self.module)

    @property
    def taken(self) -> list[int]:
        """The placeholders that are parameters of the program."""
        return [number for number, value in enumerate(self.values) if isinstance(value, _TAKEN)]

    @property
    def shapes(self) -> list[Shape]:
        """Of all parameters, -1 for sizes that are known at a call only."""
        shapes = [_shape_of(self.values[number]) for number in self.taken]
        return [*shapes, Shape.array("s64")] if self.is_random else shapes

    @property
    def size_parameters(self) -> tuple[int, ...]:
        """Parameters whose elements decide sizes: the numbers among them."""
        return tuple(n for n, number in enumerate(self.taken) if isinstance(self.values[number], torch.SymInt))

    def parameters(self) -> list[Parameter]:
        names = [self.names[number] for number in self.taken] + ([SEED] if self.is_random else [])
        return [Parameter(name, shape) for name, shape in zip(names, self.shapes, strict=True)]

    def specialize(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> Program:
        """The program for inputs of these shapes. Raises ArgumentError for shapes that the graph does not take."""
        for given, parameter in zip(shapes, self.parameters(), strict=True):
            wanted = parameter.shape
            sizes = zip(given.dimensions, wanted.dimensions, strict=False)
            if given.rank != wanted.rank or any(size != bound and bound >= 0 for size, bound in sizes):
                raise ArgumentError(f"argument {parameter.name!r}: expected {wanted}, got {given}")
        taken = self.taken
        tensors = [self.values[number] for number in taken]
        check_sizes(tensors, [self.names[number] for number in taken], shapes[: len(taken)])
        return self.traced(shapes, {number: int(values[number]) for number in self.size_parameters})

    def function(
        self, known: Mapping[int, int], largest: Mapping[Any, int] | None = None
    ) -> Callable[..., tuple[Any, ...]]:
        """The graph as a function of JAX's arrays, one a parameter; numbers among these are those of ``known``.

        Args:
            largest: of the symbols that stay open, whose real sizes are the last arrays.
        """
        taken, largest = self.taken, largest or {}

        def main(*arguments: Any) -> tuple[Any, ...]:
            first = len(arguments) - len(largest)
            given, reals = list(arguments[:first]), arguments[first:]
            interpreter = Interpreter(given.pop() if self.is_random else None)
            for (symbol, extent), real in zip(largest.items(), reals, strict=True):
                interpreter.sizes.open(symbol, extent, real)
            values = list(self.values)
            for number, (place, argument) in enumerate(zip(taken, given, strict=True)):
                values[place] = known.get(number, argument)
            outputs = flat(interpreter.run(self.module, values))
            pairs = [
                (output, node)
                for output, node in zip(outputs, self._outputs(), strict=True)
                if _is_result(output) or _is_size(node)
            ]
            results = [_result(output, node) for output, node in pairs]
            return *results, *(count for _, node in pairs for _, count in _counts(node, interpreter.sizes))

        main.__name__ = self.title
        return main

    def traced(self, shapes: Sequence[Shape], known: Mapping[int, int]) -> Program:
        """The program for static shapes; numbers among the inputs are those of ``known``."""
        parameters = [Parameter(p.name, s) for p, s in zip(self.parameters(), shapes, strict=True)]
        return cut(self._lowered(self.function(known), parameters), self._cuts())

    def _lowered(self, function: Callable[..., Any], parameters: Sequence[Parameter]) -> Program:
        platform.register()
        with jax.enable_x64(True):
            avals = [jax.ShapeDtypeStruct(p.shape.dimensions, _numpy(p.shape)) for p in parameters]
            traced = jax.jit(function, keep_unused=True).trace(*avals)
            lowered = traced.lower(lowering_platforms=(platform.PLATFORM,))
            program = api.as_program(lowered)
        program.signature = replace(program.signature, parameters=tuple(parameters))
        program.signature.attach(program.module)
        program.name = program.source = self.title
        return program

    def bounded_sizes(self) -> tuple[BoundedSize, ...]:
        """The open sizes of arguments, with their bounds. Raises UnsupportedError as of ``bounds_of``."""
        if self.size_parameters:
            raise UnsupportedError("a number among the arguments decides sizes")
        return tuple(size for _, size in self._bounded())

    def _bounded(self) -> list[tuple[Any, BoundedSize]]:
        taken = self.taken
        return bounds_of([self.values[number] for number in taken], [self.names[number] for number in taken])

    def padded(self, extents: Sequence[int]) -> Padded:
        """The program for all sizes that are at most these, one for each of ``bounded_sizes``.

        Raises:
            UnsupportedError: an operator without a rule for padding.
        """
        bounded = self._bounded()
        dimensions = [list(parameter.shape.dimensions) for parameter in self.parameters()]
        for (_, size), extent in zip(bounded, extents, strict=True):
            for place in size.places:
                dimensions[place.parameter][place.dimension] = place.factor * extent + place.rest
        given = zip(self.parameters(), dimensions, strict=True)
        parameters = [Parameter(p.name, Shape.array(p.shape.element, *sizes)) for p, sizes in given]
        parameters += [Parameter(f"size of {size.name}", Shape.array("s64")) for _, size in bounded]
        largest = {symbol: extent for (symbol, _), extent in zip(bounded, extents, strict=True)}
        environments = [size.node.shape_env for each in self.values for size in _open_sizes(each)]
        # All guards are checked (``check_sizes``).
        equal = equalities(environments[0]) if environments else []
        choices = Choices({symbol: (1, extent) for symbol, extent in largest.items()}, equal)
        with opened(choices):
            return Padded(self._lowered(self.function({}, largest), parameters), tuple(self._cuts()))

    def check_sizes(self, dimensions: Sequence[Sequence[int]]) -> None:
        """Refuse sizes for which the graph was not traced. Raises ArgumentError."""
        taken = self.taken
        shapes = [Shape.array(p.shape.element, *sizes) for p, sizes in zip(self.parameters(), dimensions, strict=True)]
        names = [self.names[number] for number in taken]
        check_sizes([self.values[number] for number in taken], names, shapes[: len(taken)])

    def _cuts(self) -> list[tuple[int, int]]:
        """The results' dimensions whose sizes the last results tell, in order."""
        return [(n, d) for n, node in enumerate(self._results()) for d in open_dims(node.meta["val"])]

    def _results(self) -> list[fx.Node]:
        """The outputs that the program has, which are tensors and numbers."""
        return [leaf for leaf in self._outputs() if isinstance(leaf, fx.Node) and _has_shape(leaf) and not _tells(leaf)]

    def _outputs(self) -> list[Any]:
        """What the graph returns, leaf by leaf: nodes and constants."""
        return flat(next(node for node in self.module.graph.nodes if node.op == "output").args[0])

    def placeholder(self) -> Program:
        """The program as far as it is known without sizes."""
        builder: Builder[Program] = Builder(self.title, Program)
        with builder:
            given = [builder.parameter(n, p.shape, p.name) for n, p in enumerate(self.parameters())]
            shapes = [_shape_of(leaf.meta["val"]) for leaf in self._results()]
            results = [ops.custom_call(GRAPH, given, shape) for shape in shapes]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        program.source = self.title
        program.template = self
        return program


def _open_sizes(value: Any) -> list[torch.SymInt]:
    sizes = value.shape if isinstance(value, torch.Tensor) else ()
    return [size for size in sizes if isinstance(size, torch.SymInt)]


def _has_shape(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), _TAKEN)


def _tells(output: fx.Node) -> bool:
    """Whether an output is a token, which only tells the order of effects."""
    if output.op == "placeholder":
        return is_token(output)
    source = output.args[0] if output.target is operator.getitem and output.args[1] == 0 else None
    return isinstance(source, fx.Node) and source.target is torch.ops.higher_order.with_effects


def _is_result(output: Any) -> bool:
    return isinstance(output, jax.Array | np.ndarray)


def _is_size(node: Any) -> bool:
    """Whether a leaf of what a graph returns is a number that PyTorch does not know when it traces."""
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), _NUMBERS)


def _counts(node: Any, sizes: Sizes) -> list[tuple[int, Any]]:
    """The open dimensions of a result, and their sizes."""
    value: Any = node.meta.get("val") if isinstance(node, fx.Node) else None
    return [(d, jnp.asarray(sizes.real(value.shape[d])).astype(np.int32)) for d in open_dims(value)]


def _result(output: Any, node: Any) -> Any:
    """An output as an array, also if it is a number that sizes decide."""
    return output if _is_result(output) else jnp.asarray(output, _numpy(_shape_of(node.meta["val"])))


def _numpy(shape: Shape) -> np.dtype[Any]:
    assert shape.element is not None  # inputs are arrays
    return np.dtype(shape.element.dtype)


def _shape_of(value: Any) -> Shape:
    """The shape of what PyTorch calls a tensor or number."""
    if isinstance(value, torch.Tensor):
        sizes = [size if isinstance(size, int) else -1 for size in value.shape]
        return Shape.array(element_type(dtype_of(value.dtype)), *sizes)
    if isinstance(value, torch.SymBool):
        return Shape.array("pred")
    return Shape.array("s64" if isinstance(value, torch.SymInt) else "f64")


def _draws(graph_module: fx.GraphModule) -> bool:
    """Whether an operator of a graph draws random numbers."""
    return any(map(is_random, calls(graph_module)))
