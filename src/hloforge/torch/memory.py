"""Tensors at the border to programs: arguments where they lie in memory, results in memory of PyTorch's or of IREE's.

A tensor crosses in the order in which its dimensions lie: one that is channels-last, or transposed, is passed as the
dense array that it is in memory, and the program is told so (``dense_order``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hloforge.dialect.abi import physical_shape
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.devices.devices import rt
from hloforge.runtime.native.result_memory import LEAST, maker
from hloforge.runtime.session.arrays import ALIGNMENT, Codec, hal_type
from hloforge.torch.types import to_numpy, to_torch

# Bytes from which on a result keeps IREE's memory instead of being copied.
_LARGE = 16384
_DLPACK_CPU = 1


def _empty_strided(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(sizes, strides, dtype=dtype)


# A third of the time, where PyTorch has it: Inductor's own.
_empty = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", _empty_strided)

Order = tuple[int, ...]
# First address and end of memory.
Range = tuple[int, int]


def dense_order(sizes: Sequence[int], strides: Sequence[int]) -> Order:
    """The dimensions as they lie in memory, the major ones first; as numbered, if there are gaps between elements."""
    plain = tuple(range(len(sizes)))
    order = tuple(sorted(plain, key=lambda d: (-strides[d], d)))
    expected = 1
    for dimension in reversed(order):
        if sizes[dimension] == 1:
            continue
        if strides[dimension] != expected:
            return plain
        expected *= sizes[dimension]
    return order if expected else plain


def inverse(order: Order) -> Order:
    """The permutation that undoes one."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


class Argument:
    """One argument of a program: an array, or IREE's view, of its memory, made again when it lies elsewhere.

    Both refer to an address, not to the tensor: they keep nothing alive, and are right for whichever tensor of the same
    sizes lies there.

    Args:
        like: what is passed, a tensor or a FakeTensor of fixed sizes.
        codec: of the program's parameter, which has the sizes of ``like`` in the order of its memory.
        device: IREE's.

    Attributes:
        byte_count: of its memory.

    Raises:
        ArgumentError: ``like`` is on no CPU, or sparse.
    """

    __slots__ = (
        "_codec",
        "_device",
        "_dimensions",
        "_dtype",
        "_hal_type",
        "_is_plain",
        "_last",
        "_order",
        "_seen",
        "_sizes",
        "_strides",
        "byte_count",
    )

    def __init__(self, like: torch.Tensor, codec: Codec, device: Any) -> None:
        self._sizes, self._dtype = like.shape, like.dtype
        self._order = order_of(like)
        self._is_plain = self._order == tuple(range(like.ndim))
        self._strides = strides_of(like.shape, self._order)
        self._codec, self._device = codec, device
        self.byte_count = codec.byte_count
        physical = physical_shape(codec.shape)
        assert physical.element is not None  # a tensor has one
        self._hal_type = hal_type(physical.element)
        self._dimensions = list(physical.dimensions)
        self._last: tuple[int, Any] = (0, None)
        self._seen: tuple[int, np.ndarray[Any, Any] | None] = (0, None)

    def array(self, tensor: torch.Tensor) -> np.ndarray[Any, Any] | None:
        """The elements in the order in which the program takes them, not copied if they lie so; None off the CPU.

        Parameters of a model lie where they lay in the last call, so that their array is the same.
        """
        if not tensor.is_cpu or tensor.layout is not torch.strided:
            return None
        if self.byte_count and self._lies_as_expected(tensor):
            address = tensor.data_ptr()
            last, seen = self._seen
            if last != address or seen is None:
                memory: Any = (ctypes.c_char * self.byte_count).from_address(address)
                seen = np.ndarray(self._dimensions, self._codec.dtype, memory)
                self._seen = address, seen
            return seen
        array = to_numpy(tensor if self._is_plain else tensor.permute(self._order))
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether the program can read the elements where they lie."""
        return tensor.device.type == "cpu" and tensor.layout is torch.strided and self._lies_as_expected(tensor)

    def _lies_as_expected(self, tensor: torch.Tensor) -> bool:
        is_same = tensor.stride() == self._strides and tensor.shape == self._sizes and tensor.dtype is self._dtype
        return is_same and not tensor.is_conj() and not tensor.is_neg()

    def view(self, tensor: torch.Tensor, borrowed: list[Range]) -> Any:
        """IREE's buffer view of a tensor.

        Args:
            borrowed: receives address and end of the memory, if the view shows that of the tensor.

        Raises:
            ArgumentError: other sizes, element type or device than the program was compiled for.
        """
        if tensor.shape != self._sizes or tensor.dtype is not self._dtype or tensor.device.type != "cpu":
            raise self._refused(tensor)
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        if tensor.stride() != self._strides:
            # What is copied is gone after the call, so IREE gets its own copy.
            dense = tensor.detach() if self._is_plain else tensor.detach().permute(self._order)
            if not dense.is_contiguous():
                return self._copied(dense.contiguous())
        address = tensor.data_ptr()
        if address % ALIGNMENT or not self.byte_count:
            return self._copied(tensor.detach().permute(self._order))
        borrowed.append((address, address + self.byte_count))
        last, view = self._last
        if last == address:
            return view
        view = self._shown(address)
        self._last = (address, view)
        return view

    def _shown(self, address: int) -> Any:
        shown: Any = (ctypes.c_char * self.byte_count).from_address(address)
        memory = np.ndarray(self.byte_count, np.uint8, shown)
        buffer = self._device.from_dlpack_capsule(memory.__dlpack__()).get_buffer()
        return rt.HalBufferView(buffer, self._dimensions, self._hal_type)

    def _copied(self, dense: torch.Tensor) -> Any:
        return self._codec.encode(np.array(to_numpy(dense)), self._device, [])

    def _refused(self, tensor: torch.Tensor) -> ArgumentError:
        given = f"{tensor.dtype} {list(tensor.shape)} on {tensor.device}"
        return ArgumentError(f"a tensor is {given}", hint=f"compiled for {self._dtype} {list(self._sizes)} on cpu")


def order_of(tensor: torch.Tensor) -> Order:
    """``dense_order`` of a tensor. Raises ArgumentError for one that is sparse or not on the CPU."""
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        what = f"a tensor of layout {tensor.layout} on {tensor.device}"
        raise ArgumentError(f"hloforge takes dense tensors of the CPU, not {what}")
    return dense_order(tensor.shape, tensor.stride())


def strides_of(sizes: Sequence[int], order: Order) -> tuple[int, ...]:
    """The strides of a dense tensor whose dimensions lie in an order, as PyTorch counts them."""
    strides, step = [0] * len(order), 1
    for dimension in reversed(order):
        strides[dimension] = step
        step *= max(sizes[dimension], 1)
    return tuple(strides)


class Result:
    """One result of a program.

    Args:
        codec: of the program's result, in the order of memory.
        order: in which the dimensions lie.
        dtype: the element type as PyTorch calls it.
        is_fixed: whether it depends on no argument of a call, so that the program may return memory that it reads
            again.

    Attributes:
        byte_count: of its memory.
        is_copied: whether it never lies in IREE's memory.
    """

    __slots__ = (
        "_codec",
        "_device",
        "_dtype",
        "_inverse",
        "_is_plain",
        "_make",
        "_sizes",
        "_strides",
        "byte_count",
        "is_copied",
    )

    def __init__(self, codec: Codec, order: Order, dtype: torch.dtype, device: Any, *, is_fixed: bool = False) -> None:
        self._codec, self._device, self._dtype = codec, device, dtype
        self._inverse = inverse(order)
        self._is_plain = order == tuple(range(len(order)))
        self._make = maker(codec.dimensions, codec.dtype)
        self._sizes = tuple(codec.dimensions[d] for d in self._inverse)
        self._strides = strides_of(self._sizes, order)
        self.byte_count = codec.byte_count
        self.is_copied = is_fixed or self.byte_count < _LARGE

    def lies(self, sizes: Sequence[int | None], order: Order) -> bool:
        """Whether it is a dense tensor of these sizes in this order; None is a size that is not known."""
        known = [size for size in sizes if size is not None]
        return tuple(sizes) == self._sizes and strides_of(known, order) == self._strides

    def new(self) -> torch.Tensor:
        """The result's tensor, not written yet."""
        if self.byte_count < LEAST:
            return _empty(self._sizes, self._strides, self._dtype)
        return self.of(self._make())

    def empty(self) -> np.ndarray[Any, Any]:
        """An array for the elements in the order of memory, not written yet."""
        return self._make()

    def of(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """The tensor that shows an array which ``empty`` made."""
        return self.ordered(to_torch(array))

    def ordered(self, tensor: torch.Tensor) -> torch.Tensor:
        """The result, of a tensor in the order of memory."""
        return tensor if self._is_plain else tensor.permute(self._inverse)

    def tensor(self, view: Any) -> torch.Tensor:
        """The tensor of a buffer view."""
        if self.is_copied:
            tensor = to_torch(np.array(self._codec.decode(view)))
        else:
            tensor = torch.from_dlpack(self._device.create_dlpack_capsule(view, _DLPACK_CPU, 0))
            tensor = tensor if tensor.dtype is self._dtype else tensor.view(self._dtype)
        return self.ordered(tensor)


def detach(tensors: list[torch.Tensor], results: Sequence[Result], borrowed: list[Range]) -> None:
    """Replace the results of a call that lie in memory of an argument, or of another result, by copies.

    Args:
        borrowed: the memory of the arguments.
    """
    shown = [n for n, result in enumerate(results) if not result.is_copied]
    starts = {n: tensors[n].data_ptr() for n in shown}
    ranges = [(start, end, -1) for start, end in borrowed]
    ranges += [(start, start + results[n].byte_count, n) for n, start in starts.items()]
    last = 0
    for start, end, number in sorted(ranges):
        if number >= 0 and start < last:
            tensors[number] = tensors[number].clone()
        last = max(last, end)
