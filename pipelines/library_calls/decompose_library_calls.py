"""``decompose-library-calls``: replace calls of library functions by their computations.

Before::

    %l, %info = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4, backend_config = {uplo = 76 : ui8}} : ...

After::

    %f, %info = stablehlo.custom_call @hloforge.cholesky(%a) {backend_config = {lower = true}}
    %l = stablehlo.select (row >= column), %f, %a                // LAPACK leaves the other triangle as it was

``registry.py`` tells how to add a target. Source: JAX (the calls that its functions for linear algebra become).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations, symbols
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import NORMALIZED, REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.library_calls.registry import CustomCall, decompositions, target_of


@pattern("stablehlo.custom_call")
def known_call(op: ir.Operation) -> Replacement:
    """custom_call @f(x...) -> what f computes."""
    call = CustomCall.of(op)
    decomposition = decompositions().get(call.target)
    if decomposition is None:
        return NoMatch(f"no decomposition of @{call.target}")
    if not all(value.type.has_static_shape for value in (*op.operands, *op.results)):
        return NoMatch("dynamic size")
    try:
        results = decomposition(call)
    except (IndexError, TypeError, ValueError) as error:
        # A call of another form: operands that are missing, settings of another kind.
        counts = f"{len(call.operands)} operands and {len(call.shapes)} results"
        raise UnsupportedError(f"@{call.target} has a form that hloforge does not know ({counts}): {error}") from error
    call.check_read()
    _check_results(op, results)
    return results


def _check_results(op: ir.Operation, results: Sequence[Value]) -> None:
    """A call says its own types, and only what it computes tells whether they are right."""
    declared, made = [result.type for result in op.results], [result.type for result in results]
    if declared != made:
        texts = (", ".join(str(Shape.of_type(type_)) for type_ in types) for types in (declared, made))
        raise UnsupportedError(
            "@{} has the result {}, and its operands give {}".format(target_of(op), *texts),
            hint="the call is malformed: correct the shape, or take the file as XLA wrote it",
        )


@register
@dataclass(frozen=True)
class DecomposeLibraryCalls(Pass):
    """Replace the custom calls that have a decomposition.

    Raises (on run):
        UnsupportedError: a call with a setting that its decomposition does not know.
    """

    name: ClassVar[str] = "decompose-library-calls"
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.custom_call"})
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_TOKENS})
    establishes: ClassVar[Facts] = frozenset({Fact.NO_LIBRARY_CALLS})
    breaks: ClassVar[Facts] = REWRITES | frozenset(
        {
            Fact.NO_CHLO,
            Fact.NO_FACTORIZATIONS,
            Fact.NO_NARROW_FLOATS,
            Fact.SAFE_GATHERS,
            Fact.SAFE_PRODUCTS,
            Fact.SAFE_SCATTERS,
            Fact.WIDE_SUMS,
        }
    )

    def run(self, module: ir.Module) -> None:
        called = _make_plain_functions(module)
        if apply_patterns(module, known_call).rewritten:
            _erase_uncalled(module, called)


def _make_plain_functions(module: ir.Module) -> set[str]:
    """What a custom call calls belongs to it; JAX makes it a public function, and ends it as a region."""
    calls = operations(module, {"stablehlo.custom_call"})
    called = {symbol for op in calls for symbol in CustomCall.of(op).computations}
    for function in operations(module, {"func.func"}):
        if _name(function) in called:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
            _end_as_function(list(function.regions[0].blocks[0].operations)[-1].operation)
    return called


def _erase_uncalled(module: ir.Module, candidates: set[str]) -> None:
    """MLIR's ``symbol-dce`` gives up where there are variables, whose dialect is IREE's."""
    while candidates:
        uses = {symbol for op in operations(module) for symbol in symbols(op)}
        erased = [op for op in operations(module, {"func.func"}) if _name(op) in candidates - uses]
        if not erased:
            return
        # What these called may be called by nobody now.
        candidates = candidates | {symbol for op in erased for inner in operations(op) for symbol in symbols(inner)}
        for op in erased:
            op.erase()


def _name(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _end_as_function(terminator: ir.Operation) -> None:
    if terminator.name == "stablehlo.return":
        with ir.InsertionPoint(terminator), terminator.location:
            ir.Operation.create("func.return", operands=list(terminator.operands))
        terminator.erase()
