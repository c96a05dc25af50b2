"""``dispatch-factorizations``: factorizations and triangular systems as dispatches of vector code.

Before (``keep-factorizations``)::

    %l, %failed = stablehlo.custom_call @hloforge.strips.cholesky(%a) {backend_config = {lower = true}}

After: one dispatch, a matrix or a strip of columns a workgroup, whose loops the files ``strip_*.py`` and
``shifted_qr.py`` write down. The loops of ``decompose-factorizations`` and others, which serve any target, need a
dispatch or several for each block of rows, and IREE's code for them reaches a fifth of the speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import CPU, Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.factorizations import keep_factorizations as kept
from hloforge.pipelines.kernels.factorizations.shifted_qr import bidiagonal_qr, tridiagonal_ql
from hloforge.pipelines.kernels.factorizations.strip_cholesky import cholesky
from hloforge.pipelines.kernels.factorizations.strip_lu import lu
from hloforge.pipelines.kernels.factorizations.strip_qr import orthogonal, qr
from hloforge.pipelines.kernels.factorizations.strip_solve import solve
from hloforge.pipelines.library_calls.registry import CustomCall

_CODE: dict[str, Callable[..., Sequence[Any]]] = {
    kept.CHOLESKY: cholesky,
    kept.SOLVE: solve,
    kept.LU: lu,
    kept.QR: qr,
    kept.ORTHOGONAL: orthogonal,
    kept.TRIDIAGONAL_QL: tridiagonal_ql,
    kept.BIDIAGONAL_QR: bidiagonal_qr,
}


@register
@dataclass(frozen=True)
class DispatchFactorizations(Pass):
    """Lower kept factorizations to dispatches, in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-factorizations"
    targets: ClassVar[frozenset[str]] = CPU
    establishes: ClassVar[Facts] = frozenset({Fact.NO_KEPT_CALLS})
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.custom_call"}):
                call = CustomCall.of(op)
                if call.target in _CODE:
                    with ir.InsertionPoint(op), op.location:
                        arrays = _CODE[call.target](*op.operands, **call.settings)
                        replace(op, list(map(Value, arrays)))
