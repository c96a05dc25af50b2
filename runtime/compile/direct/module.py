"""The module of IREE's virtual machine that runs a program's dispatches, as a flatbuffer.

``__init`` chooses the device, loads the machine code and the constants, and records all dispatches once in a command
buffer whose bindings are places in a table. ``main`` checks its arguments, fills the table, and waits for the end.

Source: iree-org/iree, ``runtime/src/iree/schemas/bytecode_module_def.fbs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from hloforge.pipelines.codegen.kernel_program import KernelProgram
from hloforge.pipelines.weight_names import WEIGHTS
from hloforge.runtime.codegen_fixes.bytecode import VERSION
from hloforge.runtime.compile.direct import flat, hal, shared
from hloforge.runtime.compile.direct.archive import ALIGNMENT
from hloforge.runtime.compile.direct.entry_function import main_of, weights_of
from hloforge.runtime.compile.direct.initializer import init_of
from hloforge.runtime.compile.direct.rodata import Rodata

_NAME, _IDENTIFIER = "module", b"IREE"
_MAIN, _INIT = "main", "__init"


def module_of(
    program: KernelProgram,
    exports: Sequence[str],
    attributes: Mapping[str, str],
    library: tuple[int, int],
    constants: tuple[int, int],
    format_: str,
) -> bytes:
    """The flatbuffer, of as many bytes as ``archive.ALIGNMENT`` divides.

    Args:
        exports: the name of each kernel in the machine code.
        attributes: what ``main`` says of itself, beside IREE's own declaration.
        library: place and size of the machine code, counted from the module's end.
        constants: the same of the constant buffer's bytes.
        format_: IREE's name of the machine code.

    Raises:
        DirectError: an element type that IREE has no number for, or more values than a function takes.
    """
    rodata = Rodata()
    functions = [main_of(program, rodata), init_of(program, exports, rodata, library, constants, format_)]
    if program.weights:
        functions.append(weights_of(program))
    code, descriptors, requirements = bytearray(), [], 0
    for function in functions:
        code += bytes(-len(code) % 8)
        descriptors.append(function.descriptor(len(code)))
        code += function.code
        requirements |= function.requirements
    pairs = {"iree.abi.declaration": _declaration(program), **attributes}
    said = flat.vector([flat.table((flat.text(key), flat.text(value))) for key, value in pairs.items()])
    convention = f"0{'r' * len(program.parameters) or 'v'}_{'r' * len(program.returned) or 'v'}"
    signatures = [flat.table((flat.text(convention), said)), flat.table((flat.text("0v_v"),))]
    if program.weights:
        signatures.append(flat.table((flat.text(f"0v_{'r' * len(program.weights)}"),)))
    name, types, dependencies, imports, exported = _common(tuple(hal.imports_of(program).items()))
    root = flat.table(
        (
            name,
            None,
            flat.Number("I", requirements),
            None,
            types,
            dependencies,
            imports,
            exported,
            flat.vector(signatures),
            rodata.finish(),
            None,
            flat.table((None, flat.Number("i", shared.count(program)))),
            flat.structs(descriptors),
            flat.Number("I", VERSION << 16),
            flat.content(bytes(code)),
        )
    )
    return flat.file_of(root, _IDENTIFIER, ALIGNMENT)


@cache
def _common(imported: tuple[tuple[str, str], ...]) -> tuple[flat.Piece, ...]:
    """What modules of the same imports have alike: name, types, dependencies, imports and exports."""
    signatures = {name: flat.table((flat.text(convention),)) for name, convention in imported}
    has_weights = any(name == hal.LOAD for name, _ in imported)
    exports = enumerate((_MAIN, _INIT, *([WEIGHTS] if has_weights else [])))
    needed = {"hal": hal.VERSION, **({"io_parameters": 0} if has_weights else {})}
    return (
        flat.text(_NAME),
        flat.vector([flat.table((flat.text(name),)) for name in hal.TYPES]),
        flat.vector([flat.table((flat.text(name), flat.Number("I", version))) for name, version in needed.items()]),
        flat.vector([flat.table((flat.text(name), signature)) for name, signature in signatures.items()]),
        flat.vector([flat.table((flat.text(name), flat.Number("i", number))) for number, name in exports]),
    )


def _declaration(program: KernelProgram) -> str:
    """What ``main`` is, as IREE's compiler declares it."""
    taken = ", ".join(
        f"%input{number}: {hal.declared(one, one.shape)}" for number, one in enumerate(program.parameters)
    )
    returned = ", ".join(f"%output{number}: {hal.declared(*one)}" for number, one in enumerate(program.returned))
    return f"sync func @{_MAIN}({taken}) -> ({returned})"
