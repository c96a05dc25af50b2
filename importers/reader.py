"""``read``: a program in any form, from anywhere, to a verified ``Program``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hloforge.dialect.errors import Error, ImporterError, Location, OptionError, name_text
from hloforge.dialect.forked import may_fork
from hloforge.dialect.marks import AMONG_ALL, DROPPED_ATTRIBUTES, GRAPH, PARTITIONED, SCALED_DOT
from hloforge.dialect.mlir import context_for, first_diagnostic, in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.program import Program
from hloforge.dialect.tuples import flatten_tuples
from hloforge.importers import elided as elision, hlo_text, jax_export, native, signature
from hloforge.importers.detect import Form, as_text, detect, is_plain
from hloforge.importers.exported_program import read_exported
from hloforge.importers.guard import UNLIMITED, CrashError, guarded
from hloforge.importers.hlo_crashes import located
from hloforge.importers.hlo_newer import KEPT, with_known_opcode
from hloforge.importers.hlo_proto import unwrap
from hloforge.importers.native import Converted
from hloforge.importers.saved_model import read_model
from hloforge.importers.source import Source, load
from hloforge.importers.vetting import check_signature, vet

# What XLA's partitioner adds to the name of the entry computation.
_PARTITIONED_NAME = "_spmd"
_ALL_TO_ALL = "stablehlo.all_to_all"
# Each round takes one attribute away; a file with more unknown ones is not of this format at all.
_ROUNDS = 64


def read(
    source: Source,
    *,
    format: str | None = None,
    elided: str = "refuse",
    seed: int = 0,
    name: str | None = None,
    drop_unknown_attributes: bool = False,
    signature: str | None = None,
    keep_marks: bool = False,
) -> Program:
    """Read a program.

    Args:
        source: a path, bytes, the program's text, a binary stream, or ``-`` for standard input.
        format: one of ``hlo``, ``hlo-proto``, ``mlir``, ``mlir-bytecode``, ``portable-artifact``, ``jax-export``,
            ``onnx``, ``tflite``, ``tensorflow``, ``torch-export``; by default the content tells.
        elided: what to do with a ``constant({...})``, whose values the text has lost: ``refuse``; ``parameters``: each
            becomes a parameter after the others; ``random``: seeded small values (importers/elided.py).
        seed: of the random values.
        name: what to call the module; by default its own name, else the file's.
        drop_unknown_attributes: read HLO text of a newer XLA without the attributes that this one does not know.
            What was dropped is listed in the module's attribute ``hloforge.dropped_attributes``.
        signature: which function of a SavedModel; by default ``serving_default``, or the only one.
        keep_marks: MLIR that passes of hloforge have made, read as it is, with what they wrote for each other and for
            IREE (``dialect/marks.py``). Passes believe that: a file that you did not make yourself may then read and
            write any memory when the program runs.

    Returns:
        A verified module with ``main``, whose operations carry the file's positions. It may still hold ``mhlo``
        operations and fusions: the pipeline ``normalize`` removes them.

    Raises:
        ImporterError: the input is no program, or is damaged; located.
        ElidedConstantError: values are missing and ``elided`` is ``refuse``.
        OptionError: ``format`` or ``elided`` is none of the above, or a signature of what has none.
    """
    elision.check_policy(elided)
    wanted = _form(format)
    data, path = load(source)
    file = name_text(path)
    try:
        form = wanted or detect(data)
        if signature is not None and form is not Form.TENSORFLOW:
            raise OptionError(f"signature={signature!r}: SavedModels have signatures, {form.value} has none")
        if form in (Form.HLO_TEXT, Form.HLO_PROTO):
            program = _read_hlo(data, form, file, elided, seed, drop_unknown_attributes)
        elif form is Form.JAX_EXPORT:
            program = _read_export(data, file)
        elif form is Form.ONNX or form is Form.TFLITE:
            program = _read_graph(data, form, file)
        elif form is Form.TENSORFLOW:
            program = read_model(path, lambda bytecode: _read_child(bytecode, file), signature=signature)
        elif form is Form.TORCH_EXPORT:
            program = read_exported(data, path, lambda bytecode: _read_child(bytecode, file))
        else:
            program = _read_mlir(data, form, file, keep_marks=keep_marks)
    except Error as error:
        error.location = error.location or Location(file)
        if wanted is None and isinstance(error, ImporterError):
            error.hint = error.hint or _other_form(data)
        raise
    program.name = name or program.name or (Path(file).stem if not file.startswith("<") else "program")
    return program


def _other_form(data: bytes) -> str:
    """The way out where a text was taken for a program, as it may be one of another form, or none."""
    try:
        form = detect(data)
    except ImporterError:
        return ""
    if form not in (Form.HLO_TEXT, Form.MLIR_TEXT) or is_plain(_text(data)):
        return ""
    what = "HLO" if form is Form.HLO_TEXT else "MLIR"
    names = ", ".join(each.value for each in Form)
    return f"it looks like {what} text, and was read as that; name another form with format= (--format): {names}"


def _form(name: str | None) -> Form | None:
    if name is None:
        return None
    try:
        return Form(name)
    except ValueError:
        raise OptionError(f"format={name!r} is none of {', '.join(form.value for form in Form)}") from None


def _read_hlo(data: bytes, form: Form, file: str, elided: str, seed: int, drop: bool) -> Program:
    dropped: list[str] = []
    if form is Form.HLO_TEXT:
        text = _text(data)
        if elided == "refuse":
            elision.refuse(hlo_text.elided_constants(text), file)
        # Values that the text has lost take their memory nevertheless.
        memory = None if elided == "refuse" else UNLIMITED
        converted, dropped = _convert_text(text, file, drop, memory)
    else:
        module = unwrap(data)
        if module is None:
            raise ImporterError("this is no HloModuleProto, HloProto or HloSnapshot")
        converted = guarded(native.hlo_proto_to_mlir, module, file)
    program = _finish_hlo(converted, elided, seed)
    if form is Form.HLO_TEXT:
        signature.attach_replication(hlo_text.replication(text), program.module)
    if dropped:
        with in_context(program.module):
            values = [ir.StringAttr.get(entry) for entry in dropped]
            program.module.operation.attributes[DROPPED_ATTRIBUTES] = ir.ArrayAttr.get(values)
    return program


def _text(data: bytes) -> str:
    text = as_text(data)
    if text is None:
        raise ImporterError("this is binary data, not text", hint="omit format= to detect the form from the content")
    return text


def _convert_text(text: str, file: str, drop: bool, memory: int | None) -> tuple[Converted, list[str]]:
    dropped: list[str] = []
    for _ in range(_ROUNDS):
        try:
            return guarded(native.hlo_text_to_mlir, text, file, memory=memory), dropped
        except CrashError as error:
            raise located(error, text, file) from None
        except ImporterError as error:
            attribute, where = hlo_text.unknown_attribute(error.message), error.location
            without = (
                hlo_text.drop_from_metadata(text, attribute) if attribute else with_known_opcode(text, error.message)
            )
            if without != text:
                text = without
                continue
            attribute = attribute if drop or attribute in KEPT else ""
            change = hlo_text.drop_attribute(text, attribute, where.line, where.column) if attribute and where else None
            if change is None:
                raise
            text, removed = change
            if attribute not in KEPT:
                dropped.append(f"{removed} ({where})")
    raise ImporterError(f"more than {_ROUNDS} unknown attributes: this is no HLO text of a neighbouring version")


def _finish_hlo(converted: Converted, elided: str, seed: int) -> Program:
    locator = converted.locator
    module = _parse(converted.bytecode)
    convention = signature.from_hlo(converted, module)
    ops_by_label = locator.apply(module)
    vet(module, locator.file, own_targets=frozenset({SCALED_DOT}))
    _mark_among_all(converted, ops_by_label)
    constants = _elided_constants(converted, ops_by_label)
    if constants and elided == "random":
        elision.fill_random(constants, seed)
    elif constants:
        convention = elision.to_parameters(module, constants, convention)
    signature.attach(convention, module)
    entries = [computation.name for computation in converted.computations if computation.is_entry]
    if any(name.endswith(_PARTITIONED_NAME) for name in entries):
        with in_context(module):
            module.operation.attributes[PARTITIONED] = ir.UnitAttr.get()
    return Program(module, convention, _module_name(module), locator.file)


def _mark_among_all(converted: Converted, ops: dict[int, list[Any]]) -> None:
    for number in converted.among_all:
        for op in ops.get(number, ()):
            if op.name == _ALL_TO_ALL:
                op.attributes[AMONG_ALL] = ir.UnitAttr.get(op.context)


def _elided_constants(converted: Converted, ops: dict[int, list[Any]]) -> dict[int, tuple[str, list[Any]]]:
    """The operations of elided instructions, in the order of the text."""
    positions = converted.locator.positions
    numbers = [number for number, position in positions.items() if position.elided]
    numbers.sort(key=lambda number: (positions[number].line, positions[number].column))
    found = {number: (positions[number].name, ops[number]) for number in numbers if number in ops}
    for name, made in found.values():
        if any(op.name != "stablehlo.constant" for op in made):
            raise ImporterError(
                f"an operand of {name} is a constant without a name, whose values were dropped",
                location=location_of(made[0]),
                hint="write the constant as an instruction of its own",
            )
    return found


def _read_mlir(data: bytes, form: Form, file: str, *, keep_marks: bool = False) -> Program:
    if form is Form.MLIR_TEXT:
        text = _text(data)
        elision.refuse_mlir(text, file)
        bytecode = guarded(native.mlir_text_to_bytecode, text, file)
    elif form is Form.MLIR_BYTECODE:
        bytecode = guarded(native.mlir_bytecode_to_bytecode, data, file)
    elif may_fork():
        bytecode = guarded(native.portable_artifact_to_bytecode, data, file)
    else:
        # Nothing lies between the reader and this process: a second context would be made in vain.
        return _finish_mlir(native.module_of_portable_artifact(data, file), file, keep_marks=keep_marks)
    return _finish_mlir(_parse(bytecode), file, keep_marks=keep_marks)


def _read_child(data: bytes, file: str) -> Program:
    """What a child process of ours has written: of a model of open sizes a call represents what it computes."""
    # Not guarded: this jaxlib wrote it a moment ago, and another child would hold all weights once more.
    module = _parse(data)
    return _finish_mlir(module, file, own_targets=frozenset({GRAPH}))


# What Python raises where a model's numbers, names or bytes do not fit each other.
_SURPRISES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def _finish_mlir(
    module: ir.Module, file: str, *, keep_marks: bool = False, own_targets: frozenset[str] = frozenset()
) -> Program:
    if not keep_marks:
        vet(module, file, own_targets=own_targets)
    with in_context(module):
        convention = signature.from_mlir(module, file)
        # A signature's main takes and returns leaves.
        flatten_tuples(module)
        if not keep_marks:
            check_signature(module, convention, file)
    signature.attach(convention, module)
    return Program(module, convention, _module_name(module), file)


def _read_export(data: bytes, file: str) -> Program:
    exported = jax_export.unwrap(data)
    if exported is None:
        raise ImporterError("this is no export of JAX")
    module = _parse(guarded(native.portable_artifact_to_bytecode, exported.module, file))
    jax_export.choose_platform(module, exported.platforms)
    return _finish_mlir(module, file)


def _read_graph(data: bytes, form: Form, file: str) -> Program:
    """A model that is built with all operations of the dialect: most programs need neither these nor its importer."""
    try:
        if form is Form.ONNX:
            from hloforge.importers.onnx.reader import read_onnx

            return read_onnx(data, file)
        from hloforge.importers.tflite.reader import read_tflite

        return read_tflite(data, file)
    except _SURPRISES as error:
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ImporterError(f"the model contradicts itself or is damaged ({told})") from error


def _parse(bytecode: bytes) -> ir.Module:
    """The guarded reader has verified these bytes and written them itself; not all that it writes can be read.

    Raises:
        ImporterError: a constant outside of the text is empty (``dense_resource``), whose alignment MLIR loses.
    """
    with context_for(len(bytecode)):
        try:
            return ir.Module.parse(bytecode)
        except ir.MLIRError as error:
            raise ImporterError(f"MLIR cannot read what it wrote of the program: {first_diagnostic(error)}") from None


def _module_name(module: ir.Module) -> str:
    attributes = module.operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else ""
