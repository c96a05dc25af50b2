"""Attributes of custom calls of XLA's typed FFI, as XLA's converter to StableHLO reads them.

Before: ``custom-call(…), api_version=API_VERSION_TYPED_FFI, backend_config={"custom_call_backend_config":
{"attributes": "{eps = 1.0 : f32}"}, …}``, as XLA's backends for GPUs write them; after: ``backend_config="{eps = 1.0 :
f32}"``. The converter takes MLIR's text of a dictionary alone, and does not survive other text: it is an error here, at
its line.

Field numbers: xla/service/hlo.proto (HloInstructionProto); the keys of the configuration: backend_configs.proto
(GpuBackendConfig, CustomCallBackendConfig). Source: XLA "FFI".
"""

from __future__ import annotations

import json
from itertools import count

from hloforge.dialect.errors import ImporterError
from hloforge.dialect.host_calls import TYPED_FFI
from hloforge.dialect.mlir import context, ir
from hloforge.dialect.protobuf import encode, encode_number, fields, first, number, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS
from hloforge.importers.locations import Locator

_TARGET, _CONFIGURATION, _VERSION = 28, 43, 77
_CALL, _ATTRIBUTES = "custom_call_backend_config", "attributes"
# Keys by which a configuration of XLA's backends for GPUs is known, with attributes or without.
_KEYS = frozenset({_CALL, "operation_queue_id", "wait_on_operation_queues"})
_SHORT = 60


def with_plain_attributes(module: bytes, locator: Locator) -> bytes:
    """The ``HloModuleProto`` whose calls of the typed FFI have their attributes as MLIR's text.

    Args:
        module: with its instructions in the order of the locator's.

    Raises:
        ImporterError: attributes that are no dictionary, at the instruction.
        ValueError: the bytes are not a module.
    """
    if encode_number(_VERSION, TYPED_FFI) not in module:
        return module
    numbers = count()

    def visit(instruction: memoryview) -> bytes | memoryview:
        running = next(numbers)
        target, given = first(instruction, _TARGET), first(instruction, _CONFIGURATION)
        if target is None or given is None or not len(given.payload) or number(instruction, _VERSION) != TYPED_FFI:
            return instruction
        try:
            written = _attributes(given.text)
        except ValueError as error:
            raise ImporterError(
                f"custom-call {locator.name(running)} of @{target.text}: its backend_config {error}",
                location=locator.place(running),
                hint="calls of API_VERSION_TYPED_FFI take a dictionary of MLIR, as backend_config="
                '"{scale = 2.0 : f32}"; those of other versions take any text',
            ) from None
        if written == given.text:
            return instruction
        kept = [instruction[one.start : one.end] for one in fields(instruction) if one.number != _CONFIGURATION]
        return b"".join([*kept, encode(_CONFIGURATION, written.encode())])

    with context():
        return rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, visit))


def _attributes(text: str) -> str:
    """The attributes of a call, as text of MLIR. Raises ValueError for a text that has none."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if isinstance(found, dict) and not _KEYS.isdisjoint(found):
        inner = found.get(_CALL)
        text = str(inner.get(_ATTRIBUTES, "{}")) if isinstance(inner, dict) else "{}"
    try:
        is_dictionary = isinstance(ir.Attribute.parse(text), ir.DictAttr)
    except ir.MLIRError:
        is_dictionary = False
    if not is_dictionary:
        raise ValueError(f"is no dictionary of MLIR: {text[:_SHORT]}" + ("…" if len(text) > _SHORT else ""))
    return text
