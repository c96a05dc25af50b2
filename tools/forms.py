"""Programs in the forms that other tools read."""

from __future__ import annotations

import io
from collections.abc import Callable

from hloforge.dialect import hlo_export
from hloforge.dialect.errors import CompileError
from hloforge.dialect.marks import PREFIX
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.program import Program
from hloforge.importers.guard import guarded
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.normalize.normalization import normalize


def stablehlo_text(program: Program) -> bytes:
    """StableHLO in its pretty form."""
    return program.text().encode()


def generic_text(program: Program) -> bytes:
    """MLIR's generic form, which any MLIR parser reads that knows no dialect."""
    text: str = program.module.operation.get_asm(print_generic_op_form=True)
    return text.encode()


def bytecode(program: Program) -> bytes:
    """MLIR bytecode of this jaxlib's dialects."""
    stream = io.BytesIO()
    program.module.operation.write_bytecode(stream)
    return stream.getvalue()


def portable_artifact(program: Program, version: str | None = None) -> bytes:
    """A StableHLO portable artifact.

    Args:
        version: of StableHLO that has to read it; by default jaxlib's own.

    Raises:
        CompileError: an operation has no form in that version.
    """
    with in_context(program.module):
        NativePass("func.func(chlo-legalize-to-stablehlo)").run(program.module)
        try:
            artifact: bytes = stablehlo.serialize_portable_artifact(
                program.module, version or stablehlo.get_current_version()
            )
        except (ValueError, ir.MLIRError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise CompileError(f"no portable artifact of this program: {reason}") from None
    return artifact


def hlo_text(program: Program) -> bytes:
    """HLO text, constants written in full.

    Raises:
        CompileError: XLA's converter knows no HLO for an operation.
    """
    return hlo_export.text_of(hlo_proto(program)).encode()


def hlo_proto(program: Program) -> bytes:
    """A serialized ``HloModuleProto``; errors as of ``hlo_text``."""
    return guarded(hlo_export.proto_of, *hlo_export.sources(program))


def drop_signature(program: Program) -> None:
    """Take away hloforge's attributes, which other tools do not know."""
    with in_context(program.module):
        attributes = program.module.operation.attributes
        for name in [name for name in attributes if name.startswith(PREFIX)]:
            del attributes[name]


FORMS: dict[str, Callable[[Program], bytes]] = {
    "stablehlo": stablehlo_text,
    "hlo": hlo_text,
    "hlo-proto": hlo_proto,
    "portable": portable_artifact,
    "bytecode": bytecode,
    "mlir-generic": generic_text,
}

# Forms that hloforge alone reads back keep its attributes: layouts and names survive the round trip.
_KEEPS_SIGNATURE = frozenset({"stablehlo", "bytecode", "mlir-generic"})


def translate(program: Program, form: str, *, signature: bool | None = None) -> bytes:
    """A copy of a program, normalized, in one of ``FORMS``.

    Args:
        signature: keep the ``hloforge.*`` attributes with XLA's names and layouts; None does in MLIR's forms.

    Raises:
        Error: normalization failed.
        CompileError: the program has no such form.
    """
    copy = program.clone()
    normalize(copy.module)
    if not (form in _KEEPS_SIGNATURE if signature is None else signature):
        drop_signature(copy)
    return FORMS[form](copy)
