"""A program of kernels as a vmfb, in this process and without IREE's compiler.

``vmfb(program, manifest_text, name, caching=…)`` is all that others call, where ``host.is_available()``. A program that
it cannot make is a ``host.DirectError``; IREE's compiler may take it. Kernels become objects (``objects``, which keeps
them, and ``machine_code``, which asks LLVM), objects a library (``elf``), and the calls of its functions a module of
IREE's virtual machine (``module``), with ``main`` and ``__init`` like IREE's own. Any tool of IREE runs the file.
"""

from __future__ import annotations

from functools import partial

from hloforge.pipelines.codegen.kernel_program import ENTRY, KernelProgram
from hloforge.runtime.artifact.manifest import REFLECTION_KEY
from hloforge.runtime.compile.direct.archive import archive, places
from hloforge.runtime.compile.direct.elf import Export, link
from hloforge.runtime.compile.direct.module import module_of
from hloforge.runtime.compile.direct.objects import helper_of, objects_of
from hloforge.runtime.compile.direct.processors import HOST, Processor
from hloforge.runtime.compile.direct.schedule import check, schedule_of
from hloforge.runtime.native import schedule_file

_CODE, _CONSTANTS = "library.so", "constants.bin"


def vmfb(program: KernelProgram, manifest_text: str, name: str, *, caching: bool, processor: Processor = HOST) -> bytes:
    """The vmfb of a program.

    Args:
        manifest_text: what ``Manifest.to_json`` wrote.
        name: of the program, for messages.
        caching: whether machine code on disk is used and kept.
        processor: that the machine code is for.

    Raises:
        DirectError: the program cannot be made this way; IREE's compiler may.
    """
    check(program)
    bindings = {dispatch.kernel: len(dispatch.bindings) for dispatch in program.dispatches}
    names, texts = [name for name, _ in program.parts], [text for _, text in program.parts]
    made = objects_of([*program.kernels, *texts], caching=caching, processor=processor)
    objects, parts = made[: len(program.kernels)], dict(zip(names, made[len(program.kernels) :], strict=True))
    exports = [Export(program.name(number), number, ENTRY, bindings.get(number, 0)) for number in range(len(objects))]
    files = []
    if objects:
        others = partial(helper_of, caching=caching, processor=processor)
        helper = lambda name: parts[name] if name in parts else others(name)  # noqa: E731
        files.append((_CODE, link(objects, exports, helper, name, processor.form)))
    if program.constants:
        files.append((_CONSTANTS, program.constants))
    # A call without IREE's runtime would have variables of its own beside those of calls by it.
    if objects and not program.has_variables:
        files.append((schedule_file.NAME, schedule_of(program).to_bytes()))
    found = dict(zip((name for name, _ in files), places([(name, len(data)) for name, data in files]), strict=True))
    library, constants = ((found.get(name, 0), len(dict(files).get(name, b""))) for name in (_CODE, _CONSTANTS))
    said = {REFLECTION_KEY: manifest_text} if manifest_text else {}
    module = module_of(program, [export.name for export in exports], said, library, constants, processor.form.format)
    return archive(module, files)
