"""Dead code elimination: operations that nobody reads, loops included, and carries that only make themselves.

MLIR removes operations without readers, but a loop has one as soon as anybody reads an array that it passes on
unchanged; and each carry has the loop. As in XLA, a loop whose arrays nobody reads is not run, whether it ends or not.
Source: XLA "WhileLoopSimplifier", "HloDCE".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hloforge.pipelines.codegen.graph import Array, Block, Op


def eliminate(block: Block) -> None:
    """Remove what has no effect and no reader."""
    _Eliminator(block).visit(block)


def captured(op: Op) -> Iterator[Array]:
    """The arrays of outer blocks that an operation's regions read."""

    def visit(block: Block) -> Iterator[Array]:
        for inner in block.ops:
            yield from inner.operands
            for deeper in inner.inner:
                yield from visit(deeper)
        yield from block.results

    for block in op.inner:
        for array in visit(block):
            if not any(array.block.inside(inside) for inside in op.inner):
                yield array


class _Eliminator:
    def __init__(self, block: Block) -> None:
        # How often blocks give an array back.
        self._given = Counter(array for one in _blocks(block) for array in one.results)

    def visit(self, block: Block) -> None:
        """The last operation first, so that readers are gone before what they read is looked at."""
        for op in reversed(list(block.ops)):
            if op.results and not op.has_effects and not any(map(_is_read, op.results)):
                block.ops.remove(op)
                self._forget(op)
                continue
            if op.name == "while":
                self._trim(op)
            for inner in op.inner:
                self.visit(inner)
            if op.inner:
                self._recapture(op)

    def _forget(self, op: Op) -> None:
        for inner in op.inner:
            for array in inner.results:
                self._take_back(array)
            for deeper in inner.ops:
                self._forget(deeper)
        for array in {*op.operands, *op.captured}:
            _unread(array, op)
        op.mlir = None

    def _take_back(self, array: Array) -> None:
        self._given[array] -= 1
        array.is_result = self._given[array] > 0

    def _trim(self, op: Op) -> None:
        """Leave the carries that somebody reads after the loop or decides by, and what they are made of."""
        condition, body = op.inner
        kept = _needed(op) if not op.has_effects else set(range(len(op.results)))
        if len(kept) == len(op.results):
            return
        for number, array in enumerate(body.results):
            if number not in kept:
                self._take_back(array)
        order = sorted(kept)
        for array in {*op.operands, *op.captured}:
            _unread(array, op)
        op.operands = tuple(op.operands[number] for number in order)
        for array in (*op.operands, *op.captured):
            array.readers.append(op)
        op.results = tuple(op.results[number] for number in order)
        body.results = tuple(body.results[number] for number in order)
        for block in (condition, body):
            block.arguments = tuple(block.arguments[number] for number in order)

    @staticmethod
    def _recapture(op: Op) -> None:
        for array in {*op.operands, *op.captured}:
            _unread(array, op)
        op.captured = tuple(dict.fromkeys(captured(op)))
        for array in (*op.operands, *op.captured):
            array.readers.append(op)


def _needed(op: Op) -> set[int]:
    """The numbers of a loop's carries that matter."""
    condition, body = op.inner
    found: set[int] = set()
    waiting = [number for number, result in enumerate(op.results) if _is_read(result)]
    waiting += [number for number, argument in enumerate(condition.arguments) if _is_read(argument)]
    numbers = {argument: number for number, argument in enumerate(body.arguments)}
    seen: set[Array] = set()
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        found.add(number)
        arrays = [body.results[number]]
        while arrays:
            array = arrays.pop()
            if array in seen:
                continue
            seen.add(array)
            if array in numbers:
                waiting.append(numbers[array])
            elif array.op is not None and array.block.inside(body):
                arrays += [*array.op.operands, *array.op.captured]
    return found


def _unread(array: Array, op: Op) -> None:
    array.readers = [reader for reader in array.readers if reader is not op]


def _is_read(array: Array) -> bool:
    return array.is_result or bool(array.readers)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for inner in op.inner:
            yield from _blocks(inner)
