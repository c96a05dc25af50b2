"""``lower-mhlo``: convert the rest of XLA's own dialect to CHLO and StableHLO.

Before::

    %r = mhlo.acosh %x : tensor<4xf32>
    %v:2 = mhlo.topk(%x, k = 2, largest = true) : ...
    %s = stablehlo.custom_call @mhlo.erf(%x) : ...
    %n = mhlo.xla.rng_get_and_update_state {delta = 1}

After::

    %r = chlo.acosh %x : tensor<4xf32> -> tensor<4xf32>
    %v:2 = chlo.top_k(%x, k = 2) : ...
    %s = chlo.erf %x : ...
    %n = stablehlo.custom_call @hloforge.rng_state() {delta = 1, number = 0}     (one number for each state)

Operations that StableHLO has too are translated by its own pass. Runs after the passes for fusions, bitcasts, copies
and asynchronous pairs. Source: MHLO and CHLO dialects, StableHLO "custom_call" (the targets ``mhlo.*`` of JAX).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import Kind
from hloforge.dialect.emission import emit, i64, i64_matrix
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.marks import RNG_STATE
from hloforge.dialect.mlir import AnyOp, entries, in_context, ir
from hloforge.dialect.operations import integers, location_of, operations, string_attribute
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.manager import op_text
from hloforge.pipelines.framework.passes import Pass, diagnostic_text, parse_native, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern, replace
from hloforge.pipelines.library_calls.registry import target_of
from hloforge.pipelines.normalize.ragged_groups import batches_first
from hloforge.pipelines.normalize.scaled_dot import scaled_dot
from hloforge.pipelines.normalize.stochastic import stochastic_convert

_UNARY = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erf_inv", "sinh", "square", "tan")
_BINARY = ("mulhi",)
_DIRECT = {name: f"chlo.{name}" for name in (*_UNARY, *_BINARY)} | {"tan": "stablehlo.tan"}
_PREFIX = "mhlo."
# What the targets of custom calls begin with; importers/hlo_calls.py makes the second of the first.
_CALL_PREFIX = re.compile(r"(mhlo|chlo)\.")
_RNG_STATE = "mhlo.xla.rng_get_and_update_state"
_CALL = "stablehlo.custom_call"
# The call that newer versions of XLA expand ``rng`` with: a seed for each run, of which XLA promises nothing else.
RNG_SEED = "GetRngSeed"
# The golden ratio as a fraction of 64 bits: numbers that are far from each other.
_SEED_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_ATTRIBUTES = "mhlo.attributes"
_NESTED_DOT = re.compile(r"dot_dimension_numbers = #mhlo\.dot<([^<>]*)>")
# Why an operation has no form outside of XLA.
_REASONS = {
    "mhlo.minimum_broadcast_shapes": "it computes with shapes; export the program with static shapes",
    "mhlo.stochastic_convert": "XLA rounds to signed integers by random bits, and to no other type",
}


@pattern(*(_PREFIX + name for name in _DIRECT))
def elementwise(op: ir.Operation) -> Replacement:
    """mhlo.f(x...) -> chlo.f(x...)"""
    return _same(op, _DIRECT[op.name.removeprefix(_PREFIX)])


@pattern("stablehlo.custom_call")
def custom_call_of_mhlo(op: ir.Operation) -> Replacement:
    """custom_call @mhlo.f(x...) -> chlo.f(x...), and ``@mhlo.topk`` with its attributes."""
    target = string_attribute(op, "call_target_name")
    prefix = _CALL_PREFIX.match(target)
    name = target[prefix.end() :] if prefix else ""
    if name in _DIRECT:
        return _same(op, _DIRECT[name])
    if name not in ("topk", "top_k"):
        return NoMatch(f"no form of @{target}")
    attributes = _attributes(op)
    largest = "largest" not in attributes or ir.BoolAttr(attributes["largest"]).value
    k = ir.IntegerAttr(attributes["k"]).value if "k" in attributes else Value(op.results[0]).dims[-1]
    return _top_k(op, k, largest)


def _attributes(op: AnyOp) -> dict[str, Any]:
    """What a call says of the operation it represents: StableHLO's in an attribute, HLO's in its configuration.

    Raises UnsupportedError for a configuration that is something else.
    """
    found = op.attributes[_ATTRIBUTES] if _ATTRIBUTES in op.attributes else op.attributes.get("backend_config")
    if isinstance(found, ir.StringAttr):
        found = _dictionary(found.value)
    if found is not None and not isinstance(found, ir.DictAttr):
        raise _unsupported(op, "its configuration is no dictionary of attributes")
    return entries(found) if found else {}


def _dictionary(text: str) -> Any:
    try:
        return ir.Attribute.parse(text or "{}")
    except ir.MLIRError:
        return text


@pattern("mhlo.topk")
def top_k(op: ir.Operation) -> Replacement:
    """mhlo.topk(x, k, largest) -> chlo.top_k; the smallest are the largest of the mirrored order."""
    largest = "largest" not in op.attributes or ir.BoolAttr(op.attributes["largest"]).value
    return _top_k(op, ir.IntegerAttr(op.attributes["k"]).value, largest)


def _top_k(op: ir.Operation, k: int, largest: bool) -> Sequence[Value]:
    operand = Value(op.operands[0])
    mirror = operand if largest else _mirrored(operand)
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), k)
    types = [result.type for result in op.results]
    top = ir.Operation.create("chlo.top_k", results=types, operands=[mirror.ir], attributes={"k": count})
    values, indices = map(Value, top.results)
    return [values if largest else _mirrored(values), indices]


def _mirrored(value: Value) -> Value:
    """An order-reversing map that is its own inverse: ``-x`` keeps a float's bits, ``~x`` has no overflow."""
    if value.element_type.kind is Kind.FLOAT:
        return -value
    return ~value


@pattern("mhlo.ragged_dot")
def ragged_dot(op: ir.Operation) -> Replacement:
    """mhlo.ragged_dot -> chlo.ragged_dot with the attributes spelled in CHLO."""
    return _same(op, "chlo.ragged_dot", _in_chlo(op))


@pattern("mhlo.all_to_all")
def all_to_all_of_tuple(op: ir.Operation) -> Replacement:
    """mhlo.all_to_all(x0, x1 ...), operand i for member i -> stablehlo.all_to_all of the operands as rows."""
    if "split_dimension" in op.attributes:
        return NoMatch("StableHLO has its form of one array")
    count, (first, *_) = len(op.operands), map(Value, op.operands)
    rows = ops.concat_in_dim([ops.reshape(Value(operand), [1, *first.dims]) for operand in op.operands], 0)
    shared = {name: op.attributes[name] for name in ("replica_groups", "channel_handle") if name in op.attributes}
    attributes = {name: ir.Attribute.parse(str(value).replace("#mhlo", "#stablehlo")) for name, value in shared.items()}
    if not integers(op, "replica_groups"):
        # StableHLO's form of one array names its members.
        attributes["replica_groups"] = i64_matrix([list(range(count))], count)
    numbers = {"split_dimension": i64(0), "concat_dimension": i64(0), "split_count": i64(count)}
    exchanged = emit("stablehlo.all_to_all", [rows], rows.type, **attributes, **numbers)
    return [exchanged[number] for number in range(count)]


@pattern("mhlo.scan")
def scan(op: ir.Operation) -> Replacement:
    """mhlo.scan -> chlo.scan with the body moved."""
    moved = ir.Operation.create(
        "chlo.scan",
        results=[result.type for result in op.results],
        operands=list(op.operands),
        attributes={name: op.attributes[name] for name in op.attributes},
        regions=1,
    )
    body = op.regions[0].blocks[0]
    body.append_to(moved.regions[0])
    terminator = list(moved.regions[0].blocks[0].operations)[-1].operation
    if terminator.name == "mhlo.return":
        with ir.InsertionPoint(terminator), terminator.location:
            ir.Operation.create("stablehlo.return", operands=list(terminator.operands))
        terminator.erase()
    return [Value(result) for result in moved.results]


def _in_chlo(op: AnyOp) -> dict[str, Any]:
    """The attributes of a ragged dot: CHLO writes the dimensions of the dot in one list with the others."""
    names = ("ragged_dot_dimension_numbers", "precision_config")
    respelled = {name: str(op.attributes[name]) for name in names if name in op.attributes}
    flat = {name: _NESTED_DOT.sub(r"\1", text).replace("#mhlo", "#chlo") for name, text in respelled.items()}
    return {name: ir.Attribute.parse(text) for name, text in flat.items()}


def _same(op: ir.Operation, name: str, attributes: dict[str, Any] | None = None) -> Sequence[Value]:
    created = ir.Operation.create(
        name, results=[result.type for result in op.results], operands=list(op.operands), attributes=attributes or {}
    )
    return [Value(result) for result in created.results]


_PATTERNS = (
    *(*elementwise, *custom_call_of_mhlo, *top_k, *ragged_dot, *scan, *all_to_all_of_tuple),
    *(*batches_first, *stochastic_convert, *scaled_dot),
)


@register
@dataclass(frozen=True)
class LowerMhlo(Pass):
    """Replace every operation of ``mhlo``.

    Raises (on run):
        UnsupportedError: an operation without a form in StableHLO or CHLO.
    """

    name: ClassVar[str] = "lower-mhlo"
    needs: ClassVar[frozenset[str]] = frozenset({_PREFIX, _CALL, *(entry.root for entry in _PATTERNS)})
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})
    establishes: ClassVar[Facts] = frozenset({Fact.NO_MHLO})

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, _PATTERNS)
        _number_states(module)
        _erase_traces(module)
        left = _of_mhlo(module)
        known = next((op for op in left if op.name in _REASONS), None)
        if known is not None:
            raise _unsupported(known, _REASONS[known.name])
        if left:
            _translate(module)
        left = _of_mhlo(module)
        if left:
            raise _unsupported(left[0], "it has no form in StableHLO")


def _number_states(module: ir.Module) -> None:
    """Calls for the random states, numbered before loops are unrolled: each operation of the program has one."""
    found = [op for op in operations(module, {_RNG_STATE, _CALL}) if op.name == _RNG_STATE or _is_seed(op)]
    for number, op in enumerate(found):
        is_seed = op.name == _CALL
        delta = _SEED_STEP if is_seed else ir.IntegerAttr(op.attributes["delta"]).value
        settings = {"delta": delta, "number": number}
        with ir.InsertionPoint(op), op.location:
            state = ops.custom_call(RNG_STATE, [], "u64[2]", backend_config=settings, has_side_effect=True)
            made = ops.reshape(ops.slice(state, [0], [1]), []) if is_seed else state
        replace(op, [made])


def _is_seed(op: AnyOp) -> bool:
    is_plain = not op.operands and [str(result.type) for result in op.results] == ["tensor<ui64>"]
    return is_plain and target_of(op) == RNG_SEED


def _erase_traces(module: ir.Module) -> None:
    """``mhlo.trace`` only names a value for a profiler."""
    for op in operations(module, {"mhlo.trace"}):
        op.erase()


def _of_mhlo(module: ir.Module) -> list[Any]:
    return [op for op in operations(module) if op.name.startswith(_PREFIX)]


def _translate(module: ir.Module) -> None:
    with in_context(module):
        try:
            parse_native("hlo-legalize-to-stablehlo").run(module.operation)
        except ir.MLIRError as error:
            culprit = _culprit(module, diagnostic_text(error))
            raise _unsupported(culprit, "it has no form in StableHLO") from None


def _culprit(module: ir.Module, diagnostic: str) -> Any:
    """The operation that the native pass names; it leaves the module as it was."""
    match = re.search(r"'(mhlo\.[\w.]+)'", diagnostic)
    left = _of_mhlo(module)
    return next((op for op in left if match and op.name == match[1]), left[0])


def _unsupported(op: AnyOp, reason: str) -> UnsupportedError:
    return UnsupportedError(f"{op.name} cannot be translated: {reason}", location=location_of(op), op=op_text(op))
