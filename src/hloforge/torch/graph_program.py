"""Graphs of ATen operators as programs on tensors: compiled for fixed sizes, called with tensors of the CPU."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from hloforge import api
from hloforge.jax import platform
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.devices import devices
from hloforge.runtime.session.session import Session
from hloforge.torch.bounded.sizes import Sizes, open_dims, opened
from hloforge.torch.compiled import draw_seed
from hloforge.torch.direct import Direct, pytorch
from hloforge.torch.frozen import Weights, fixed_nodes, taken_out
from hloforge.torch.interpreter import Interpreter, calls, check, is_token
from hloforge.torch.memory import Argument, Order, Range, Result, detach, inverse, order_of
from hloforge.torch.open_sizes import Bucket, cut, padded
from hloforge.torch.registry import is_random
from hloforge.torch.types import dtype_of, torch_dtype_of

# Choices of sizes that the program of a bucket remembers.
_KEPT = 4096


@dataclass(frozen=True)
class Output:
    """Where one output of a graph comes from.

    Attributes:
        argument: the number of the argument that is returned as it came.
        result: the number of the program's result.
        value: what it always is, if it is neither.
        is_number: whether the result is a number of Python's, not a tensor.
        sizes: dimensions that are padded, with the number of the result that is their real size.
        said: what PyTorch says of it, if sizes of arguments decide it or its sizes.
    """

    argument: int | None = None
    result: int | None = None
    value: Any = None
    is_number: bool = False
    sizes: tuple[tuple[int, int], ...] = ()
    said: Any = None


@dataclass(frozen=True)
class _Loaded:
    """A program that is loaded, and how tensors go in and out.

    Attributes:
        state: of its weights when it was loaded (``Weights.state``).
        constants: views of what comes first.
        arguments: by the number of the graph's input.
        borrowed: the memory of the weights.
        direct: whether tensors are handed over as they are.
        inside: the parameters that results lie in, by the numbers of these.
        changed: the numbers of the graph's inputs that a call may overwrite.
    """

    session: Session
    state: Any
    constants: tuple[Any, ...]
    arguments: tuple[tuple[int, Argument], ...]
    results: tuple[Result, ...]
    borrowed: tuple[Range, ...]
    direct: Direct
    inside: Mapping[int, int]
    changed: frozenset[int]


@dataclass(frozen=True)
class _Cuts:
    """How a call of some sizes goes, in a program for a range of them.

    Attributes:
        numbers: the sizes, as arrays.
        reals: IREE's views of them.
        short: the numbers of the arguments that are padded.
        outputs: by the number of an output, its value, or its sizes with the order of its dimensions in memory. Those
            that are whole results are left out.
    """

    numbers: tuple[np.ndarray[Any, Any], ...]
    reals: tuple[Any, ...]
    short: tuple[int, ...]
    outputs: Mapping[int, Any]


class RoomError(Exception):
    """A loop made more turns than its program keeps the values of.

    Attributes:
        turns: as many.
    """

    def __init__(self, turns: int) -> None:
        super().__init__(f"a loop made {turns} turns")
        self.turns = turns


class GraphProgram:
    """A graph compiled for fixed sizes, or for those of a bucket. Calls are safe from several threads at once.

    Args:
        graph: of functional ATen operators; its outputs are a list of tensors, integers and None.
        inputs: what it is called with: tensors (only sizes, strides and types are looked at) and integers, which
            become constants.
        name: of the program.
        target, options: as of ``hloforge.compile``.
        frozen: numbers of tensors that seldom change. They are no arguments: the program is loaded again when one of
            them lies elsewhere or was changed in place since the last call, and what depends on them alone is computed
            then.
        changed: numbers of tensors whose new values are the first outputs, in this order: such an output may be the
            tensor itself, changed in place.
        bucket: sizes up to which the program computes, where those of the graph are symbols; ``inputs`` are then
            arguments of a call.
        room: how many turns of a loop have their values kept for its gradient.

    Attributes:
        executable: the vmfb and its manifest.

    Raises:
        UnsupportedError: operators that are not imported, or have no rule for padding, by name with the lines of the
            user's program.
        ArgumentError: an input is sparse, or not on the CPU.
        Errors as of ``hloforge.compile``.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        inputs: Sequence[Any],
        name: str,
        target: Target | str = "cpu",
        *,
        frozen: Collection[int] = (),
        changed: Sequence[int] = (),
        bucket: Bucket | None = None,
        room: int = 1,
        **options: Any,
    ) -> None:
        platform.register()
        self._changed = changed
        inputs = _without_tokens(graph, inputs)
        self._bucket, self._cuts, self._room = bucket, dict[tuple[int, ...], _Cuts](), room
        with nullcontext() if bucket is None else opened(bucket.choices):
            check(graph)
            if bucket is not None:
                inputs = bucket.likes(inputs)
            self._compile(graph, inputs, name, target, frozen, options)

    def _compile(
        self,
        graph: fx.GraphModule,
        inputs: list[Any],
        name: str,
        target: Target | str,
        frozen: Collection[int],
        options: Mapping[str, Any],
    ) -> None:
        self._weights = weights = Weights(graph, inputs, frozen)
        graph, self._inputs = weights.graph, weights.inputs
        numbers = [n for n, each in enumerate(self._inputs) if isinstance(each, torch.Tensor)]
        self._varying = [n for n in numbers if n not in weights.numbers]
        self._draws = draws(graph)
        has_doubles = all(each.kind == "cpu" for each in parse_targets(target))
        self._traced = traced = _Traced(graph, self._inputs, self._bucket, room=self._room, has_doubles=has_doubles)
        self._changed = () if weights.numbers else _with_own_values(graph, self._inputs, self._changed)
        given_up = [numbers.index(n) for n in self._changed]
        lowered = traced.lower(name, with_seed=self._draws, given_up=given_up)
        self._outputs = traced.outputs
        self._places = _places(traced.outputs)
        self._constants = [np.asarray(each) for each in platform.constant_arguments(lowered)]
        fixed = fixed_nodes(graph, weights.numbers)
        self._fixed = [node in fixed for node in traced.nodes]
        places = {len(self._constants) + numbers.index(n): n for n in weights.numbers}
        self.executable = api.compile(taken_out(api.as_program(lowered), places), target, **options)
        self._loaded = None if places else self._load(inputs)
        if self._loaded is not None and not self._changes_as_wanted(self._loaded):
            self._changed = ()
            self._compile(graph, inputs, name, target, frozen, options)

    def _changes_as_wanted(self, loaded: _Loaded) -> bool:
        """Whether results that lie in arguments are the new values of these."""
        outputs = [output.result for output in self._outputs[: len(self._changed)]]
        wanted = dict(zip(outputs, self._changed, strict=False))
        count = len(loaded.constants)
        found = {result: parameter - count for result, parameter in loaded.session.overwrites.items()}
        if found and self._traced.turns:
            return False  # a call that has too little room is made again
        return all(
            n in range(len(loaded.arguments)) and loaded.arguments[n][0] == wanted.get(r) for r, n in found.items()
        )

    def _load(self, tensors: Sequence[Any]) -> _Loaded:
        """The program with the weights among these tensors."""
        device = devices.device("local-sync")
        state, arrays, borrowed = self._weights.taken(tensors)
        session = self.executable.load(weights=arrays) if arrays else self.executable.load()
        count = len(self._constants)
        constants = tuple(session.put(each, n).buffer_view for n, each in enumerate(self._constants))
        arguments = tuple(
            (n, Argument(self._inputs[n], codec, device))
            for n, codec in zip(self._varying, session.parameters[count:], strict=False)
        )
        results = tuple(
            Result(codec, order, dtype, device, is_fixed=is_fixed)
            for codec, (order, dtype), is_fixed in zip(session.results, self._traced.results, self._fixed, strict=True)
        )
        direct = Direct([argument for _, argument in arguments], results)
        changed = frozenset(self._changed)
        return _Loaded(session, state, constants, arguments, results, borrowed, direct, session.overwrites, changed)

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Run the graph.

        Raises:
            ArgumentError: a tensor of other sizes, type or device.
            ExecutionError: the program failed.
            RoomError: a loop made more turns than there is room for.
        """
        loaded = self._loaded
        if loaded is None or (self._weights.numbers and loaded.state != self._weights.state(arguments)):
            loaded = self._loaded = self._load(arguments)
        session = loaded.session
        cuts = None if self._bucket is None else self._cuts_of(session, loaded, arguments)
        given = arguments
        if cuts is not None and cuts.short:
            given = list(arguments)
            for n in cuts.short:
                given[n] = padded(given[n], self._inputs[n])
        seed = np.array(draw_seed(), np.int64) if self._draws else None
        tensors = self._written(loaded, given, seed, cuts) if session.writes else None
        if tensors is None:
            borrowed = list(loaded.borrowed)
            if loaded.changed:
                given = [each.clone() if n in loaded.changed else each for n, each in enumerate(given)]
            views = [argument.view(given[n], borrowed) for n, argument in loaded.arguments]
            if seed is not None:
                views.append(session.put(seed, len(loaded.constants) + len(views)).buffer_view)
            found = session.call_views([*loaded.constants, *views, *(() if cuts is None else cuts.reals)])
            tensors = [result.tensor(view) for result, view in zip(loaded.results, found, strict=True)]
            detach(tensors, loaded.results, borrowed)
        if self._traced.turns and (turns := max(int(tensors[n]) for n in self._traced.turns)) > self._room:
            raise RoomError(turns)
        if self._places is not None:
            results: list[Any] = [tensors[n] if n >= 0 else arguments[~n] for n in self._places]
        else:
            results = [_taken(output, arguments, tensors) for output in self._outputs]
        for n, how in () if cuts is None else cuts.outputs.items():
            results[n] = cut(results[n], *how) if isinstance(how, tuple) else how
        return results

    def _written(
        self, loaded: _Loaded, tensors: Sequence[Any], seed: np.ndarray[Any, Any] | None, cuts: _Cuts | None
    ) -> list[torch.Tensor] | None:
        """The results of a call without IREE's runtime; None if the tensors are not what the program takes."""
        taken = [tensors[n] for n, _ in loaded.arguments]
        others = [] if seed is None else [seed]
        if cuts is not None:
            others += cuts.numbers
        if loaded.direct.fits(taken):
            inside, count = loaded.inside, len(self._constants)
            tensors = [
                taken[inside[n] - count] if n in inside else result.new() for n, result in enumerate(loaded.results)
            ]
            if loaded.session.write([*self._constants, *taken, *others], tensors, pytorch()):
                return tensors
        if loaded.inside:
            return None
        found = [argument.array(tensor) for (_, argument), tensor in zip(loaded.arguments, taken, strict=True)]
        given = [array for array in found if array is not None]
        if len(given) < len(found):
            return None
        arrays = [*self._constants, *given, *others]
        made = [result.empty() for result in loaded.results]
        if not loaded.session.write(arrays, made, pytorch()):
            return None
        return [result.of(array) for result, array in zip(loaded.results, made, strict=True)]

    def _cuts_of(self, session: Session, loaded: _Loaded, arguments: Sequence[Any]) -> _Cuts:
        """How calls of these sizes go."""
        assert self._bucket is not None
        sizes = self._bucket.sizes
        numbers = sizes.numbers(arguments)
        if (found := self._cuts.get(numbers)) is not None:
            return found
        short = tuple(n for n, _ in loaded.arguments if arguments[n].shape != self._inputs[n].shape)
        outputs: dict[int, Any] = {}
        for number, output in enumerate(self._outputs):
            if isinstance(output.said, torch.Tensor):
                place = sizes.placed(output.said, numbers)
                if output.result is None or output.sizes or not loaded.results[output.result].lies(*place):
                    outputs[number] = place
            elif output.said is not None:
                outputs[number] = sizes.at(output.said, numbers)
        first = len(loaded.constants) + len(loaded.arguments) + self._draws
        arrays = tuple(np.array(number, np.int64) for number in numbers)
        reals = tuple(session.put(array, first + n).buffer_view for n, array in enumerate(arrays))
        if len(self._cuts) >= _KEPT:
            self._cuts.clear()
        self._cuts[numbers] = _Cuts(arrays, reals, short, outputs)
        return self._cuts[numbers]


def _with_own_values(graph: fx.GraphModule, inputs: Sequence[Any], changed: Sequence[int]) -> Sequence[int]:
    """The numbers of changed tensors, if each has a new value of its own that lies in memory as it does; else none."""
    end = next(iter(reversed(graph.graph.nodes)))
    values = list(end.args[0])[: len(changed)]
    if len(set(values)) < len(changed) or any(not isinstance(v, fx.Node) or v.op == "placeholder" for v in values):
        return ()
    pairs = [(inputs[n], value.meta.get("val")) for n, value in zip(changed, values, strict=True)]
    if not all(isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) for one, other in pairs):
        return ()
    is_same = (
        one.shape == other.shape and one.dtype is other.dtype and order_of(one) == order_of(other)
        for one, other in pairs
    )
    return changed if all(is_same) else ()


def _places(outputs: Sequence[Output]) -> list[int] | None:
    """The numbers of the outputs' results, and of arguments as ``~n``; None if there are outputs of other kinds."""
    places = []
    for output in outputs:
        if output.argument is not None:
            places.append(~output.argument)
        elif output.result is not None and not output.is_number and not output.sizes:
            places.append(output.result)
        else:
            return None
    return places


def _taken(output: Output, arguments: Sequence[Any], results: Sequence[torch.Tensor]) -> Any:
    if output.argument is not None:
        return arguments[output.argument]
    if output.result is None:
        return output.value
    found = results[output.result]
    if output.is_number:
        return found.item()
    for dimension, number in output.sizes:
        found = found.narrow(dimension, 0, int(results[number]))
    return found.contiguous() if output.sizes else found


def _without_tokens(graph: fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """The inputs with None for those that only tell the order of effects, for which a call has no tensor."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    return [None if is_token(node) else each for node, each in zip(nodes, inputs, strict=True)]


def draws(graph: fx.GraphModule) -> bool:
    """Whether random numbers are drawn."""
    return any(map(is_random, calls(graph)))


class _Traced:
    """A graph as a function of JAX's arrays, in the order in which tensors lie in memory.

    Attributes:
        outputs: of the graph.
        results: of each result of the function: the order of its dimensions, and its element type.
        nodes: of the results.
        turns: the numbers of the results that say how many turns loops made whose values are kept.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        inputs: Sequence[Any],
        bucket: Bucket | None = None,
        *,
        room: int = 1,
        has_doubles: bool = False,
    ) -> None:
        self._graph, self._inputs, self._bucket, self._room = graph, inputs, bucket, room
        self._has_doubles = has_doubles
        self._orders = [order_of(each) if isinstance(each, torch.Tensor) else None for each in inputs]
        self.outputs: list[Output] = []
        self.results: list[tuple[Order, torch.dtype]] = []
        self.nodes: list[fx.Node] = []
        self.turns = range(0)

    def lower(self, name: str, *, with_seed: bool, given_up: Sequence[int] = ()) -> Any:
        """What JAX lowers the graph to.

        Args:
            given_up: numbers of tensors in whose memory results may lie; the first results of their sizes, in order.
            with_seed: whether a parameter follows that is a seed, ``s64[]``; after it come the sizes of a bucket.
        """
        reals = 0 if self._bucket is None else len(self._bucket.extents)

        def function(*arrays: Any) -> list[Any]:
            first = len(arrays) - reals
            given = arrays[: first - with_seed]
            return self._run(given, arrays[first - 1] if with_seed else None, arrays[first:])

        function.__name__ = name
        pairs = zip(self._inputs, self._orders, strict=True)
        with jax.enable_x64(True):
            shapes = [_aval(each, order) for each, order in pairs if order is not None]
            shapes += [jax.ShapeDtypeStruct((), np.int64)] * (with_seed + reals)
            traced = jax.jit(function, keep_unused=True, donate_argnums=tuple(given_up)).trace(*shapes)
            return traced.lower(lowering_platforms=(platform.PLATFORM,))

    def _run(self, arrays: Sequence[Any], seed: Any, reals: Sequence[Any]) -> list[Any]:
        interpreter = Interpreter(seed, self._room, has_doubles=self._has_doubles)
        if self._bucket is not None:
            self._bucket.open_in(interpreter.sizes, reals)
        given = iter(arrays)
        arguments = [
            interpreter.sizes.real(each) if order is None else next(given).transpose(inverse(order))
            for each, order in zip(self._inputs, self._orders, strict=True)
        ]
        found = interpreter.run(self._graph, arguments)
        end = next(iter(reversed(self._graph.graph.nodes)))
        results, turns = self._returned(end.args[0], found, interpreter.sizes), interpreter.sizes.turns
        self.turns = range(len(results), len(results) + len(turns))
        self.results += [((), torch.int64)] * len(turns)
        self.nodes += [end] * len(turns)
        return [*results, *turns]

    def _returned(self, nodes: Any, values: Sequence[Any], sizes: Sizes) -> list[Any]:
        """The results; each once, though it may be several outputs."""
        places = {node: n for n, node in enumerate(n for n in self._graph.graph.nodes if n.op == "placeholder")}
        numbers: dict[fx.Node, int] = {}
        results: list[Any] = []
        counted: dict[fx.Node, tuple[tuple[int, int], ...]] = {}
        self.outputs, self.results, self.nodes = [], [], []

        def add(node: fx.Node, value: Any, order: Order, dtype: torch.dtype) -> int:
            self.results.append((order, dtype))
            self.nodes.append(node)
            results.append(value.transpose(order))
            return len(results) - 1

        for node, value in zip(nodes, values, strict=True):
            if not isinstance(node, fx.Node):
                self.outputs.append(Output(value=value))
            elif node in places:
                self.outputs.append(Output(argument=places[node]))
            elif self._follows(node.meta.get("val")):
                self.outputs.append(Output(said=node.meta["val"]))
            elif not isinstance(value, jax.Array | np.ndarray):
                self.outputs.append(Output(value=value))
            else:
                said = node.meta["val"]
                is_number = not isinstance(said, torch.Tensor)  # such as a counter of a while_loop
                if node not in numbers:
                    order = tuple(range(value.ndim)) if is_number else self._order(said)
                    numbers[node] = add(node, value, order, torch_dtype_of(value.dtype) if is_number else said.dtype)
                    counted[node] = tuple(
                        (d, add(node, jnp.asarray(sizes.real(said.shape[d])), (), torch.int64))
                        for d in open_dims(said)
                        if free_unbacked_symbols(said.shape[d])
                    )
                is_cut = self._bucket is not None and isinstance(said, torch.Tensor) and bool(open_dims(said))
                self.outputs.append(
                    Output(
                        result=numbers[node],
                        is_number=is_number,
                        sizes=counted[node],
                        said=said if is_cut else None,
                    )
                )
        return results

    def _follows(self, said: Any) -> bool:
        """Whether a number follows from the sizes of the arguments."""
        return self._bucket is not None and isinstance(said, torch.SymInt) and not free_unbacked_symbols(said)

    def _order(self, said: torch.Tensor) -> Order:
        """In which the dimensions of a result lie in memory."""
        if self._bucket is None:
            return tuple(range(said.ndim)) if open_dims(said) else order_of(said)
        return self._bucket.sizes.placed(said, self._bucket.extents)[1]


def _aval(tensor: torch.Tensor, order: Order) -> Any:
    return jax.ShapeDtypeStruct([tensor.shape[d] for d in order], dtype_of(tensor.dtype))
