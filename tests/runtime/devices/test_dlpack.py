"""Arrays of a GPU by DLPack, with the processor in the GPU's place: its memory is "pinned", which numpy reads too."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.devices import devices, dlpack
from hloforge.runtime.session import arrays

# DLPack's kDLCUDAHost.
PLACE = (3, 0)
TEXT = "func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {{ {} return %y : tensor<3x4xf32> }}"
DOUBLE = TEXT.format("%y = stablehlo.add %x, %x : tensor<3x4xf32>\n")


class Tensor:
    """What another framework has on the device."""

    def __init__(self, array: np.ndarray[Any, Any], place: tuple[int, int] = PLACE) -> None:
        self.array, self.place, self.streams = array, place, []

    def __dlpack__(self, **options: Any) -> Any:
        if "stream" not in options:
            raise BufferError("it does not lie in the host's memory")
        self.streams.append(options.pop("stream"))
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("it does not lie in the host's memory")


class Machine:
    """Stands for CUDA's driver: what it allocated and has not freed, and how often it was waited for."""

    def __init__(self) -> None:
        self.live: dict[int, Any] = {}
        self.waits = 0

    def allocate(self, size: int, ordinal: int) -> tuple[int, Callable[[], None]]:
        assert ordinal == PLACE[1]
        memory = ctypes.create_string_buffer(size + 64)
        address = (ctypes.addressof(memory) + 63) // 64 * 64
        self.live[address] = memory
        return address, lambda: self.live.pop(address) and None

    def copy(self, source: Any, target: Any, device: Any) -> None:
        """A processor's queue does not write into memory that IREE was given; a GPU's does."""
        bytes_ = bytes(source.map())
        assert len(bytes_) == target.byte_length()
        ctypes.memmove([*self.live][-1], bytes_, len(bytes_))

    def synchronize(self, ordinal: int) -> None:
        self.waits += 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(dlpack, "allocate", found.allocate)
    monkeypatch.setattr(dlpack, "copy", found.copy)
    monkeypatch.setattr(dlpack, "synchronize", found.synchronize)
    monkeypatch.setattr(arrays, "place_of", lambda device: PLACE)
    monkeypatch.setattr(devices._devices, "apart", (devices.device("local-sync"),))
    return found


@pytest.fixture(scope="module")
def double() -> hloforge.Executable:
    return hloforge.compile(DOUBLE, device="local-sync")


def _aligned(values: Any) -> np.ndarray[Any, Any]:
    wanted = np.asarray(values)
    memory = np.empty(wanted.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + wanted.nbytes].view(wanted.dtype).reshape(wanted.shape)
    array[...] = wanted
    return array


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_tensor_on_the_device_is_read_where_it_lies(machine: Machine, double: hloforge.Executable) -> None:
    tensor = Tensor(_aligned(X))
    np.testing.assert_array_equal(double.load()(tensor), X + X)
    assert tensor.streams == [1]
    assert machine.waits == 1
    # Of the memory of another device there is no view: it would have to cross by the host, which it cannot.
    with pytest.raises(ArgumentError, match="'arg0' is no array"):
        double.load()(Tensor(X, (3, 1)))


def test_its_memory_is_used_and_not_copied(machine: Machine, double: hloforge.Executable) -> None:
    array = _aligned(X)
    view = dlpack.take(Tensor(array), devices.device("local-sync"), 0)
    array[0, 0] = 77
    assert np.frombuffer(view.map(), np.float32)[0] == 77
    stored = double.load().put(Tensor(array), 0)
    array[0, 0] = 78
    assert np.asarray(stored)[0, 0] == 77


def test_tensors_that_do_not_fit_are_refused(machine: Machine, double: hloforge.Executable) -> None:
    session = double.load()
    for array, message in (
        (X.astype(np.int32), "Tensor"),
        (X.reshape(4, 3), r"shape \(4, 3\)"),
        (np.asfortranarray(X), "cannot be shared: .*strided"),
    ):
        with pytest.raises(ArgumentError, match=message):
            session(Tensor(_aligned(array) if array.flags.c_contiguous else array))


def test_others_get_a_copy_on_the_device(machine: Machine, double: hloforge.Executable) -> None:
    made = double.load().call_device(X)
    assert made.__dlpack_device__() == PLACE
    shown = np.from_dlpack(made)
    np.testing.assert_array_equal(shown, X + X)
    assert [shown.ctypes.data] == [*machine.live]
    assert not np.may_share_memory(shown, np.asarray(made))
    del shown
    gc.collect()
    assert not machine.live
    assert not dlpack._held


def test_others_get_the_host_s_memory_if_they_ask_for_it(machine: Machine, double: hloforge.Executable) -> None:
    made = double.load().call_device(X)
    np.testing.assert_array_equal(np.from_dlpack(made, device="cpu"), X + X)
    assert not machine.live


def test_what_lies_otherwise_in_memory_is_not_given(machine: Machine) -> None:
    with hloforge.Builder("turned") as builder:
        x = builder.parameter(0, hloforge.Shape.array("f32", 3, 4, layout=(0, 1)), "x")
        session = hloforge.compile(builder.build(x), device="local-sync").load()
    with pytest.raises(BufferError, match="has another layout"):
        np.from_dlpack(session.put(X, 0))
