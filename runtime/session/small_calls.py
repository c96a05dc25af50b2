"""Calls with few bytes of arguments: copied into reused buffers, because new ones cost more than the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.runtime.devices.devices import rt
from hloforge.runtime.session.arrays import Codec

# Arguments times results, each of which is compared with each.
_MOST_PAIRS = 32


class Frame:
    """Buffers for the arguments of a call.

    Attributes:
        inputs: the arguments as IREE's list.
    """

    __slots__ = ("_arrays", "_slots", "inputs")

    def __init__(self, parameters: Sequence[Codec], device: Any) -> None:
        self.inputs = rt.VmVariantList(len(parameters))
        self._arrays = [codec.put_zeros(device, self.inputs) for codec in parameters]
        self._slots = [(array, array.dtype, array.shape) for array in self._arrays]

    def take(self, arguments: Sequence[Any]) -> bool:
        """Copy the arguments in; False if one is anything but an array of its parameter's element type and sizes."""
        for value, (array, dtype, shape) in zip(arguments, self._slots, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return False
            array[...] = value
        return True

    def own(self, result: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The result, copied if it lies in these buffers: a program may return its argument as it came."""
        for array in self._arrays:
            if np.may_share_memory(array, result):
                return result.copy(order="K")
        return result


class SmallCalls:
    """The frames of a session, as many as calls run at once.

    Args:
        parameters: at least one; ``fit`` said yes to them.
    """

    def __init__(self, parameters: Sequence[Codec], device: Any) -> None:
        self._parameters, self._device = parameters, device
        self._free: list[Frame] = []

    @staticmethod
    def fit(parameters: Sequence[Codec], results: Sequence[Codec]) -> bool:
        """Whether a program takes little enough, all of it as it lies in arrays, and returns few of them."""
        pairs = len(parameters) * len(results)
        return 0 < pairs <= _MOST_PAIRS and all(codec.is_small for codec in parameters)

    def borrow(self) -> Frame:
        """A frame that no other call uses; give it back when the results have been read. One that is not is lost."""
        try:
            return self._free.pop()
        except IndexError:
            return Frame(self._parameters, self._device)

    def give_back(self, frame: Frame) -> None:
        self._free.append(frame)
