"""What is measured: a name, a kind, and a program in one of three forms."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hlo import text_of

Array = np.ndarray[Any, Any]
Body = Callable[[Any], Any]

# Each has a row of its own in the summaries.
KINDS = ("kernels", "linalg", "models", "dumps")
BOTH = ("local-task", "local-sync")


@dataclass(frozen=True)
class Case:
    """A program to measure.

    Attributes:
        name: as the tables show it.
        kind: one of ``KINDS``.
        body: the program as a function of ``benchmarks.hlo.Hlo``'s words; also what PyTorch runs.
        source: where there is no body: gives StableHLO text, or the path of a dump.
        eager: what PyTorch runs instead of the body; None for nothing.
        tensorflow: what TensorFlow runs, where the program is one of its models; gives the results.
        needs: why the case cannot be measured here; empty if it can.
        adapt: from random arguments to those that make sense.
        plain_devices: where plain IREE is measured; none where a call takes minutes.
        compared: False where two engines give different results by the operation's nature.
    """

    name: str
    kind: str
    body: Body | None = None
    source: Callable[[], str | Path] | None = None
    eager: Body | None = None
    tensorflow: Callable[[], list[Array]] | None = None
    needs: Callable[[], str] = str
    adapt: Callable[[list[Array]], list[Array]] = list
    plain_devices: tuple[str, ...] = BOTH
    compared: bool = True

    def build(self) -> tuple[str | Path, dict[int, int]]:
        """The program, and limits of its integer parameters by number."""
        if self.body is not None:
            return text_of(self.body)
        assert self.source is not None
        return self.source(), {}


def kernel(name: str, body: Body, **settings: Any) -> Case:
    return Case(name, "kernels", body, **{"eager": body} | settings)


def model(name: str, body: Body, **settings: Any) -> Case:
    return Case(name, "models", body, **{"eager": body} | settings)


def lowered(name: str, kind: str, function: Callable[[], Any], shapes: Sequence[str], **settings: Any) -> Case:
    """A case that JAX lowers.

    Args:
        function: gives the function to lower; it imports JAX, which is optional.
        shapes: of the arguments, such as ``f32[64,64]``.
    """
    return Case(name, kind, source=lambda: _lowered(function, shapes), needs=_needs_jax, **settings)


def _lowered(function: Callable[[], Any], shapes: Sequence[str]) -> str:
    import jax

    from hloforge.dialect.shapes import Shape

    parsed = [Shape.parse(shape) for shape in shapes]
    structs = [jax.ShapeDtypeStruct(shape.dimensions, shape.element.dtype) for shape in parsed if shape.element]
    return str(jax.jit(function()).lower(*structs).as_text())


def _needs_jax() -> str:
    return "" if importlib.util.find_spec("jax") else "needs jax (the extra `jax`)"
