"""Outputs that share memory with an input or with each other.

AOTAutograd makes many of these again, as views of what they share memory with. Where sizes are symbolic, inputs overlap
or an input gets other strides, all that it knows of the view is what the graph returned: its sizes, strides and storage
offset. Others, such as ``y`` and ``y[0]`` without gradients, it hands on as the graph returns them, so that two which
have elements in common must lie in one memory: who changes one sees it in the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import fx
from torch._functorch.aot_autograd import OutputType
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

_VIEWS = (
    OutputType.alias_of_input,
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_save_as_output,
    OutputType.alias_of_intermediate_base_is_user_output,
)


@dataclass(frozen=True)
class Shared:
    """What AOTAutograd makes of a graph's outputs that share memory.

    Attributes:
        again: the outputs that it makes again by the strides and the offset of what the graph returns: their numbers,
            and that of the input that they share memory with, if they do with an input.
        own: the outputs that callers get as the graph returns them.
    """

    again: Mapping[int, int | None] = field(default_factory=dict)
    own: tuple[int, ...] = ()

    def is_in(self, graph: fx.GraphModule) -> bool:
        """Whether outputs of a graph may have to lie at a place of their own."""
        return bool(self.again) or any(_groups(graph, self.own))


def shared_outputs() -> Shared:
    """Those of the graph that AOTAutograd is compiling."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return Shared()
    first = len(metadata.tokens) + metadata.num_mutated_inp_runtime_indices
    again: dict[int, int | None] = {}
    own = []
    for number, info in enumerate(metadata.output_info, first):
        if info.output_type not in _VIEWS:
            own.append(number)
        elif not _is_replayed(info.view_meta_sequence):
            again[number] = info.base_idx if info.output_type is OutputType.alias_of_input else None
    return Shared(again, tuple(own))


def _is_replayed(views: Any) -> bool:
    """Whether AOTAutograd knows how an output is viewed: not by symbols, nor after inputs got other strides."""
    return views is not None and not any(view.has_symbolic_inputs for view in views.sequence)


@dataclass(frozen=True)
class Placement:
    """Where PyTorch has the elements of an output.

    Attributes:
        output: its number.
        sizes, strides: of the output.
        offset: from the first element of what it shares memory with.
        base: the number of the input that this is, if it is one.
    """

    output: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    base: int | None

    @property
    def end(self) -> int:
        """The number of elements of the memory up to its last one."""
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        return self.offset + (0 if 0 in self.sizes else last + 1)

    def place(self, results: list[Any], arguments: Sequence[Any]) -> None:
        """Give the output these strides, at the offset of what it shares memory with."""
        tensor = results[self.output]
        start = arguments[self.base].storage_offset() if self.base is not None else 0
        results[self.output] = found = self.within(tensor.new_empty(start + self.end), start)
        self.write(found, tensor)

    def within(self, memory: torch.Tensor, start: int) -> torch.Tensor:
        """The output in some memory, no view of PyTorch's: AOTAutograd would take the memory for what is viewed."""
        return memory.new_empty(0).set_(memory.untyped_storage(), start + self.offset, self.sizes, self.strides)

    def write(self, found: torch.Tensor, tensor: torch.Tensor) -> None:
        """Copy the elements of a tensor into the output."""
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in self.strides)
        found[once].copy_(tensor[once])


@dataclass(frozen=True)
class Together:
    """Outputs that have elements in common, as ``y`` and ``y[0]`` do.

    Attributes:
        views: each once, with the numbers of the outputs that are it.
        size: of their memory, in elements.
        is_spanned: whether the first one has all of these.
    """

    views: tuple[tuple[Placement, tuple[int, ...]], ...]
    size: int
    is_spanned: bool

    def place(self, results: list[Any], arguments: Sequence[Any]) -> None:
        """Have the outputs lie in one memory: that of the first one, if it has all elements."""
        first = self.views[0][0]
        tensor = results[first.output]
        is_there = self.is_spanned and tensor.stride() == first.strides
        memory = tensor if is_there else tensor.new_empty(self.size)
        for view, numbers in self.views[is_there:]:
            found = view.within(memory, memory.storage_offset())
            if not is_there:
                view.write(found, results[view.output])
            for number in numbers:
                results[number] = found


def placements(
    graph: fx.GraphModule, shared: Shared, at: Callable[[Any], int | None] | None = None
) -> list[Placement | Together]:
    """Where a graph has those of its outputs that share memory.

    Args:
        at: what a size, stride or offset is; an output of which it does not know one is left out.
    """
    at = at or _known
    returned: Any = _returned(graph)
    starts = _starts(graph)

    def placement(number: int, base: int | None) -> Placement | None:
        value = returned[number].meta["val"]
        offset = at(value.storage_offset() - starts.get(_memory(value), 0))
        sizes, strides = tuple(map(at, value.shape)), tuple(map(at, value.stride()))
        if offset is None or not _are_known(sizes) or not _are_known(strides):
            return None
        return Placement(number, sizes, strides, offset, base)

    found: list[Placement | Together | None] = [
        placement(number, base)
        for number, base in shared.again.items()
        if _is_tensor(returned[number]) and returned[number].op != "placeholder"
    ]
    for group in _groups(graph, shared.own):
        views = [(placement(numbers[0], None), numbers) for numbers in group]
        found.append(_together([(view, numbers) for view, numbers in views if view is not None]))
    return [each for each in found if each is not None]


def _together(views: list[tuple[Placement, tuple[int, ...]]]) -> Together | None:
    """None if no element is in two of the views: then nobody sees that their memory is one."""
    size = max((view.end for view, _ in views), default=0)
    marks = np.zeros(size, np.bool_)
    has_common = False
    for view, _ in views:
        if 0 not in view.sizes:
            seen = np.lib.stride_tricks.as_strided(marks[view.offset :], view.sizes, view.strides)
            has_common = has_common or bool(seen.any())
            seen[...] = True
    if not has_common:
        return None
    views = sorted(views, key=lambda each: -math.prod(each[0].sizes))
    first = views[0][0]
    is_spanned = first.offset == 0 and math.prod(first.sizes) == size and 0 not in first.strides
    return Together(tuple(views), size, is_spanned)


def _groups(graph: fx.GraphModule, own: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """The numbers of outputs of the same memory, which is no input's; those of one value are together.

    Not conjugates and negatives, which PyTorch makes when they are read.
    """
    returned, starts = _returned(graph), _starts(graph)
    found: dict[tuple[int, torch.dtype], dict[fx.Node, tuple[int, ...]]] = {}
    for number in own:
        node = returned[number]
        if not _is_tensor(node):
            continue
        value = node.meta["val"]
        if _memory(value) not in starts and not value.is_conj() and not value.is_neg():
            views = found.setdefault((_memory(value), value.dtype), {})
            views[node] = (*views.get(node, ()), number)
    return [list(views.values()) for views in found.values() if len(views) > 1]


def _returned(graph: fx.GraphModule) -> Any:
    return next(iter(reversed(graph.graph.nodes))).args[0]


def _starts(graph: fx.GraphModule) -> dict[int, Any]:
    """The offsets of the inputs, by their memory."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder" and _is_tensor(node)]
    return {_memory(node.meta["val"]): node.meta["val"].storage_offset() for node in nodes}


def _is_tensor(node: Any) -> bool:
    """Whether an output is a dense tensor."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _memory(tensor: torch.Tensor) -> int:
    number: int = tensor.untyped_storage()._cdata
    return number


def _known(size: Any) -> int | None:
    """A size; None of one that elements decide."""
    try:
        return int(size)
    except GuardOnDataDependentSymNode:
        return None


def _are_known(numbers: tuple[int | None, ...]) -> TypeGuard[tuple[int, ...]]:
    return None not in numbers
