"""From a seed to a program: its kind, what is done with it (batched, differentiated, repeated), text and arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.perf_fuzz.arguments import Array
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.kinds import KINDS
from benchmarks.perf_fuzz.registry import Drawn, Kind

_FORMS = ("plain", "vmap", "gradient", "loop")
_SHARES = (0.55, 0.15, 0.18, 0.12)


@dataclass(frozen=True)
class RandomProgram:
    """A program and its arguments.

    Attributes:
        form: what is done with the function of the kind: ``plain`` for nothing, ``vmap``, ``gradient``, ``loop``.
        label: types of the arguments, as a reader recognizes the program by.
    """

    seed: int
    kind: Kind
    form: str
    drawn: Drawn

    @property
    def label(self) -> str:
        types = ", ".join(
            f"{argument.dtype}[{','.join(map(str, argument.shape))}]" for argument in self.drawn.arguments
        )
        return f"{self.form}({types})"

    def text(self) -> str:
        """Its StableHLO."""
        structs = [jax.ShapeDtypeStruct(argument.shape, argument.numpy_dtype) for argument in self.drawn.arguments]
        with jax.enable_x64(any(argument.needs_x64 for argument in self.drawn.arguments)):
            traced = jax.jit(self.drawn.function, keep_unused=True).trace(*structs)
            return str(traced.lower(lowering_platforms=("cpu",)).as_text())

    def values(self) -> list[Array]:
        """Its arguments."""
        random = np.random.default_rng([self.seed, 1])
        return [argument.array(random) for argument in self.drawn.arguments]


def kind_of(seed: int) -> str:
    """The kind of a seed's program: so many seeds in a row as there are kinds have each once."""
    names = sorted(KINDS)
    turn, place = divmod(seed, len(names))
    return names[int(np.random.default_rng([turn, len(names)]).permutation(len(names))[place])]


def program_of(seed: int, name: str | None = None) -> RandomProgram:
    """The program of a seed; of this kind, if one is given."""
    kind = KINDS[name or kind_of(seed)]
    choose = Draw(seed, f"form of {kind.name}")
    form = str(choose.random.choice(_FORMS, p=_SHARES))
    if (form == "gradient" and not kind.gradient) or (form in ("vmap", "loop") and not kind.batch):
        form = "plain"
    count = choose.size(2, 16)
    draw = Draw(seed, kind.name, {"plain": 1, "gradient": 4}.get(form, count))
    made = kind.make(draw)
    return RandomProgram(seed, kind, form, _FORM[form](made, count))


def _differentiated(made: Drawn, _: int) -> Drawn:
    """The gradient of the squares of the results by every argument of floats, and the results' sum."""
    places = tuple(number for number, argument in enumerate(made.arguments) if argument.is_float)
    if not places:
        # Complex numbers alone, which have no gradient of a real loss here.
        return made

    def loss(*arguments: Any) -> Any:
        results = [
            leaf for leaf in jax.tree.leaves(made.function(*arguments)) if jnp.issubdtype(leaf.dtype, jnp.inexact)
        ]
        return sum(0.5 * jnp.mean(jnp.square(jnp.abs(leaf)).astype(jnp.float32)) for leaf in results)

    return replace(made, function=jax.value_and_grad(loss, argnums=places))


def _batched(made: Drawn, count: int) -> Drawn:
    """Several at once; what looks like weights (arguments after the first that are matrices) stays one."""
    axes = [0 if place == 0 or len(one.shape) < 2 else None for place, one in enumerate(made.arguments)]
    arguments = tuple(one.batched(count) if axis == 0 else one for one, axis in zip(made.arguments, axes, strict=True))
    return replace(made, function=jax.vmap(made.function, in_axes=tuple(axes)), arguments=arguments)


def _looped(made: Drawn, count: int) -> Drawn:
    """One after the other, for each of several first arguments."""
    first, *others = made.arguments

    def function(stacked: Any, *rest: Any) -> Any:
        return jax.lax.map(lambda one: made.function(one, *rest), stacked)

    return replace(made, function=function, arguments=(first.batched(count), *others))


def _plain(made: Drawn, _: int) -> Drawn:
    return made


_FORM: dict[str, Callable[[Drawn, int], Drawn]] = {
    "plain": _plain,
    "vmap": _batched,
    "gradient": _differentiated,
    "loop": _looped,
}

__all__ = ["KINDS", "RandomProgram", "kind_of", "program_of"]
