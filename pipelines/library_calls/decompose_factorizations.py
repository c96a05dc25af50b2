"""``decompose-factorizations``: our own calls of factorizations as loops and matrix products, for any target.

Before::

    %l, %failed = stablehlo.custom_call @hloforge.cholesky(%a) {backend_config = {lower = true}}

After: the loops of ``decompose/cholesky.py``. ``own_calls.py`` says what the calls mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hloforge.dialect.marks import (
    BIDIAGONAL,
    BIDIAGONAL_QR,
    BIDIAGONAL_VECTORS,
    CHOLESKY,
    HESSENBERG,
    LU,
    ORTHOGONAL,
    QR,
    REFLECTED,
    TRIDIAGONAL,
    TRIDIAGONAL_EIGENVECTORS,
    TRIDIAGONAL_QL,
)
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose import cholesky
from hloforge.pipelines.framework.facts import NORMALIZED, REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.library_calls import (
    bidiagonal,
    bidiagonal_qr,
    hessenberg,
    lu,
    qr,
    reflectors,
    tridiagonal,
    tridiagonal_ql,
)
from hloforge.pipelines.library_calls.registry import CustomCall, target_of

_LOOPS: dict[str, Callable[..., Sequence[Value]]] = {
    CHOLESKY: cholesky.factored,
    LU: lu.factored,
    QR: qr.factored,
    ORTHOGONAL: qr.orthogonal,
    TRIDIAGONAL_QL: tridiagonal_ql.by_sweeps,
    BIDIAGONAL_QR: bidiagonal_qr.by_sweeps,
    TRIDIAGONAL: tridiagonal.reduced,
    BIDIAGONAL: bidiagonal.reduced,
    HESSENBERG: hessenberg.reduced,
    BIDIAGONAL_VECTORS: bidiagonal_qr.vectors,
    REFLECTED: reflectors.reflected,
    TRIDIAGONAL_EIGENVECTORS: tridiagonal_ql.eigenvectors,
}


@pattern("stablehlo.custom_call")
def own_factorization(op: ir.Operation) -> Replacement:
    """custom_call @hloforge.f(x...) -> the loops that compute f."""
    loops = _LOOPS.get(target_of(op))
    if loops is None:
        return NoMatch("not a call of ours")
    call = CustomCall.of(op)
    return loops(*call.operands, **call.settings)


@register
@dataclass(frozen=True)
class DecomposeFactorizations(Pass):
    """Replace hloforge's own factorization calls by loops and products.

    Attributes:
        keep: calls that stay, because code generation has loops of its own for them.
    """

    name: ClassVar[str] = "decompose-factorizations"
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.custom_call"})
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_LIBRARY_CALLS})
    breaks: ClassVar[Facts] = REWRITES | frozenset(
        {Fact.NO_CHLO, Fact.NO_FACTORIZATIONS, Fact.SAFE_GATHERS, Fact.SAFE_PRODUCTS, Fact.SAFE_SCATTERS}
    )

    keep: tuple[str, ...] = ()

    def run(self, module: ir.Module) -> None:
        (whole,) = own_factorization

        def but_kept(op: ir.Operation) -> Replacement:
            return NoMatch("kept") if target_of(op) in self.keep else whole.rewrite(op)

        apply_patterns(module, [replace(whole, rewrite=but_kept)])
