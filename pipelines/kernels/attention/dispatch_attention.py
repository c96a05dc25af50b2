"""``dispatch-attention``: softmax(q k^T) v in one dispatch, without the scores in memory.

Before::

    %s = f(dot_general %q, %k)                       // [..., queries, keys]; f scales, masks, adds
    %e = exponential(%s - max(%s))
    %o = dot_general (%e / sum(%e)), %v

After::

    %o = dispatch {
      for some keys:
        scores = f(q k^T)                            // [keys, 16 queries], on the stack
        greatest, weights = max(greatest, scores), exp(scores - greatest)
        sums, totals = sums + weights, totals + v^T weights     // both scaled when the greatest score grows
      o = totals / sums }

IREE writes and reads the scores of all pairs four times. Here each number of keys and values meets 16 queries in
registers. Sources: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al.,
FlashAttention, 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, SSAValue, arith, in_context, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers, operations, splat
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner
from hloforge.pipelines.framework.builders import index, stands_in_dispatch
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.attention.attention_kernel import Kernel, Tile
from hloforge.pipelines.kernels.attention.attention_scores import Place, Scores
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import filling, is_elementwise

# The work that is worth a dispatch, by that of dispatches.
_WORTH = 8
# Lines of vectors on the stack, of which IREE allows 32 KiB on any processor.
_STACK_BYTES = 28 << 10
# Multiplications that this kernel counts for a weight beside its products; they decide about threads alone.
_WEIGHT_COST = 16
# What the softmax and the scores are computed by, beside elementwise operations.
_SOFTMAX = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "constant", "dot_general", "iota", "reduce", "reshape")
)
_FLOATS = frozenset(("bf16", "f16", "f32"))


@dataclass(frozen=True)
class _Attention:
    """Attention that was found.

    Attributes:
        scores: what the softmax is of.
        queries, keys: ``[b, m, d]`` and ``[b, n, d]``.
        values: ``[b, n, e]``.
        batch: the sizes that b is made of.
        flipped: whether the result is ``[..., e, m]``.
    """

    scores: Scores
    queries: Value
    keys: Value
    values: Value
    batch: tuple[int, ...]
    flipped: bool


@register
@dataclass(frozen=True)
class DispatchAttention(MachinePass):
    """Make dispatches of attention; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-attention"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.dot_general"}):
                matched = None if stands_in_dispatch(op) else _scores_of(op, self.machine)
                if matched is None:
                    continue
                weights = op.operands[matched[1]]
                with ir.InsertionPoint(op), op.location:
                    replace(op, [_dispatched(op, *matched, Tile.of(self.machine))])
                _erase_unread(weights)


def _scores_of(op: ir.Operation, machine: Machine) -> tuple[Scores, int] | None:
    """The scores whose softmax a product weighs values with, and the operand that holds it; None for others."""
    if not all(Value(value).shape.is_static for value in (*op.operands, *op.results)):
        return None
    if Value(op.results[0]).element_type.name != "f32":
        return None
    for side, operand in enumerate(op.operands):
        softmaxed = _softmaxed(operand)
        scores = None if softmaxed is None else Scores.of(softmaxed)
        if scores is not None and _is_attention(op, side, scores, machine):
            return scores, side
    return None


def _softmaxed(weights: SSAValue) -> SSAValue | None:
    """What an array is the softmax of, along its last dimension; None if it is none, or others read parts of it."""
    division = defining_op(weights, "stablehlo.divide")
    exponential = division and defining_op(division.operands[0], "stablehlo.exponential")
    difference = exponential and defining_op(exponential.operands[0], "stablehlo.subtract")
    if division is None or exponential is None or difference is None:
        return None
    if len(list(weights.uses)) != 1 or len(list(exponential.results[0].uses)) != 2:
        return None
    scores, greatest = difference.operands
    summed = _reduced(division.operands[1], "stablehlo.add", 0.0)
    compared = _reduced(greatest, "stablehlo.maximum", -inf)
    if summed is None or compared is None:
        # The bindings compare values with values alone.
        return None
    is_softmax = summed == exponential.results[0] and compared == scores
    return scores if is_softmax and Value(scores).element_type.name == "f32" else None


def _reduced(spread: SSAValue, name: str, first: float) -> SSAValue | None:
    """What is reduced along the last dimension, from this number on, and spread along it again; None for others."""
    rank, value = len(spread.type.shape), spread
    sizes = [int(size) for size in spread.type.shape]
    broadcast = defining_op(value, "stablehlo.broadcast_in_dim")
    if broadcast is None:
        return None
    dimensions, value = integers(broadcast, "broadcast_dimensions"), broadcast.operands[0]
    if dimensions == list(range(rank)) and int(value.type.shape[-1]) == 1:
        inner = defining_op(value, "stablehlo.reshape") or defining_op(value, "stablehlo.broadcast_in_dim")
        kept = inner and inner.name == "stablehlo.broadcast_in_dim" and integers(inner, "broadcast_dimensions")
        if inner is None or (kept and kept != list(range(rank - 1))):
            return None
        value = inner.operands[0]
    elif dimensions != list(range(rank - 1)):
        return None
    # JAX takes the maximum with -inf once more.
    again = defining_op(value, name)
    if again is not None and _is_filled(again.operands[0], first):
        value = again.operands[1]
    reduction = defining_op(value, "stablehlo.reduce")
    if reduction is None or [int(size) for size in value.type.shape] != sizes[:-1] or len(reduction.results) != 1:
        return None
    if combiner(reduction) != name or integers(reduction, "dimensions") != [rank - 1]:
        return None
    return reduction.operands[0] if _is_filled(reduction.operands[1], first) else None


def _is_filled(array: SSAValue, number: float) -> bool:
    constant = filling(array)
    return constant is not None and splat(constant) == number


def _is_attention(op: Any, side: int, scores: Scores, machine: Machine) -> bool:
    """Whether products of queries and keys, and of weights and values, have dimensions that the kernel takes."""
    outer, inner = _numbers(op), _numbers(_dot(scores))
    rank = scores.rank
    batches = outer.lhs_batching_dimensions, outer.rhs_batching_dimensions
    summed = outer.lhs_contracting_dimensions, outer.rhs_contracting_dimensions
    if list(batches[side]) != list(range(rank - 2)) or list(summed[side]) != [rank - 1]:
        return False
    if len(inner.lhs_batching_dimensions) != rank - 2 or len(inner.lhs_contracting_dimensions) != 1:
        return False
    factors = [Value(value) for value in (*_dot(scores).operands, op.operands[1 - side])]
    # One dimension each of what is summed, and of what is not.
    if any(factor.rank != rank or factor.element_type.name not in _FLOATS for factor in factors):
        return False
    if Value(scores.product).element_type.name != "f32" or Value(op.operands[side]).dims != Value(scores.product).dims:
        return False
    *batch, queries, keys = Value(scores.product).dims
    depth, width = _size(factors[0], inner.lhs_contracting_dimensions), Value(op.results[0]).shape.element_count
    width //= max(1, prod(batch) * queries)
    is_worth = prod(batch) * queries * keys * (depth + width) >= machine.work_of(_WORTH)
    tile = Tile.of(machine)
    lines = depth + width + min(keys, tile.keys)
    return queries >= tile.queries and is_worth and lines * machine.line_bytes <= _STACK_BYTES


def _numbers(product: AnyOp) -> stablehlo.DotDimensionNumbers:
    return stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])


def _dot(scores: Scores) -> Any:
    return scores.product.owner


def _size(factor: Value, dimensions: Sequence[int]) -> int:
    return prod(factor.dims[d] for d in dimensions)


def _dispatched(op: Any, scores: Scores, side: int, tile: Tile) -> Value:
    outer, inner = _numbers(op), _numbers(_dot(scores))
    queries, keys = (Value(value) for value in _dot(scores).operands)
    values = Value(op.operands[1 - side])
    sides = [(outer.lhs_batching_dimensions, outer.lhs_contracting_dimensions)]
    sides.append((outer.rhs_batching_dimensions, outer.rhs_contracting_dimensions))
    batch = tuple(Value(scores.product).dims[:-2])
    found = _Attention(
        scores,
        _arranged(queries, inner.lhs_batching_dimensions, inner.lhs_contracting_dimensions, summed_last=True),
        _arranged(keys, inner.rhs_batching_dimensions, inner.rhs_contracting_dimensions, summed_last=True),
        _arranged(values, *sides[1 - side], summed_last=False),
        batch,
        side == 1,
    )
    result = Value(_computed(found, tile))
    if found.flipped:
        result = ops.transpose(result, [0, 2, 1])
    return ops.reshape(result, Value(op.results[0]).dims)


def _erase_unread(value: SSAValue) -> None:
    """Erase what an array was computed from by the operations of attention, where nothing else reads it."""
    waiting, found = [value], []
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block) or owner in found:
            continue
        if owner.name in _SOFTMAX or is_elementwise(owner):
            found.append(owner)
            waiting += owner.operands
    while unread := [op for op in found if not any(list(result.uses) for result in op.results)]:
        found.remove(unread[0])
        unread[0].erase()


def _arranged(factor: Value, batch: Sequence[int], summed: Sequence[int], *, summed_last: bool) -> Value:
    """A factor in f32, with the dimensions of the batch as one, and the summed one last or second."""
    free = [d for d in range(factor.rank) if d not in (*batch, *summed)]
    inner = [*free, *summed] if summed_last else [*summed, *free]
    moved = ops.convert_element_type(ops.transpose(factor, [*batch, *inner]), "f32")
    return ops.reshape(moved, [prod(moved.dims[:-2]), *moved.dims[-2:]])


def _computed(found: _Attention, tile: Tile) -> SSAValue:
    (count, rows, depth), (_, lines, width) = found.queries.dims, found.values.dims
    element = found.queries.ir.type.element_type
    more = found.scores.operands()
    operands = [found.queries.ir, found.keys.ir, found.values.ir, *more]
    parts = [[1, tile.queries, depth], [1, lines, depth], [1, lines, width]]

    def run(
        places: Sequence[SSAValue], sources: Sequence[SSAValue], _: Sequence[Any], targets: Sequence[SSAValue]
    ) -> None:
        # The last workgroup computes again what of its queries is another one's.
        query = code.combine(arith.muli, places[0], tile.queries)
        query = code.combine(arith.minui, query, rows - tile.queries)
        starts = [[places[1], query, 0], [places[1], 0, 0], [places[1], 0, 0]]
        queries, keys, values = (
            code.load(source, ir.RankedTensorType.get(part, element), start)
            for source, part, start in zip(sources[:3], parts, starts, strict=True)
        )
        memory = [code.load(m, o.type, [0] * len(o.type.shape)) for m, o in zip(sources[3:], more, strict=True)]
        batch = _coordinates(places[1], found.batch)

        def score(product: SSAValue, key: SSAValue) -> Any:
            return found.scores.evaluate(product, memory, Place(batch, query, key, tile.queries))

        code.store(Kernel(queries, keys, values, score, tile).result(), targets[0], [places[1], query, 0])

    whole = ir.RankedTensorType.get([count, rows, width], element)
    work = count * rows * lines * (depth + width + _WEIGHT_COST)
    key = f"attention {found.batch} {found.scores.text()}"
    return code.workgroups([-(-rows // tile.queries), count], operands, (), [whole], run, work=work, key=key)[0]


def _coordinates(number: SSAValue, sizes: Sequence[int]) -> list[SSAValue]:
    """The ``index`` along each dimension of a position in all of them."""
    found: list[Any] = []
    for size in reversed(sizes):
        found.insert(0, index(0) if size == 1 else code.combine(arith.remui, number, size))
        number = code.combine(arith.divui, number, size)
    return found
