"""``inline-calls``: replace calls by the bodies of their functions.

Before::

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { %r = call @relu(%x) ... }
    func.func private @relu(%x: tensor<2xf32>) -> tensor<2xf32> { ... }

After: ``@main`` holds a copy of the body of ``@relu``, and ``@relu`` is gone.

Calls of functions without a body (host calls) stay. Source: XLA "Call".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.inlining import inline_calls
from hloforge.dialect.mlir import ir
from hloforge.pipelines.framework.facts import NOTHING, Fact, Facts
from hloforge.pipelines.framework.passes import NativePass, Pass, register


@register
@dataclass(frozen=True)
class InlineCalls(Pass):
    """Inline every call whose callee has a body, callees first, and remove unused private functions.

    Raises (on run):
        PassError: a function calls itself, directly or not; XLA has no recursion.
    """

    name: ClassVar[str] = "inline-calls"
    requires: ClassVar[Facts] = NOTHING
    establishes: ClassVar[Facts] = frozenset({Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        inline_calls(module)
        NativePass("symbol-dce").run(module)
