"""Calls that hand tensors over as they are: one look at all of them, and no array of numpy's in between.

What makes arrays of tensors looks at sizes, strides, type and device of each in Python, some microseconds for a few
tensors, and some ten after a call whose arrays have driven Python's own memory out of the caches. PyTorch has a check
of several tensors at once, for Dynamo's guards, and a function that tells where the elements of a tensor are, for code
that Inductor makes. Where a PyTorch lacks them, tensors go the other way.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._C._dynamo import guards

from hloforge.runtime.native.team import Framework
from hloforge.torch.memory import Argument, Result

# Tensors of other kinds (with gradients or without, of ``inference_mode``) that are learned before it is given up.
_MOST_LEARNED = 8
_PLAIN = (torch.Tensor, torch.nn.Parameter)


@cache
def pytorch() -> Framework:
    """PyTorch's functions, as ``Session.write`` takes them."""
    memory_of: int = getattr(guards, "_torchinductor_pyobject_tensor_data_ptr", 0)
    libraries = Path(torch.__file__).parent / "lib"
    try:
        threads = _address(libraries / "libtorch_cpu.so", "_ZN2at15get_num_threadsEv")
        (openmp,) = libraries.glob("libgomp*")
        parallel, thread = (_address(openmp, name) for name in ("GOMP_parallel", "omp_get_thread_num"))
    except (OSError, AttributeError, ValueError):  # a PyTorch with another OpenMP, or with none
        return Framework(memory_of)
    return Framework(memory_of, threads, parallel, thread)


def _address(library: Path, name: str) -> int:
    """Of a function of a library that is loaded. Raises OSError or AttributeError if there is none."""
    loaded = ctypes.CDLL(str(library), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0


class Direct:
    """What tells whether the tensors of a call can be handed over as they are.

    Args:
        arguments: of the program.
        results: of it.

    """

    def __init__(self, arguments: Sequence[Argument], results: Sequence[Result]) -> None:
        self._arguments = arguments
        # An empty tensor has no address.
        sizes = [each.byte_count for each in arguments] + [each.byte_count for each in results]
        self._left = _MOST_LEARNED if pytorch().memory_of and arguments and all(sizes) else 0
        self._guards: Any = None

    def fits(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether the tensors are of types, sizes and orders that the program takes."""
        if self._guards is not None and self._guards.check(*tensors):
            return True
        return self._left > 0 and self._learns(tensors)

    def _learns(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Look at each tensor, and take others like them at once from now on if they fit."""
        pairs = zip(self._arguments, tensors, strict=True)
        if not all(type(tensor) in _PLAIN and argument.takes(tensor) for argument, tensor in pairs):
            return False
        self._left -= 1
        found = guards.TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
        # It refuses a tensor that is given twice.
        if not found.check(*tensors):
            return False
        self._guards = found
        return True
