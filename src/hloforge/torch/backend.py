"""``torch.compile(model, backend="hloforge")``: the graphs that Dynamo captures, and their gradients, on IREE.

AOTAutograd makes functional graphs of ATen operators of each captured graph, one for the forward and one for the
backward pass; each becomes one program. What Dynamo does not capture runs in PyTorch as ever.

A graph with symbolic sizes (``dynamic=True``) has a program for each bucket of sizes that it is called with
(open_sizes.py). Where an operator has no rule for padding, only the first size, mostly the batch, has buckets, for
each choice of the others; or there is a program for each choice of all. The last ``sizes`` programs are kept in
memory; the cache on disk keeps more.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn.attention import SDPBackend, sdpa_kernel

from hloforge.dialect.errors import CompileError, OptionError, UnsupportedError
from hloforge.runtime.bucket_sizes import sizes_of
from hloforge.torch.aliases import Placement, Shared, Together, placements, shared_outputs
from hloforge.torch.decompositions import decompositions
from hloforge.torch.fewer_sizes import at_sizes, with_first_open
from hloforge.torch.graph_program import GraphProgram, RoomError, draws
from hloforge.torch.open_sizes import Bucket, OpenSizes, end_of, is_nested
from hloforge.torch.recurrent import keep_recurrent

_SIZES = 64
# Turns of a loop whose values a first program keeps.
_ROOM = 32
_OWN = ("target", "fallback", "sizes", "freezing", "buckets", "repeats")
# Calls in a row with the same sizes after which these get a program of their own.
_REPEATS = 3

Program = Callable[[Sequence[Any]], Sequence[Any]]
_Places = Sequence[Placement | Together]


def hloforge(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend of ``torch.compile``.

    Args:
        graph, inputs: what Dynamo captured, and examples of its inputs.
        mode: none but the default.
        options: of ``torch.compile(…, options={…})``: ``target``; ``fallback``, whether graphs that cannot be compiled
            run in PyTorch, with a warning, instead of raising; ``buckets``, whether one program computes for a range of
            symbolic sizes, or the ends of these ranges; ``repeats``, how many calls in a row with the same sizes give
            these a program of their own, 0 for never; ``sizes``, how many programs of a graph are kept; ``freezing``,
            whether parameters and buffers are taken to change seldom where no gradients are computed (frozen.py); and
            those of ``hloforge.compile``.

    Raises:
        UnsupportedError: operators that are not imported, by name with the lines of the user's program.
        OptionError: a mode, or a malformed option.
        Errors as of ``hloforge.compile``; Dynamo wraps all in ``BackendCompilerFailed``.
    """
    if mode is not None and mode != "default":
        raise OptionError(f"mode={mode!r} is none of hloforge's", hint='say what is wanted with options={"…": …}')
    settings = _Settings.of(options or {})
    compiler = aot_autograd(
        fw_compiler=partial(_compiled, settings=settings, name="forward"),
        bw_compiler=partial(_compiled_later, settings=settings, name="backward"),
        inference_compiler=partial(_compiled_for_inference, settings=settings),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    # Attention and recurrent layers in plain operators where there are gradients: those of the fused ones take what
    # only their own kernels save. No memory of saved tensors is reused, so that a graph may be run backward twice.
    keep_recurrent(graph)
    with (
        sdpa_kernel(_kernels_of_attention([*inputs, *graph.parameters()])),
        _without_mkldnn(),
        _with_numbers_of_elements(graph, inputs),
        functorch_config.patch(donated_buffer=False),
    ):
        found: Callable[..., Any] = compiler(graph, inputs)
    return found


def _kernels_of_attention(given: Sequence[Any]) -> list[SDPBackend]:
    """Where no gradients are computed, attention is one operator; what that does not take is plain operators."""
    plain = [SDPBackend.MATH]
    has_gradients = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in given)
    return plain if has_gradients else [SDPBackend.FLASH_ATTENTION, *plain]


@contextmanager
def _without_mkldnn() -> Iterator[None]:
    """Decompositions that do not choose kernels of oneDNN. Not ``mkldnn.flags``, which warns of what is another's."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


@contextmanager
def _with_numbers_of_elements(graph: fx.GraphModule, inputs: Sequence[Any]) -> Iterator[None]:
    """Allow numbers that are elements, as the gradient of a ``while_loop`` has one: the turn it is at.

    Not in other graphs: PyTorch would make a number of each index that is a tensor (``cache[:, place] = row``), and
    fail. Dynamo has broken its own graph at numbers of elements unless it was told not to.
    """
    mode = detect_fake_mode(inputs)
    if mode is None or not torch.is_grad_enabled() or not _has_while_loop(graph):
        yield
        return
    allowed, mode.allow_scalar_outputs = mode.allow_scalar_outputs, True
    try:
        yield
    finally:
        mode.allow_scalar_outputs = allowed


def _has_while_loop(graph: fx.GraphModule) -> bool:
    parts = [part for part in graph.modules() if isinstance(part, fx.GraphModule)]
    loop = torch.ops.higher_order.while_loop
    return any(node.target is loop for part in parts for node in part.graph.nodes)


@dataclass(frozen=True)
class _Settings:
    """What ``options`` of ``torch.compile`` say."""

    target: Any = "cpu"
    fallback: bool = False
    sizes: int = _SIZES
    freezing: bool = False
    buckets: bool | Sequence[int] = True
    repeats: int = _REPEATS
    others: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any]) -> _Settings:
        own = {name: value for name, value in options.items() if name in _OWN}
        if own.get("sizes", 1) < 1:
            raise OptionError(f"sizes={own['sizes']} must be at least 1")
        if own.get("repeats", 0) < 0:
            raise OptionError(f"repeats={own['repeats']} must be 0 or more")
        buckets = own.get("buckets", True)
        if not isinstance(buckets, bool):
            own["buckets"] = sizes_of("sizes", buckets)
        return _Settings(**own, others={name: value for name, value in options.items() if name not in own})


def _compiled_for_inference(graph: fx.GraphModule, inputs: Sequence[Any], *, settings: _Settings) -> Callable[..., Any]:
    """A graph without gradients, its parameters and buffers frozen if that is wanted."""
    frozen = _unchanged_state() if settings.freezing else ()
    return _compiled(graph, inputs, settings=settings, name="inference", frozen=frozen, changed=_changed_inputs())


def _changed_inputs() -> list[int]:
    """The inputs that the graph that is being compiled changes, whose new values are its first outputs."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None or metadata.tokens:
        return []
    changed = list(metadata.mutated_inp_runtime_indices)
    infos = [metadata.input_info[number] for number in changed]
    is_plain = all(info.mutates_data and not info.mutates_metadata for info in infos)
    return changed if is_plain else []


def _unchanged_state() -> list[int]:
    """The inputs of the graph that is being compiled that are parameters and buffers, and are not changed by it."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None or metadata.tokens:  # tokens are before the inputs
        return []
    return [n for n in metadata.static_input_indices if not metadata.input_info[n].mutates_data]


def _compiled(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    settings: _Settings,
    name: str,
    frozen: Sequence[int] = (),
    changed: Sequence[int] = (),
) -> Callable[..., Any]:
    """A graph compiled at once, if its sizes are known."""
    programs = _Programs(graph, inputs, settings, name, frozen, shared_outputs(), changed)
    if programs.is_static:
        programs.program(inputs)
    return _boxed(programs)


def _compiled_later(
    graph: fx.GraphModule, inputs: Sequence[Any], *, settings: _Settings, name: str
) -> Callable[..., Any]:
    """A graph compiled at its first call: many a model that could be trained is only run forward."""
    return _boxed(_Programs(graph, inputs, settings, name))


def _boxed(program: Program) -> Callable[..., Any]:
    """The calling convention of AOTAutograd: one list of arguments, which the callee empties."""

    def call(arguments: list[Any]) -> Any:
        given = list(arguments)
        arguments.clear()
        return program(given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


class _Programs:
    """The programs of a graph, by the sizes that they were compiled for.

    Attributes:
        is_static: whether there is one choice of sizes only.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        inputs: Sequence[Any],
        settings: _Settings,
        name: str,
        frozen: Sequence[int] = (),
        shared: Shared | None = None,
        changed: Sequence[int] = (),
    ) -> None:
        self._graph, self._settings, self._name, self._frozen = graph, settings, name, frozen
        self._changed = changed
        self._shared = shared if shared is not None and shared.is_in(graph) else None
        self._examples = inputs
        self.is_static = not any(_is_symbolic(each) for each in inputs)
        self._open = None if self.is_static or not settings.buckets else _open_sizes(graph)
        # The sizes of which only the first has buckets.
        self._first_open: OpenSizes | None = None
        self._reasons: list[str] = []
        # The sizes of the last call, how many calls in a row had them, and how many have programs of their own.
        self._last: tuple[int, ...] = ()
        self._calls = self._own = 0
        # The last call's sizes with its program, if no later call of these sizes takes another one.
        self._settled: tuple[tuple[int, ...], Program] | None = None
        # A backward pass draws what the forward pass has drawn, in arrays of the same sizes.
        self._repeats = 0 if self._open is None or draws(graph) else settings.repeats
        self._found: OrderedDict[Any, Program] = OrderedDict()
        self._room = _ROOM
        # The program, if there is one choice of sizes only, once it is compiled.
        self._only: Program | None = None
        self._lock = threading.Lock()

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        while True:
            try:
                return (self._only or self.program(arguments))(arguments)
            except RoomError as error:
                self._grow(error.turns)

    def _grow(self, turns: int) -> None:
        """Have loops keep the values of so many turns. A graph is functional, so its program may run again."""
        with self._lock:
            if turns > self._room:
                self._room = end_of(turns)
                self._only = self._settled = None
                self._found.clear()

    def program(self, arguments: Sequence[Any]) -> Program:
        """The program for arguments like these, compiled by whichever thread comes first."""
        with self._lock:
            numbers = () if self._open is None else self._open.numbers(arguments)
            if self._settled is not None and self._settled[0] == numbers:
                return self._settled[1]
            found = self._of_repeated(arguments) or self._of_bucket(arguments)
            if found is not None:
                self._settled = (numbers, found) if self._is_settled(numbers) else None
            else:
                self._settled = None
                found = self._of_first_open(arguments)
            if self._reasons:
                kept = "each choice of sizes but the first one" if self._first_open else "the sizes of each call"
                reason = "; ".join(self._reasons)
                self._reasons = []
                warnings.warn(f"the {self._name} graph is compiled for {kept}: {reason}", stacklevel=2)
            if found is None:
                key = () if self.is_static else tuple(map(_sizes, arguments))
                found = self._kept(key, lambda: self._compile(arguments))
                if self.is_static:
                    self._only = found
        assert found is not None  # or it raises
        return found

    def _is_settled(self, numbers: tuple[int, ...]) -> bool:
        """Whether these sizes keep the program that their last call took, for as long as no others come."""
        if not self._repeats or ("own", *numbers) in self._found:
            return True
        assert self._open is not None
        bucket = self._open.bucket(numbers, self._settings.buckets)
        return bucket is not None and bucket.extents == numbers

    def _of_repeated(self, arguments: Sequence[Any]) -> Program | None:
        """The program of these sizes alone, once so many calls in a row have had them.

        Many choices of sizes need longer rows of calls each, so that compilations stay few among the calls.
        """
        if self._open is None or not self._repeats:
            return None
        numbers = self._open.numbers(arguments)
        key = ("own", *numbers)
        if key not in self._found:
            self._calls = self._calls + 1 if numbers == self._last else 1
            self._last = numbers
            bucket = self._open.bucket(numbers, self._settings.buckets)
            if self._calls < max(self._repeats, self._own) or bucket is None or bucket.extents == numbers:
                return None
            self._own += 1
        return self._kept(key, lambda: self._compile(arguments))

    def _of_bucket(self, arguments: Sequence[Any]) -> Program | None:
        """The program of the bucket of these sizes, if there is one."""
        if self._open is None:
            return None
        bucket = self._open.bucket(self._open.numbers(arguments), self._settings.buckets)
        if bucket is None:
            return None
        return self._kept(bucket.extents, lambda: self._compile_bucket(arguments, bucket))

    def _of_first_open(self, arguments: Sequence[Any]) -> Program | None:
        """The program of these sizes but the first, which has buckets in it, if there is one."""
        sizes = self._first_open
        if sizes is None:
            return None
        return self._kept(("of", *sizes.numbers(arguments)[1:]), lambda: self._compile_first_open(sizes, arguments))

    def _kept(self, key: Any, compile: Callable[[], Program | None]) -> Program | None:
        """The program of a key, compiled if there is none, and not kept if that gives none."""
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
            return found
        found = compile()
        if found is not None:
            self._found[key] = found
            if len(self._found) > self._settings.sizes:
                self._found.popitem(last=False)
        return found

    def _compile_bucket(self, arguments: Sequence[Any], bucket: Bucket) -> Program | None:
        """The program of a bucket; None, from now on, if an operator has no rule for padding."""
        try:
            with unset_fake_temporarily():
                program = GraphProgram(
                    self._graph,
                    arguments,
                    self._name,
                    self._settings.target,
                    frozen=self._frozen,
                    bucket=bucket,
                    room=self._room,
                    **self._settings.others,
                )
        except (UnsupportedError, CompileError) as error:
            self._open = None
            self._first_open = bucket.sizes if len(bucket.extents) > 1 else None
            at = f" ({error.location})" if error.location else ""
            self._reasons = [error.message, *error.notes]
            self._reasons[-1] += at
            return None
        return _PlacedAtSizes(program, self._graph, bucket.sizes, self._shared) if self._shared else program

    def _compile_first_open(self, sizes: OpenSizes, arguments: Sequence[Any]) -> Program | None:
        """The programs of a graph whose first size alone is open; None, from now on, if that has no rules either."""
        if sizes.numbers(arguments)[0] < 2:
            return None
        try:
            with unset_fake_temporarily():
                graph = with_first_open(self._graph, sizes, arguments)
        except (UnsupportedError, RuntimeError):
            self._first_open = None
            return None
        said = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
        programs = _Programs(graph, said, self._settings, self._name, self._frozen, self._shared)
        if programs._of_bucket(arguments) is None:
            if programs._open is None:
                self._first_open = None
            return None
        return programs

    def _compile(self, arguments: Sequence[Any]) -> Program:
        settings = self._settings
        try:
            if self.is_static:
                graph, inputs = self._graph, self._examples
            else:
                inputs = [None if is_nested(each) else each for each in arguments]
                graph = at_sizes(self._graph, inputs)
            placed = placements(graph, self._shared) if self._shared else ()
            # AOTAutograd's mode refuses the constants of a graph, which are tensors with elements.
            with unset_fake_temporarily():
                program = GraphProgram(
                    graph,
                    inputs,
                    self._name,
                    settings.target,
                    frozen=self._frozen,
                    changed=self._changed if self.is_static else (),
                    room=self._room,
                    **settings.others,
                )
            return partial(_placed, program, placed) if placed else program
        except (UnsupportedError, CompileError) as error:
            if not settings.fallback:
                raise
            warnings.warn(f"a graph runs in PyTorch, because hloforge cannot compile it: {error}", stacklevel=2)
            return partial(_eager, self._graph)


class _PlacedAtSizes:
    """A program for a range of sizes whose results share memory in PyTorch."""

    def __init__(self, program: GraphProgram, graph: fx.GraphModule, sizes: OpenSizes, shared: Shared) -> None:
        self._program, self._graph, self._sizes, self._shared = program, graph, sizes, shared
        self._found: dict[tuple[int, ...], _Places] = {}

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        numbers = self._sizes.numbers(arguments)
        placed = self._found.get(numbers)
        if placed is None:
            if len(self._found) >= _SIZES:
                self._found.clear()
            placed = placements(self._graph, self._shared, lambda size: self._sizes.at(size, numbers))
            self._found[numbers] = placed
        return _placed(self._program, placed, arguments)


def _open_sizes(graph: fx.GraphModule) -> OpenSizes | None:
    try:
        return OpenSizes(graph)
    except UnsupportedError:
        return None


def _placed(program: Program, placed: _Places, arguments: Sequence[Any]) -> Sequence[Any]:
    """The results of a program, some of them with strides and offset as PyTorch has them."""
    results = list(program(arguments))
    for each in placed:
        each.place(results, arguments)
    return results


def _eager(graph: fx.GraphModule, arguments: Sequence[Any]) -> Any:
    return graph(*arguments)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not all(isinstance(size, int) for size in (*value.shape, *value.stride()))
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _sizes(value: Any) -> Any:
    if is_nested(value):
        return None
    return (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
