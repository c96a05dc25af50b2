"""Memory that goes from a result to a donated argument.

A large result is a ``jax.Array`` that shows a session's memory. When such an array is donated, JAX's array is deleted,
and if nobody else looks at its memory then (numpy by ``np.asarray``, DLPack), the program writes into it. What JAX made
itself is copied once.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Any

import numpy as np

from hloforge.jax import platform
from hloforge.jax.arrays import LARGE
from hloforge.runtime.session.arrays import Codec, DeviceArray
from hloforge.runtime.session.session import Session

NumpyArray = np.ndarray[Any, Any]


class _Shown(weakref.ref[NumpyArray]):
    """What shows memory to JAX.

    Attributes:
        address: of the memory.
        result: the session's result in it.
    """

    __slots__ = ("address", "result")

    address: int
    result: DeviceArray


_shown: dict[int, _Shown] = {}
atexit.register(_shown.clear)


def show(session: Session, result: DeviceArray, codec: Codec) -> NumpyArray:
    """The logical array of a session's result, to be handed to JAX and nobody else; it can be given back."""
    host = result.host
    if host.nbytes < LARGE:
        return codec.logical(host)
    array = session.lasting(result)
    if not result.is_shared:
        shown = _Shown(array, _forget)
        shown.address, shown.result = array.__array_interface__["data"][0], result
        _shown[shown.address] = shown
    return codec.logical(array)


def _forget(shown: _Shown) -> None:
    if _shown.get(shown.address) is shown:
        del _shown[shown.address]


def take(leaf: Any, codec: Codec) -> DeviceArray | NumpyArray:
    """What a session gets for a donated ``jax.Array``, which is deleted: its own memory back, or a copy."""
    found = _shown.get(leaf.unsafe_buffer_pointer()) if leaf.nbytes >= LARGE else None
    if found is None:
        array = np.array(leaf)
        leaf.delete()
        return array
    given = found.result
    leaf.delete()
    platform.release()
    # The session copies what is still seen, and what is of another layout.
    given.is_shared = found() is not None
    return given if given.fits(codec) else np.array(given)
