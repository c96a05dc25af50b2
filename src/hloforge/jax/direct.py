"""Programs as one custom call of XLA's CPU: JAX calls its executables from C++, arguments and results included.

``hloforge.jit`` in Python takes 6 µs for a call and 1 to 4 for each array more, JAX itself 5 and 1.5. So what is called
again becomes a primitive of JAX, which XLA's CPU knows as one operation: a handler in machine code runs our kernels on
XLA's buffers (``runtime/native/foreign.py``). Donated arguments, devices, weak types and what waits for what are JAX's
own. On other platforms the primitive has no rule.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from hloforge.jax import names, platform
from hloforge.runtime.native import caller
from hloforge.runtime.native.calls import Handled, NativeCalls
from hloforge.runtime.native.foreign import PROCESS, PROGRAM
from hloforge.runtime.session.session import Session

_TARGET = "hloforge_call"
# Executables name programs by addresses: they are of no use to another process, which may share JAX's cache on disk.
_PROCESS = secrets.token_hex(16)
# Constants that JAX passes with each call are constants of XLA's executable, which copies them, up to so many bytes.
_MOST_CONSTANTS = 1 << 16
# Results from so many bytes on are new pages of the system in each call of XLA's (malloc's largest threshold, 32 MiB),
# which take five times as long as the memory that a session uses again.
_MOST_RESULT = (1 << 25) - (1 << 12)
# Bytes that programs without callers work in.
_MOST_ENDED = 1 << 26

call_p = Primitive("hloforge_call")
call_p.multiple_results = True


@dataclass(frozen=True, eq=False)
class Direct:
    """A program that custom calls run.

    Attributes:
        handled: what they name; it lives as long as an executable may call it.
        aliases: the results that lie in donated operands, by the numbers of these.
        avals: of the results.
    """

    handled: Handled
    aliases: Mapping[int, int]
    avals: tuple[Any, ...]

    def __del__(self) -> None:
        _ended.append(self.handled)
        while len(_ended) > 1 and sum(one.byte_count for one in tuple(_ended)) > _MOST_ENDED:
            _ended.popleft()


# Programs whose callers are gone, of which a call may still wait for arguments that XLA computes.
_ended: deque[Handled] = deque(maxlen=64)


def fits(session: Session, constants: Sequence[Any]) -> bool:
    """Whether custom calls can run a session's program: one that needs neither Python nor IREE's runtime.

    Args:
        constants: the first arguments of each call.
    """
    native = session.native
    if native is None or not native.can_be_handled or not _is_available():
        return False
    elements = [codec.shape.element for codec in (*session.parameters, *session.results)]
    if any(element is None or element.is_sub_byte for element in elements):
        return False  # XLA packs them
    if sum(one.nbytes for one in constants) > _MOST_CONSTANTS:
        return False
    return all(codec.byte_count <= _MOST_RESULT for n, codec in enumerate(session.results) if n not in native.inside)


def direct(native: NativeCalls, avals: Sequence[Any]) -> Direct:
    """The program of a session that ``fits``.

    Args:
        avals: of the results, of known sizes.
    """
    aliases = {parameter: result for result, parameter in native.inside.items()}
    return Direct(native.handled(), aliases, tuple(map(platform.plain_aval, avals)))


@cache
def _is_available() -> bool:
    """Whether JAX's CPU is XLA's, and takes the handler."""
    if names.stands_in_for_cpu():
        return False
    try:
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(caller.handler()), platform="cpu")
    except (RuntimeError, ValueError):
        return False
    mlir.register_lowering(call_p, _lower, platform="cpu")
    # JAX would take the CPU's rule for it.
    mlir.register_lowering(call_p, _refuse, platform=platform.PLATFORM)
    return True


def _avals(*_: Any, program: Direct) -> list[Any]:
    return list(program.avals)


def _lower(context: Any, *operands: Any, program: Direct) -> Any:
    rule = jax.ffi.ffi_lowering(_TARGET, operand_output_aliases=dict(program.aliases))
    return rule(context, *operands, **{PROCESS: _PROCESS, PROGRAM: np.int64(program.handled.address)})


def _refuse(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("custom calls of hloforge are for XLA's CPU")


call_p.def_abstract_eval(_avals)
