"""Outputs that share memory with an input or with each other.

AOTAutograd makes such an output again, as a view of what it shares memory with. Where sizes are symbolic, all that it
knows of the view is what the graph returned: its sizes, strides and storage offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch import fx
from torch._functorch.aot_autograd import OutputType

_VIEWS = (
    OutputType.alias_of_input,
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_save_as_output,
    OutputType.alias_of_intermediate_base_is_user_output,
)


def shared_outputs() -> dict[int, int | None]:
    """The outputs of the graph that AOTAutograd is compiling that it makes again: their numbers, and that of the input
    that they share memory with, if they do with an input."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return {}
    first = len(metadata.tokens) + metadata.num_mutated_inp_runtime_indices
    return {
        first + number: info.base_idx if info.output_type is OutputType.alias_of_input else None
        for number, info in enumerate(metadata.output_info)
        if info.output_type in _VIEWS
    }


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

    def placed(self, tensor: torch.Tensor, arguments: Sequence[Any]) -> torch.Tensor:
        """A tensor of these strides with the elements of another one."""
        start = self.offset + (arguments[self.base].storage_offset() if self.base is not None else 0)
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        memory = tensor.new_empty(start + last + 1 if tensor.numel() else start)
        # Not by as_strided: AOTAutograd would take the whole memory for the tensor that the view is of.
        found = tensor.new_empty(0).set_(memory.untyped_storage(), start, self.sizes, self.strides)
        once = [slice(0, 1) if stride == 0 else slice(None) for stride in self.strides]
        found[tuple(once)].copy_(tensor[tuple(once)])
        return found


def placements(
    graph: fx.GraphModule, shared: Mapping[int, int | None], at: Callable[[Any], int | None] = int
) -> list[Placement]:
    """Where a graph has some of its outputs, by numbers and inputs as ``shared_outputs`` gives them.

    Args:
        at: what a size, stride or offset is; an output of which it does not know one is left out.
    """
    nodes = list(graph.graph.nodes)
    starts = {
        value.untyped_storage()._cdata: value.storage_offset()
        for value in (node.meta.get("val") for node in nodes if node.op == "placeholder")
        if isinstance(value, torch.Tensor)
    }
    returned: Any = nodes[-1].args[0]
    found = []
    for number, base in shared.items():
        node = returned[number]
        value = node.meta.get("val") if isinstance(node, fx.Node) else None
        if isinstance(value, torch.Tensor) and node.op != "placeholder":
            offset = at(value.storage_offset() - starts.get(value.untyped_storage()._cdata, 0))
            sizes, strides = tuple(map(at, value.shape)), tuple(map(at, value.stride()))
            if offset is not None and _are_known(sizes) and _are_known(strides):
                found.append(Placement(number, sizes, strides, offset, base))
    return found


def _are_known(numbers: tuple[int | None, ...]) -> TypeGuard[tuple[int, ...]]:
    return None not in numbers
