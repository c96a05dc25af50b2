"""The readers of jaxlib, one function per form, each turning a program into verified MLIR bytecode.

They run behind importers/guard.py, so what they take and return is plain data.
"""

from __future__ import annotations

import io
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.errors import Error, ImporterError, Location
from hloforge.dialect.hlo_groups import with_listed_groups
from hloforge.dialect.marks import PREFIX
from hloforge.dialect.mlir import _hlo, _jax, context, context_for, hlo_proto_to_stablehlo, ir
from hloforge.dialect.nesting import bound_nesting, check_brackets
from hloforge.dialect.op import registry
from hloforge.dialect.suggestions import did_you_mean
from hloforge.importers import hlo_text
from hloforge.importers.hlo_async import awaited_as_calls
from hloforge.importers.hlo_blame import culprit
from hloforge.importers.hlo_buffers import with_arrays_of_buffers
from hloforge.importers.hlo_calls import calls_of, renamed_calls
from hloforge.importers.hlo_channels import with_channels
from hloforge.importers.hlo_ffi import with_plain_attributes
from hloforge.importers.hlo_members import with_named_members
from hloforge.importers.hlo_proto import Computation, label
from hloforge.importers.hlo_scaled import with_called_products
from hloforge.importers.hlo_shapes import check_shapes
from hloforge.importers.hlo_starts import with_scalar_starts
from hloforge.importers.hlo_transfers import with_awaited_transfers
from hloforge.importers.hlo_tuples import with_constant_parts
from hloforge.importers.hlo_windows import with_kept_windows
from hloforge.importers.locations import Locator, pointed_at, rename_buffer
from hloforge.importers.vetting import check_target


@dataclass(frozen=True)
class Converted:
    """A converted HLO module: MLIR bytecode whose locations are labels, and what else the proto says.

    Attributes:
        computations: with their instructions, in label order.
        among_all: the labels of collectives whose one group is of all members, though they name one.
        parameter_shapes: XLA's text, layouts included, of the entry computation.
    """

    bytecode: bytes
    locator: Locator
    computations: list[Computation]
    parameter_shapes: tuple[str, ...]
    result_shape: str
    among_all: frozenset[int] = frozenset()


def hlo_text_to_mlir(text: str, file: str) -> Converted:
    """HLO text. Raises ImporterError with XLA's message and its line and column."""
    check_brackets(text.encode(), file)
    try:
        proto = hlo_text_to_proto(text)
    except Exception as error:
        raise _parse_error(str(error), text, file) from None
    return _convert(proto, file, text)


def parse_hlo_text(text: str) -> None:
    """Parse HLO text for nothing but whether that ends the process."""
    with suppress(Exception):
        _hlo.hlo_module_from_text(text)


def hlo_text_to_proto(text: str) -> bytes:
    """HLO text that the parser takes as a serialized ``HloModuleProto``."""
    proto: bytes = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return proto


def _fails(text: str, message: str) -> bool:
    try:
        _hlo.hlo_module_from_text(text)
    except Exception as error:
        return hlo_text.parse_error(str(error))[0] == message
    return False


def _parse_error(report: str, text: str, file: str) -> ImporterError:
    message, line, column = hlo_text.parse_error(report)
    line, column = hlo_text.blamed(text, message, line, column)
    if not line:
        # An exception of C++'s own.
        line, column = hlo_text.first_failing(text, lambda part: _fails(part, message)) or (0, 0)
        message = f"XLA's parser gave up: {message}"
    hint = _NEWER if any(words in message for words in _OF_OTHER_VERSIONS) else ""
    if unknown := _UNKNOWN_OPCODE.search(message):
        hint = f"{did_you_mean(unknown[1], (op.hlo for op in registry().values()))} {hint}".strip()
    if attribute := hlo_text.unknown_attribute(report):
        hint = (
            f"this version of XLA does not know {attribute!r}; --drop-unknown-attributes reads the program without it, "
            "which is safe where the attribute does not change the result"
        )
    return ImporterError(message, location=Location(file, line, column), op=pointed_at(text, line, column), hint=hint)


# An opcode, and an update of asynchronous work that brings operands of its own.
_OF_OTHER_VERSIONS = ("Unknown opcode", "expect a single async op")
_UNKNOWN_OPCODE = re.compile(r"Unknown opcode: ([\w-]+)")
_NEWER = (
    "jaxlib's XLA does not read it: it is misspelt, of a newer XLA, or of a form that XLA's own passes write for "
    "themselves (send-start); take StableHLO, or the dump from before XLA's passes"
)


def hlo_proto_to_mlir(proto: bytes, file: str) -> Converted:
    """A serialized ``HloModuleProto``. Raises ImporterError."""
    return _convert(proto, file, None)


def _convert(proto: bytes, file: str, text: str | None) -> Converted:
    try:
        proto = with_arrays_of_buffers(proto)
        shape = _hlo.XlaComputation(proto).program_shape()
        grouped, among_all = with_named_members(
            awaited_as_calls(with_kept_windows(with_listed_groups(with_channels(with_awaited_transfers(proto)))))
        )
        labelled, computations = label(grouped)
    except Exception as error:
        raise ImporterError(_status(error), location=Location(file)) from None
    locator = Locator(file, [i for computation in computations for i in computation.instructions])
    if text is not None:
        locator.positions, locator.lines = hlo_text.positions(text, computations)
    # Before calls of our own are written into the module.
    for target, name in calls_of(labelled, PREFIX):
        check_target(target, locator.find(name) or Location(file))
    try:
        check_shapes(labelled, locator)
        known = with_plain_attributes(renamed_calls(labelled), locator)
        plain = with_constant_parts(with_scalar_starts(known))
        ready = with_called_products(plain)
    except Error:
        raise
    except Exception as error:
        raise _conversion_error(str(error), locator) from None
    try:
        bytecode = hlo_proto_to_stablehlo(ready)
    except Exception as error:
        raise _conversion_error(str(error), locator, ready) from None
    _verify(bytecode, locator)
    parameters = tuple(str(parameter) for parameter in shape.parameter_shapes())
    return Converted(bytecode, locator, computations, parameters, str(shape.result_shape()), among_all)


def _status(error: Exception) -> str:
    """An absl status on one line, without its code and stack trace."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return re.sub(r"^[A-Z_]+: ", "", line)


def _conversion_error(message: str, locator: Locator, module: bytes | None = None) -> ImporterError:
    location = locator.find(message)
    if location is None and module is not None:
        number = culprit(module, hlo_proto_to_stablehlo, message)
        location = locator.place(number) if number is not None else None
    return ImporterError(
        f"XLA cannot convert the module to StableHLO: {_status(Exception(locator.explain(message)))}",
        location=location or Location(locator.file),
    )


def _verify(bytecode: bytes, locator: Locator) -> None:
    with context():
        try:
            module = ir.Module.parse(bytecode)
            module.operation.verify()
        except ir.MLIRError as error:
            diagnostic = error.error_diagnostics[0]
            raise ImporterError(
                f"XLA's converter made invalid StableHLO of this instruction: {locator.explain(diagnostic.message)}",
                location=locator.find(f"{diagnostic.location} {diagnostic.message}") or Location(locator.file),
                hint="the instruction is malformed, or of a form that StableHLO cannot express",
            ) from None
        bound_nesting(module, locator.file, lambda op: locator.find(str(op.location)))


def mlir_text_to_bytecode(text: str, file: str) -> bytes:
    """StableHLO, CHLO or MHLO text. Raises ImporterError with the parser's message, line and column."""
    check_brackets(text.encode(), file)
    with context():
        module = _printable(_parse(text, file), file)
        rename_buffer(module, file)
        return _bytecode(module)


def mlir_bytecode_to_bytecode(data: bytes, file: str) -> bytes:
    """MLIR bytecode, re-encoded after it was parsed and verified."""
    with context():
        return _bytecode(_printable(_parse(data, file), file))


def portable_artifact_to_bytecode(data: bytes, file: str) -> bytes:
    """A StableHLO portable artifact (versioned VHLO). Raises ImporterError."""
    return _bytecode(module_of_portable_artifact(data, file))


def module_of_portable_artifact(data: bytes, file: str) -> Any:
    """The same as a module, for bytes that jaxlib has just written."""
    with context_for(len(data)) as ctx:
        try:
            return _printable(_jax.mlir.deserialize_portable_artifact(data, ctx), file)
        except Error:
            raise
        except Exception as error:
            raise ImporterError(
                f"{_status(error)} ({producer(data)})",
                location=Location(file),
                hint="the artifact is damaged, or newer than this jaxlib reads: serialize it for an older version",
            ) from None


def producer(data: bytes) -> str:
    """Who wrote MLIR bytecode: the string after the magic and the version."""
    end = data.find(b"\0", 5, 200)
    return data[5 : max(end, 5)].decode("ascii", "replace")


def _parse(source: str | bytes, file: str) -> Any:
    try:
        return ir.Module.parse(source)
    except ir.MLIRError as error:
        raise _mlir_error(error, file, source) from None


def _mlir_error(error: Any, file: str, source: str | bytes) -> ImporterError:
    if not error.error_diagnostics:
        return ImporterError(str(error).strip().splitlines()[0], location=Location(file))
    diagnostic = error.error_diagnostics[0]
    message = " ".join(diagnostic.message.split())
    hint, notes = _way_out(message), tuple(" ".join(note.message.split()) for note in diagnostic.notes)
    match = re.search(r'"-":(\d+):(\d+)', str(diagnostic.location))
    line, column = (int(match[1]), int(match[2])) if match else (0, 0)
    return ImporterError(
        message,
        location=Location(file, line, column),
        op=pointed_at(source, line, column) if isinstance(source, str) else "",
        # MLIR's list of dialects helps nobody who has a dialect of another compiler.
        notes=() if hint and _FOREIGN.search(message) else notes,
        hint=hint,
    )


# MLIR's messages on an operation of a dialect that jaxlib lacks, and on an unknown one of a dialect that it has.
_FOREIGN = re.compile(r"Dialect `([\w.]+)' not found")
_UNKNOWN_OPERATION = re.compile(r"custom op '([\w.]+)' is unknown")


def _way_out(message: str) -> str:
    """A hint for an operation that jaxlib's MLIR does not know."""
    if foreign := _FOREIGN.search(message):
        return f"hloforge reads StableHLO, CHLO, MHLO and VHLO; iree-compile takes dialects such as {foreign[1]}"
    if unknown := _UNKNOWN_OPERATION.search(message):
        return did_you_mean(unknown[1], (name for op in registry().values() for name in op.emits))
    return ""


def _printable(module: ir.Module, file: str) -> Any:
    """The module, if its names are UTF-8: damaged ones pass the parser, and break whoever asks for them later."""
    bound_nesting(module, file)
    try:
        text = str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=1))
        # MLIR escapes every byte of a string that is not ASCII, and characters of several bytes are in one piece.
        for escaped in _ESCAPED.findall(text):
            bytes.fromhex(escaped.replace("\\", "")).decode()
    except (RuntimeError, UnicodeDecodeError):
        raise ImporterError("names in the program are not UTF-8 text", location=Location(file)) from None
    return module


_ESCAPED = re.compile(r"(?:\\[0-9A-F]{2})+")


def _bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()
