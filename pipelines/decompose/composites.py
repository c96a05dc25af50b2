"""``lower-composites``: composites, by a table of handlers, else by their own decomposition.

Before::

    %y = stablehlo.composite "my.gelu" %x {decomposition = @gelu_impl}

After: what the handler of ``my.gelu`` builds; without a handler, the body of ``@gelu_impl``.

A handler may serve a composite better than its portable decomposition does (an operation that a target has natively,
a stabler formula). The table is keyed by the composite's name.
Source: StableHLO spec "composite", XLA "CompositeCall".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import entries, ir
from hloforge.dialect.operations import operations, string_attribute
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import NativePass, Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, Rewrite, apply_patterns
from hloforge.pipelines.normalize.inline_calls import InlineCalls

_COMPOSITE = "stablehlo.composite"
_HANDLERS: dict[str, Rewrite] = {}
_DEPTH = 64


def handles(name: str) -> Callable[[Rewrite], Rewrite]:
    """Decorator: the function lowers composites called ``name``; one handler a name."""

    def decorate(handler: Rewrite) -> Rewrite:
        if name in _HANDLERS:
            raise ValueError(f"{name} has two handlers")
        _HANDLERS[name] = handler
        return handler

    return decorate


def _chlo_operation(op: ir.Operation) -> Replacement:
    """XLA and JAX wrap CHLO operations into composites of their name; the operation itself expands more accurately."""
    attributes = composite_attributes(op)
    # XLA's top_k may take the smallest elements, which CHLO's cannot say.
    if "largest" in attributes and not ir.BoolAttr(attributes.pop("largest")).value:
        return NoMatch("CHLO has no top_k of the smallest elements")
    created = ir.Operation.create(
        string_attribute(op, "name"),
        results=[result.type for result in op.results],
        operands=list(op.operands),
        attributes=attributes,
    )
    return [Value(result) for result in created.results]


def composite_attributes(op: ir.Operation) -> dict[str, Any]:
    """The configuration of a composite: MLIR attributes by name."""
    if "composite_attributes" not in op.attributes:
        return {}
    return entries(op.attributes["composite_attributes"])


_CHLO = "acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma polygamma sinh tan top_k zeta"
for _name in _CHLO.split():
    handles(f"chlo.{_name}")(_chlo_operation)


@register
@dataclass(frozen=True)
class LowerComposites(Pass):
    """Call the handlers of composites, then expand the rest; repeats until none is left, because composites nest.

    Attributes:
        keep: names of composites that stay, for a pipeline that lowers them itself.
    """

    name: ClassVar[str] = "lower-composites"
    needs: ClassVar[frozenset[str]] = frozenset({_COMPOSITE})
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.NO_CHLO, Fact.NO_LIBRARY_CALLS, Fact.NO_QUANTIZED})
    keep: tuple[str, ...] = ()

    def run(self, module: ir.Module) -> None:
        for _ in range(_DEPTH):
            apply_patterns(module, (Pattern(_COMPOSITE, self._by_handler, "by-handler"),))
            left = [op for op in operations(module, {_COMPOSITE}) if string_attribute(op, "name") not in self.keep]
            if not left:
                return
            kept = f"{{except={','.join(self.keep)}}}" if self.keep else ""
            NativePass(f"func.func(stablehlo-legalize-composite-to-call{kept})").run(module)
            InlineCalls().run(module)
        raise PassError(f"composites nest deeper than {_DEPTH}: {string_attribute(left[0], 'name')} calls itself")

    def _by_handler(self, op: ir.Operation) -> Replacement:
        name = string_attribute(op, "name")
        if name in self.keep:
            return NoMatch(f"composite {name!r} is kept")
        handler = _HANDLERS.get(name)
        return handler(op) if handler else NoMatch(f"composite {name!r} has no handler")
