"""``decompose-shape-assertions``: what a program requires of the sizes of its arguments, checked where possible.

Before::

    %fits = stablehlo.compare GE, %b, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%fits, %b) {error_message = "b is {0}, which is less than 1"}

After, where the sizes are known at run time only::

    %ok = arith.cmpi sge, (tensor.extract %b[]), (tensor.extract %one[]) : i32
    cf.assert %ok, "shape assertion: b is {dimension 0 of x}, which is less than 1"

Code generation of our own has no assertions: with ``by-host`` the condition goes to a function of the host, which ends
the call with the message. So do checks of elements, which PyTorch's graphs have (``torch._check``).

IREE evaluates arithmetic of sizes on the host, and a call whose assertion fails ends with the message. Where the
program fixes the sizes, an assertion that holds is gone, and one that does not is an error with its sizes in words.
Source: JAX "Shape assertion errors" of jax.export; StableHLO ``stablehlo-check-shape-assertions``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.abi import SHAPE_ASSERTION, crosses
from hloforge.dialect.dense_values import array_of
from hloforge.dialect.emission import flag, text
from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.host_calls import TYPED_FFI, HostCall
from hloforge.dialect.marks import CHECK, HOST_CALL
from hloforge.dialect.mlir import SSAValue, arith, ir
from hloforge.dialect.operations import defining_op, integer, string_attribute
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.framework.builders import create, element_of
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, apply_patterns

CALL = "shape_assertion"
_ROOT = "stablehlo.custom_call"
_PLACE = re.compile(r"\{(\d+)\}")


def checked(op: ir.Operation, names: Sequence[str], by_host: bool = False) -> Replacement:
    """shape_assertion -> nothing, cf.assert or a call of the host; raises ArgumentError for one that never holds.

    Args:
        names: of the arguments of ``main``, for the message.
    """
    if string_attribute(op, "call_target_name") != CALL:
        return NoMatch("another call")
    message = string_attribute(op, "error_message") or "a size does not fit"
    condition, *details = op.operands
    known = _constant(condition)
    if known:
        return []
    if known == 0:
        raise ArgumentError(_filled(message, [_text(value, names) for value in details]))
    said = SHAPE_ASSERTION + _filled(message, [f"{{{_text(value, names)}}}" for value in details])
    if by_host:
        _call_host(condition, said)
    else:
        create("cf.assert", [_scalar(condition)], [], msg=text(said))
    return []


def _call_host(condition: SSAValue, message: str) -> None:
    """A call that is legal already (``legalize-host-calls``): a scalar has no layout."""
    whole = ir.RankedTensorType.get([], condition.type.element_type)
    if condition.type != whole:
        condition = create("stablehlo.reshape", [condition], [whole]).results[0]
    record = HostCall(CHECK, (Shape.array("pred"),), Shape.tuple_of(), TYPED_FFI, attributes={"message": message})
    attributes = {
        "call_target_name": text(HOST_CALL),
        "has_side_effect": flag(True),
        HOST_CALL: text(record.to_json()),
    }
    ir.Operation.create(_ROOT, operands=[condition], attributes=attributes)


def _filled(message: str, details: Sequence[str]) -> str:
    """The message with its ``{0}`` replaced by what they represent."""
    return _PLACE.sub(lambda match: details[int(match[1])] if int(match[1]) < len(details) else match[0], message)


def _text(value: SSAValue, names: Sequence[str]) -> str:
    """A number; or what is known of one that only a call has."""
    known = _constant(value)
    if known is not None:
        return str(known)
    op = defining_op(value)
    if op is not None and op.name in ("stablehlo.convert", "stablehlo.reshape"):
        return _text(op.operands[0], names)
    if op is None or op.name != "stablehlo.get_dimension_size":
        return "a size computed from the arguments"
    operand = op.operands[0]
    of = names[operand.arg_number] if isinstance(operand.owner, ir.Block) and len(names) > operand.arg_number else "it"
    return f"dimension {integer(op, 'dimension')} of {of}"


def _constant(value: SSAValue) -> int | None:
    op = defining_op(value)
    if op is None or op.name != "stablehlo.constant":
        return None
    return int(array_of(op.attributes["value"]).reshape(-1)[0])


def _scalar(condition: SSAValue) -> Any:
    """The condition as an i1. IREE evaluates integer arithmetic on the host, and comparisons if they are arith's."""
    op = defining_op(condition)
    if op is None or op.name != "stablehlo.compare":
        return element_of(condition)
    left, right = op.operands
    element = left.type.element_type
    if not isinstance(element, ir.IntegerType) or element.is_unsigned:
        return element_of(condition)
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">").lower()
    # Booleans are unsigned.
    sign = "" if direction in ("eq", "ne") else "u" if element.width == 1 else "s"
    return arith.cmpi(arith.CmpIPredicate[sign + direction], element_of(left), element_of(right))


@register
@dataclass(frozen=True)
class DecomposeShapeAssertions(Pass):
    """Check the assertions of JAX's shape-polymorphic exports about sizes of arguments, and of PyTorch's graphs.

    Attributes:
        by_host: whether a function of the host checks what only a call knows.

    Raises (on run):
        ArgumentError: an assertion on sizes that the program fixes does not hold.
    """

    name: ClassVar[str] = "decompose-shape-assertions"
    needs: ClassVar[frozenset[str]] = frozenset({_ROOT})
    by_host: bool = False

    def run(self, module: ir.Module) -> None:
        names = [leaf.name for leaf in Signature.of(module).flat_parameters if crosses(leaf.shape)]
        apply_patterns(module, [Pattern(_ROOT, lambda op: checked(op, names, self.by_host), "checked")])
