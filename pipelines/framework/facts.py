"""What passes require of a module and what they establish: the facts by which the order of a pipeline is checked.

A pass states three sets (``Pass.requires``, ``establishes``, ``breaks``). ``check_order`` follows them through a
pipeline: a pass in front of what it requires is an error, and so is a fact that a later pass breaks and that no pass
after it establishes again. The named pipelines are checked when they are imported, so that a wrong order fails in the
first test and not in a user's program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from hloforge.dialect.errors import PipelineError


class Fact(Enum):
    """A statement about a module. The value is its meaning."""

    ONE_FUNCTION = "main calls no function of the module"
    NO_TUPLES = "no value is a tuple"
    NO_MHLO = "operations are of StableHLO and CHLO, not of XLA's or Shardy's dialects"
    HOST_CALLS = "calls of the host have a record, arrays of physical form and no tokens"
    PHYSICAL_BORDER = "the arguments and results of main have their physical form"
    NO_TOKENS = "no value is a token"
    NO_QUANTIZED = "no element type is quantized"
    NO_LIBRARY_CALLS = "calls of libraries are decomposed, or are calls of our own factorizations"
    NO_NARROW_FLOATS = "no floating-point element has fewer than 16 bits"
    NO_FACTORIZATIONS = "no Cholesky factorization and no triangular system is left"
    NO_CHLO = "no operation is of CHLO"
    SAFE_PRODUCTS = "no product sums over an empty dimension"
    SAFE_SCATTERS = "scatters write inside their arrays"
    SAFE_GATHERS = "gathers read inside their arrays"
    WIDE_SUMS = "reductions of 16-bit floats carry f32"
    SAFE_FILLS = "no padding or update writes complex numbers into an array that repeats one"
    SPLIT_CONSTANTS = "no constant has elements of 128 bits"
    COUNTED_CARRIES = "loops carry values in forms that IREE counts right"
    SEPARATE_PADS = "no padding and no padded window reads, in its dispatch, a scatter or a padding with steps"
    UPDATES_DECIDED = "each update is in place or has its copy"

    @property
    def label(self) -> str:
        """The name in kebab-case, as messages and documents have it."""
        return self.name.lower().replace("_", "-")


Facts = frozenset[Fact]

NOTHING: Facts = frozenset()

# What every pass after normalization may take for granted.
NORMALIZED: Facts = frozenset({Fact.ONE_FUNCTION, Fact.NO_TUPLES, Fact.NO_MHLO})

# A pass that says nothing may rewrite an update, or what reads its array.
REWRITES: Facts = frozenset({Fact.UPDATES_DECIDED})


@dataclass(frozen=True)
class Contract:
    """What a pass states of itself.

    Attributes:
        name: of the pass.
        requires: facts that hold before it runs.
        establishes: facts that hold afterwards.
        breaks: facts that may no longer hold afterwards.
    """

    name: str
    requires: Facts = NOTHING
    establishes: Facts = NOTHING
    breaks: Facts = NOTHING


def check_order(pipeline: str, contracts: Iterable[Contract], given: Facts = NOTHING) -> Facts:
    """The facts that hold after a pipeline.

    Args:
        pipeline: its name, for the message.
        given: the facts that hold before it.

    Raises:
        PipelineError: a pass comes before what it requires, or a fact is broken and not established again.
    """
    held = set(given)
    broken: dict[Fact, str] = {}
    for contract in contracts:
        if missing := contract.requires - held:
            fact = min(missing, key=lambda each: each.label)
            cause = f"{broken[fact]} broke it" if fact in broken else "no pass before it establishes that"
            raise PipelineError(f"pipeline {pipeline}: {contract.name} requires {fact.label}, and {cause}")
        for fact in contract.breaks & held:
            broken[fact] = contract.name
        held -= contract.breaks
        held |= contract.establishes
        for fact in contract.establishes:
            broken.pop(fact, None)
    for fact, name in broken.items():
        raise PipelineError(f"pipeline {pipeline}: {name} breaks {fact.label}, and no later pass establishes it again")
    return frozenset(held)
