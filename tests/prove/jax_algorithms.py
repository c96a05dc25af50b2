"""Known algorithms as people write them in JAX: one to three of ``jax_machines`` and ``jax_methods``."""

from __future__ import annotations

import hloforge
from tests.fuzz.generator import Case
from tests.prove.jax_habits import function_of
from tests.prove.jax_machines import MACHINES
from tests.prove.jax_methods import METHODS


def case_of(seed: int) -> Case:
    """The program of a seed, as a file that hloforge reads."""
    made = function_of(seed, (*MACHINES, *METHODS))
    return Case(seed, hloforge.read(str(made.lowered().as_text()), name=f"algorithms_{seed}"), made.arguments)
