"""Memory that goes from a result to a donated argument.

A large result is a ``jax.Array`` that shows IREE's memory. When such an array is donated, JAX's array is deleted, and
if nobody else looks at its memory then (numpy by ``np.asarray``, DLPack), the program writes into it. What JAX made
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

# By address: what shows the memory to JAX, IREE's view of it, and its codec.
_shown: dict[int, tuple[weakref.ref[NumpyArray], Any, Codec]] = {}
atexit.register(_shown.clear)


def show(session: Session, result: DeviceArray, codec: Codec) -> NumpyArray:
    """The logical array of a session's result, to be handed to JAX and nobody else; it can be given back."""
    if result.host.nbytes < LARGE:
        return codec.logical(result.host)
    array = session.lasting(result)
    if not result.is_shared:
        _remember(array, result.buffer_view, codec)
    return codec.logical(array)


def _remember(array: NumpyArray, view: Any, codec: Codec) -> None:
    address: int = array.__array_interface__["data"][0]

    def forget(reference: weakref.ref[NumpyArray]) -> None:
        if address in _shown and _shown[address][0] is reference:
            del _shown[address]

    _shown[address] = (weakref.ref(array, forget), view, codec)


def take(leaf: Any, codec: Codec) -> DeviceArray | NumpyArray:
    """What a session gets for a donated ``jax.Array``, which is deleted: its own memory back, or a copy."""
    found = _shown.get(leaf.unsafe_buffer_pointer()) if leaf.nbytes >= LARGE else None
    if found is None:
        array = np.array(leaf)
        leaf.delete()
        return array
    reference, view, own = found
    leaf.delete()
    platform.release()
    seen = reference()
    given = DeviceArray(view, own)
    # The session copies what is still seen, and what is of another layout.
    given.is_shared = seen is not None
    return given if given.fits(codec) else own.logical(given.host).copy()
