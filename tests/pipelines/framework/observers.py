"""What shows, in a module, that a fact does not hold of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hloforge.dialect.operations import operations
from hloforge.pipelines.analysis.forms import (
    fills_with_complex,
    is_not_in_bounds,
    is_wide_complex,
    multiplies_nothing,
    sums_16_bit_floats,
)
from hloforge.pipelines.analysis.origins import PADDING, padded_in_steps
from hloforge.pipelines.framework.facts import NOTHING, Fact
from hloforge.pipelines.framework.passes import Pass


def _has_type(*parts: str) -> Callable[[Any], bool]:
    def has(op: Any) -> bool:
        return any(part in str(value.type) for value in (*op.operands, *op.results) for part in parts)

    return has


def _is_of(*dialects: str) -> Callable[[Any], bool]:
    return lambda op: op.name.split(".")[0] in dialects


def _named(name: str, holds: Callable[[Any], bool] = lambda op: True) -> Callable[[Any], bool]:
    return lambda op: op.name == name and holds(op)


def _either(*given: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda op: any(each(op) for each in given)


# By fact, whether an operation shows that it does not hold. Facts about buffers and orders cannot be seen in one.
CONTRADICTS: dict[Fact, Callable[[Any], bool]] = {
    Fact.ONE_FUNCTION: _named("func.call", lambda op: not str(op.attributes["callee"]).startswith("@host.")),
    Fact.NO_TUPLES: _has_type("tuple<"),
    Fact.NO_MHLO: _is_of("mhlo", "sdy"),
    Fact.NO_TOKENS: _has_type("!stablehlo.token"),
    Fact.NO_QUANTIZED: _has_type("!quant."),
    Fact.NO_NARROW_FLOATS: _has_type("f4E", "f6E", "f8E"),
    Fact.NO_FACTORIZATIONS: _either(_named("stablehlo.cholesky"), _named("stablehlo.triangular_solve")),
    Fact.NO_CHLO: _is_of("chlo"),
    Fact.SAFE_PRODUCTS: _named("stablehlo.dot_general", multiplies_nothing),
    Fact.SAFE_SCATTERS: _named("stablehlo.scatter", is_not_in_bounds),
    Fact.SAFE_GATHERS: _named("stablehlo.gather", is_not_in_bounds),
    Fact.SAFE_FILLS: _either(
        *(_named(f"stablehlo.{name}", fills_with_complex) for name in ("pad", "dynamic_update_slice"))
    ),
    Fact.WIDE_SUMS: _either(*(_named(f"stablehlo.{name}", sums_16_bit_floats) for name in ("reduce", "reduce_window"))),
    Fact.SEPARATE_PADS: lambda op: op.name in PADDING and bool(padded_in_steps(op)),
    Fact.SPLIT_CONSTANTS: _named("stablehlo.constant", is_wide_complex),
}


def seen(module: Any) -> dict[Fact, str]:
    """The facts that an operation of the module contradicts, and this operation."""
    found: dict[Fact, str] = {}
    for op in operations(module):
        for fact, contradicts in CONTRADICTS.items():
            if fact not in found and contradicts(op):
                found[fact] = str(op)[:200]
    return found


def lies(module: Any, passes: list[Pass]) -> Iterator[str]:
    """Run the passes; each fact that holds by the passes' own statements, and that the module contradicts."""
    held = NOTHING
    for entry in passes:
        contract = entry.contract()
        entry.run(module)
        held = (held - contract.breaks) | contract.establishes
        against = seen(module)
        for fact in against.keys() & held:
            yield f"{contract.name}: {fact.label}: {against[fact]}"
