"""A program that uses hloforge as readers do. `make typecheck` checks it strictly, and test_typed_client.py runs it.

A comment that silences an error is an error where there is none: what is misspelt below has to be refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any

import numpy as np

import hloforge
from hloforge import Shape, Value, ops


@hloforge.program
def softmax(x: Annotated[Value, Shape.parse("f32[8,16]")]) -> Value:
    e = ops.exp(x)
    return ops.div(e, ops.reduce(e, 0.0, ops.add, [1]), [0])


def compiled() -> hloforge.Executable:
    executable = hloforge.compile(softmax, timeout=100, flags=["--iree-opt-level=O1"], cache=False)
    try:
        hloforge.compile(softmax, time_out=100)  # type: ignore[call-arg]
    except TypeError as error:
        assert "no option 'time_out'" in str(error)
    with contextlib.suppress(TypeError):
        hloforge.compile(softmax, timeout="soon")  # type: ignore[arg-type]
    return executable


async def served(session: hloforge.Session, count: int) -> list[Any]:
    x = np.zeros((8, 16), np.float32)
    return await asyncio.gather(*(session.submit(x) for _ in range(count)))


def main() -> list[Any]:
    with compiled().load() as session:
        signature: hloforge.Signature = session.signature
        assert str(signature) in repr(session)
        return asyncio.run(served(session, 3))
