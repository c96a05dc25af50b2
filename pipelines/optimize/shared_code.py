"""Code of dispatches that stands once in a module, however many dispatches run it.

A ``flow.dispatch.workgroups`` carries its code with it. IREE takes equal ones together at last, but all of its passes
before work on each: a model of 72 products of six kinds took three times as long to compile::

    flow.executable private @hloforge_0 {
      flow.executable.export public @hloforge_0 workgroups(%x: index, %y: index) -> (index, index, index) { ... }
      builtin.module { func.func @hloforge_0(%source: ..., %target: ...) { ... } }
    }
    func.func @main(...) {
      %a = flow.dispatch @hloforge_0::@hloforge_0[%c4, %c2](%u) : ...
      %b = flow.dispatch @hloforge_0::@hloforge_0[%c4, %c2](%v) : ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.optimize.below import create, index

_EXECUTABLE = "flow.executable"
_KEY = "hloforge.key"


def code_of(key: str, rank: int, memory: Sequence[Any], body: Callable[[Sequence[Any]], None]) -> Any:
    """The symbol of the code with a key in the module around the insertion point, which is written if there is none.

    Args:
        key: tells codes apart: equal keys have the same types and mean the same code.
        rank: axes of workgroups, one to three.
        memory: the types that a workgroup sees.
        body: writes the code, from values of these types; it sees nothing else.
    """
    module = _module(ir.InsertionPoint.current.block.owner)
    codes = [op for op in module.regions[0].blocks[0] if op.operation.name == _EXECUTABLE]
    for code in codes:
        if code.operation.attributes[_KEY].value == key:
            return _symbol(code.operation.attributes["sym_name"].value)
    name = f"hloforge_{len(codes)}"
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        _write(name, key, rank, memory, body)
    return _symbol(name)


def return_counts(block: Any) -> None:
    """Return the counts of workgroups along three axes; the block's arguments are those along the first ones."""
    create("flow.return", [*block.arguments, *(index(1) for _ in range(3 - len(block.arguments)))], ())


def _module(op: Any) -> Any:
    while op.operation.parent is not None:
        op = op.operation.parent
    return op.operation


def _symbol(name: str) -> Any:
    # IREE links all codes into one library, so that the functions' names differ as well.
    return ir.SymbolRefAttr.get([name, name])


def _write(name: str, key: str, rank: int, memory: Sequence[Any], body: Callable[[Sequence[Any]], None]) -> None:
    texts = {"sym_name": name, "sym_visibility": "private", _KEY: key}
    executable = create(_EXECUTABLE, (), (), 1, **{at: ir.StringAttr.get(text) for at, text in texts.items()})
    entry, function = ir.StringAttr.get(name), ir.FlatSymbolRefAttr.get(name)
    with ir.InsertionPoint(ir.Block.create_at_start(executable.regions[0], [])):
        export = create("flow.executable.export", (), (), 1, sym_name=entry, function_ref=function)
        inner = create("builtin.module", (), (), 1)
        create("flow.executable_end", (), ())
    with ir.InsertionPoint(ir.Block.create_at_start(export.regions[0], [ir.IndexType.get()] * rank)) as point:
        return_counts(point.block)
    with ir.InsertionPoint(ir.Block.create_at_start(inner.regions[0], [])):
        type_ = ir.TypeAttr.get(ir.FunctionType.get(list(memory), []))
        run = create("func.func", (), (), 1, sym_name=entry, function_type=type_)
    with ir.InsertionPoint(ir.Block.create_at_start(run.regions[0], list(memory))) as point:
        body(list(point.block.arguments))
        create("func.return", (), ())
