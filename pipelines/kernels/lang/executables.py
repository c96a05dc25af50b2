"""Code of dispatches that is in a module once, however many dispatches run it.

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

from hloforge.dialect.marks import KEY, NUMBER, SHARED_CODE
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.builders import create, index
from hloforge.pipelines.framework.passes import NativePass

_EXECUTABLE = "flow.executable"
_EMPTY = "tensor.empty"


def code_of(key: str, rank: int, memory: Sequence[ir.Type], body: Callable[[Sequence[Any]], None]) -> ir.Attribute:
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
        if code.operation.attributes[KEY].value == key:
            return _symbol(code.operation.attributes["sym_name"].value)
    name = f"{SHARED_CODE}{len(codes)}"
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        run = _declare(name, key, rank, memory)
    with ir.InsertionPoint(ir.Block.create_at_start(run, list(memory))) as point:
        body(list(point.block.arguments))
        create("func.return", (), ())
        once(point.block, run)
    return _symbol(name)


def shared(dispatches: Sequence[Any]) -> None:
    """Let dispatches of one block and equal code, which each carries, run the code of the first."""
    first = dispatches[0]
    block, rank = first.regions[0].blocks[0], len(first.regions[1].blocks[0].arguments)
    module = _module(first)
    name = f"{SHARED_CODE}{sum(op.operation.name == _EXECUTABLE for op in module.regions[0].blocks[0])}"
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        run = _declare(name, name, rank, [argument.type for argument in block.arguments])
    block.append_to(run)
    end = list(block.operations)[-1].operation
    with ir.InsertionPoint(end):
        create("func.return", (), ())
    end.erase()
    for op in dispatches:
        attributes = {at: op.attributes[at] for at in op.attributes}
        with ir.InsertionPoint(op), op.location:
            entry = ir.ArrayAttr.get([_symbol(name)])
            made = create("flow.dispatch", op.operands, [r.type for r in op.results], entry_points=entry, **attributes)
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def return_counts(block: Any) -> None:
    """Return the counts of workgroups along three axes; the block's arguments are those along the first ones."""
    create("flow.return", [*block.arguments, *(index(1) for _ in range(3 - len(block.arguments)))], ())


def once(block: Any, region: ir.Region) -> None:
    """Keep each operation of a region's only block once; arrays without contents stay apart.

    Two fifths of what is written are constants and sums that are written before, which all of IREE's passes would read.
    """
    holder = ir.Module.create()
    name = ir.StringAttr.get("body")
    type_ = ir.TypeAttr.get(ir.FunctionType.get([argument.type for argument in block.arguments], []))
    with ir.InsertionPoint(holder.body):
        body = create("func.func", (), (), 1, sym_name=name, function_type=type_)
    block.append_to(body.regions[0])
    # One array for two that are written would be copied.
    for number, array in enumerate(operations(holder, {_EMPTY})):
        array.attributes[NUMBER] = ir.IntegerAttr.get(ir.IndexType.get(), number)
    NativePass("cse").run(holder)
    for array in operations(holder, {_EMPTY}):
        del array.attributes[NUMBER]
    block.append_to(region)


def _module(op: AnyOp) -> ir.Operation:
    while op.operation.parent is not None:
        op = op.operation.parent
    return op.operation


def _symbol(name: str) -> ir.Attribute:
    # IREE links all codes into one library, so that the functions' names differ as well.
    return ir.SymbolRefAttr.get([name, name])


def _declare(name: str, key: str, rank: int, memory: Sequence[ir.Type]) -> Any:
    """The region that the code of a new executable has to be written into."""
    texts = {"sym_name": name, "sym_visibility": "private", KEY: key}
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
    return run.regions[0]
