"""Programs in the forms that other tools read."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from hloforge.dialect.errors import CompileError
from hloforge.dialect.mlir import _jax, in_context, ir, stablehlo
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program, entry_function
from hloforge.importers.guard import guarded
from hloforge.pipelines.named import normalize
from hloforge.pipelines.passes import NativePass

_PREFIX = "hloforge."
_PARAMETER_LAYOUTS = "mhlo.xla_entry_computation_parameter_layouts"
_RESULT_LAYOUT = "mhlo.xla_entry_computation_result_layout"


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
    return _hlo(program, _text_of_module)


def hlo_proto(program: Program) -> bytes:
    """A serialized ``HloModuleProto``; errors as of ``hlo_text``."""
    return _hlo(program, _proto_of_module)


def _hlo(program: Program, convert: Callable[[str, bool], bytes]) -> bytes:
    laid_out = _keep_layouts(program)
    results = program.signature.flat_results
    # XLA's converter would give the layout of a single result to the tuple around it, which it refuses.
    as_tuple = program.signature.result.is_tuple and not (laid_out and len(results) == 1)
    _name_parameters(program)
    return guarded(convert, program.text(locations=True), as_tuple)


def _name_parameters(program: Program) -> None:
    """Leave the parameters' names as the only locations, from which XLA's converter takes the names of instructions."""
    with in_context(program.module):
        for op in operations(program.module):
            op.location = ir.Location.unknown()
        arguments = entry_function(program.module).arguments
        for argument, leaf in zip(arguments, program.signature.flat_parameters, strict=True):
            name = re.sub(r"\W", "_", leaf.name)
            argument.set_location(ir.Location.name(name))


def _text_of_module(text: str, as_tuple: bool) -> bytes:
    hlo: str = _computation(text, as_tuple).as_hlo_text(print_large_constants=True)
    return hlo.encode()


def _proto_of_module(text: str, as_tuple: bool) -> bytes:
    proto: bytes = _computation(text, as_tuple).as_serialized_hlo_module_proto()
    return proto


def _computation(text: str, as_tuple: bool) -> Any:
    try:
        return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=as_tuple)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise CompileError(f"XLA's converter has no HLO for this program: {reason}") from None


def _keep_layouts(program: Program) -> bool:
    """Write the layouts of the signature, if it has any, as XLA's converter reads them; tuples are flattened."""
    signature = program.signature
    parameters = [leaf.shape.layout for leaf in signature.flat_parameters]
    results = [shape.layout for shape in signature.flat_results]
    if all(layout is None or layout.is_default for layout in (*parameters, *results)):
        return False
    with in_context(program.module):
        attributes = program.module.operation.attributes
        shapes = [leaf.shape for leaf in signature.flat_parameters]
        attributes[_PARAMETER_LAYOUTS] = ir.ArrayAttr.get([_order(shape) for shape in shapes])
        attributes[_RESULT_LAYOUT] = ir.ArrayAttr.get([_order(shape) for shape in signature.flat_results])
    return True


def _order(shape: Any) -> Any:
    order = shape.layout.minor_to_major if shape.layout else reversed(range(shape.rank))
    numbers = f"[{', '.join(map(str, order))}]" if shape.rank else ""
    return ir.Attribute.parse(f"dense<{numbers}> : tensor<{shape.rank}xindex>")


def drop_signature(program: Program) -> None:
    """Take away hloforge's attributes, which other tools do not know."""
    with in_context(program.module):
        attributes = program.module.operation.attributes
        for name in [name for name in attributes if name.startswith(_PREFIX)]:
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
