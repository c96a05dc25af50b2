"""``inline-calls``: the bodies of called functions in the place of the calls.

Before::

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { %r = call @relu(%x) ... }
    func.func private @relu(%x: tensor<2xf32>) -> tensor<2xf32> { ... }

After: ``@main`` holds a copy of the body of ``@relu``, and ``@relu`` is gone.

jaxlib's native ``inline`` pass knows no interface of ``func`` and leaves every call. Source: XLA "Call".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import in_context, inlined_func_call, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.passes import NativePass, Pass, register
from hloforge.pipelines.patterns import replace

_CALL = "func.call"


@register
@dataclass(frozen=True)
class InlineCalls(Pass):
    """Inline every call whose callee has a body, callees first, and drop private functions that nobody uses.

    Raises (on run):
        PassError: a function calls itself, directly or not; XLA has no recursion.
    """

    name: ClassVar[str] = "inline-calls"

    def run(self, module: Any) -> None:
        with in_context(module):
            functions = {op.sym_name.value: op for op in module.body.operations if op.operation.name == "func.func"}
            done: set[str] = set()
            for name in functions:
                _inline_into(name, functions, done, ())
        NativePass("symbol-dce").run(module)


def _inline_into(name: str, functions: dict[str, Any], done: set[str], callers: tuple[str, ...]) -> None:
    """Inline the calls inside a function, after those inside its callees."""
    if name in done:
        return
    for call in operations(functions[name], {_CALL}):
        callee = call.attributes["callee"].value
        if callee in (*callers, name):
            raise PassError(f"@{callee} calls itself, and XLA has no recursion", location=location_of(call))
        target = functions.get(callee)
        if target is None or target.is_external:
            continue
        _inline_into(callee, functions, done, (*callers, name))
        with ir.InsertionPoint(call):
            results = inlined_func_call(target.operation, list(call.operands), call.location)
        replace(call, [Value(result) for result in results])
    done.add(name)
