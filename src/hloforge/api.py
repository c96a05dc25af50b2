"""``hloforge.compile``: compile a program from any source to an executable."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from hloforge.dialect import budget
from hloforge.dialect.bounded_reading import size_limit
from hloforge.dialect.forked import trusted
from hloforge.dialect.host_calls import JAX_CALLBACKS
from hloforge.dialect.mlir import ir
from hloforge.dialect.program import Program
from hloforge.importers.onnx.load import is_onnx, refers_to_files
from hloforge.importers.source import NamedBytes, Source, load
from hloforge.runtime.artifact.bundle import bundled, options_for
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.functions import joined
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.custom_partitioning import TARGET as CUSTOM_PARTITIONING
from hloforge.runtime.compile.limited import make_executable, within
from hloforge.runtime.compile.specialize import at_sizes
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.host.host import has_functions
from hloforge.runtime.options import CommonFields, CompileFields, CompileOptions
from hloforge.runtime.replicas.communicator import TIMEOUT
from hloforge.runtime.replicas.replicas import Replicas
from hloforge.runtime.session.modules import read_manifest

# A program in any form: what ``read`` takes, a Program, an ``ir.Module``, or an object of a framework that has
# ``mlir_module()`` (jax.export.Exported) or ``as_text()`` (jax.stages.Lowered).
ProgramLike: TypeAlias = Source | Program | Any

# How ``compile`` reads what says nothing else.
_READING: dict[str, Any] = {"elided": "refuse", "seed": 0, "name": None, "drop_unknown_attributes": False}
_OPTION_FIELDS = frozenset(CompileOptions.__dataclass_fields__)


def compile(
    source: ProgramLike | Mapping[str, ProgramLike],
    target: Target | str | Sequence[Target | str] = "cpu",
    *,
    output: str | os.PathLike[str] | None = None,
    elided: str = "refuse",
    seed: int = 0,
    name: str | None = None,
    drop_unknown_attributes: bool = False,
    signature: str | None = None,
    options: CompileOptions | None = None,
    **fields: Unpack[CompileFields],
) -> Executable:
    """Compile a program.

    Args:
        source: a path, bytes, program text, a binary stream or ``-`` (HLO text or proto, StableHLO text, bytecode or
            portable artifact; the content tells), a ``Program``, an ``ir.Module``, or what ``jax.jit(f).lower(x)``,
            ``jax.export`` and ``torch.export`` return. A dict of such is one file of several functions: sessions take
            them by name (``load(function=…)``), and share their weights (``externalize_weights``, ``weights``).
        target: ``cpu``, ``cpu:generic``, ``cpu:znver3,+avx2``, ``vulkan``, ``cuda:sm_90`` …; several, separated by
            commas or in a list, are in one file, of which loading takes the first that the machine runs.
        output: also write the vmfb there, whole or not at all.
        elided, seed, name, drop_unknown_attributes, signature: as of ``hloforge.read``.
        options: how to compile.
        fields: single fields of ``CompileOptions`` (``flags``, ``shapes``, ``timeout`` …), over those of ``options``.

    Returns:
        the executable: ``.load()`` gives a callable session, ``.save(path)`` a vmfb.

    Raises:
        ImporterError: the source is no program that can be read.
        UnsupportedError: an operation that the target cannot compile, at its line in the source.
        CompileError: IREE's compiler failed, or the output cannot be written.
        OptionError: a malformed target or option.
        TypeError: ``source`` holds no program, or ``fields`` has a name that is no option.
    """
    unknown = sorted(fields.keys() - _OPTION_FIELDS)
    if unknown:
        known = ", ".join(sorted(_OPTION_FIELDS))
        raise TypeError(f"compile() has no option {unknown[0]!r}; options: {known}")
    chosen = (options or CompileOptions()).changed(fields)
    callbacks = {} if isinstance(source, Mapping) else _callbacks(source)
    chosen = replace(chosen, host_calls=chosen.host_calls | callbacks.keys())
    targets = parse_targets(target)
    reading = _READING | {
        "elided": elided,
        "seed": seed,
        "name": name,
        "drop_unknown_attributes": drop_unknown_attributes,
    }
    if signature is not None:
        reading["signature"] = signature
    if isinstance(source, Mapping):
        executable = _functions(source, target, chosen, reading)
        if output is not None:
            executable.save(output)
        return executable
    if _is_exported_program(source):
        source = as_program(source)
    if chosen.is_limited:
        from hloforge.importers import reader  # noqa: F401  # as of ``load_ahead``
        from hloforge.runtime.compile.compiler import load_ahead

        load_ahead(targets, chosen)
    with within(chosen), size_limit(chosen.size_limit):
        source, chosen = _read(source, chosen, reading)
        made = [_compiled(source, one, options_for(one, chosen) if targets[1:] else chosen, reading) for one in targets]
    executable = replace(bundled(made) if targets[1:] else made[0], host=callbacks, libraries=chosen.libraries)
    if not targets[1:]:
        executable = _with_forms(executable, source, targets[0], chosen, reading)
    if output is not None:
        executable.save(output)
    return executable


def join(
    executables: Mapping[str, Executable | str | os.PathLike[str]], *, output: str | os.PathLike[str] | None = None
) -> Executable:
    """One file of several functions, which were compiled one by one.

    Args:
        executables: what ``compile`` returned, or vmfbs, by the names that ``load(function=…)`` takes. The first is
            what is loaded without a name, and what IREE's tools run.
        output: also write the file there, whole or not at all.

    Raises:
        OptionError: a name that is none; a program that is compiled at its calls; several files of weights.
        LoadError: a file that is no vmfb.
        CompileError: the output cannot be written.
    """
    executable = joined({name: _executable(one) for name, one in executables.items()})
    if output is not None:
        executable.save(output)
    return executable


def _executable(source: Executable | str | os.PathLike[str]) -> Executable:
    if isinstance(source, Executable):
        return source
    manifest = read_manifest(source)
    path = Path(source)
    weights = path.parent / manifest.weights_file if manifest.weights_file else None
    return Executable(path.read_bytes(), manifest, weights=weights)


def _functions(
    sources: Mapping[str, ProgramLike],
    target: Target | str | Sequence[Target | str],
    options: CompileOptions,
    reading: dict[str, Any],
) -> Executable:
    """Several functions, whose large constants are in one file if they shall be in any."""
    callbacks = {name: call for source in sources.values() for name, call in _callbacks(source).items()}
    options = replace(options, host_calls=options.host_calls | callbacks.keys())
    programs = {name: as_program(source, **reading) for name, source in sources.items()}
    if options.externalize_weights is not None:
        from hloforge.runtime.compile.weight_placement import share_constants

        programs = share_constants(programs, options.externalize_weights)
        options = replace(options, weights=options.externalize_weights, externalize_weights=None)
    made = joined({name: compile(program, target, options=options) for name, program in programs.items()})
    return replace(made, host=callbacks)


def _read(
    source: ProgramLike, options: CompileOptions, reading: dict[str, Any]
) -> tuple[Program | NamedBytes, CompileOptions]:
    """What is compiled, and how."""
    if not isinstance(source, Program):
        readable = _readable(source)
        source = readable if isinstance(readable, NamedBytes) else NamedBytes(*load(readable))
        if is_onnx(data := source.getvalue()) and refers_to_files(data):
            # The cache sees the tensors that are in other files only once they are read.
            source = as_program(source, **reading)
    # A template's own module tells nothing of what it computes.
    return at_sizes(source, options) if isinstance(source, Program) else (source, options)


def _with_forms(
    executable: Executable,
    source: Program | NamedBytes,
    target: Target,
    options: CompileOptions,
    reading: dict[str, Any],
) -> Executable:
    """The executable, with forms for sizes that calls repeat where it may have them."""
    if all(leaf.shape.is_static for leaf in executable.manifest.signature.flat_parameters):
        return executable
    from hloforge.runtime.compile.repeated_sizes import with_forms

    def at(sizes: Mapping[str, tuple[int, ...]]) -> Executable:
        here = replace(options, shapes=sizes)
        with within(here):
            made = _compiled(source, target, here, reading)
        return replace(made, host=executable.host, libraries=executable.libraries)

    return with_forms(executable, target, options, at)


def _compiled(
    source: Program | NamedBytes, target: Target, options: CompileOptions, reading: dict[str, Any]
) -> Executable:
    """A program compiled for one target, now or before."""
    contents = _contents(source)
    if CUSTOM_PARTITIONING.encode() in contents:
        # The program names functions of this process by numbers, which are others' in the next one.
        options = replace(options, cache=False)
    place = _place(contents, source, target, options, reading)
    executable = place.find()
    if executable is None or not has_functions(executable.manifest, options):
        executable = _compiled_anew(source, target, options, reading)
        place.store(executable)
    return executable


def _place(
    contents: bytes,
    source: Program | NamedBytes,
    target: Target,
    options: CompileOptions,
    reading: dict[str, Any],
) -> cache.Entry:
    """Where the cache has a compilation."""
    return cache.entry(contents, reading | {"file": _file(source)}, target, options)


def compiled_before(source: bytes, options: CompileOptions) -> Executable | None:
    """What ``compile(source, options=options)`` made before, if the cache has it."""
    (target,) = parse_targets("cpu")
    named = NamedBytes(*load(source))
    return _place(_contents(named), named, target, options, _READING).find()


def _compiled_anew(
    source: Program | NamedBytes, target: Target, options: CompileOptions, reading: dict[str, Any]
) -> Executable:
    # What compiles takes longer to load than what finds a program that was compiled before.
    from hloforge.runtime.compile.compiler import compile_program

    if isinstance(source, Program):
        return compile_program(source, target, options)

    def make(_: Program | None, options: CompileOptions) -> Executable:
        source.seek(0)  # another target may have read it
        budget.enter("reading")
        return compile_program(as_program(source, **reading), target, options)

    if options.is_limited:
        from hloforge.importers.guard import prepare as prepare_reading

        # A child of this process reads, whose own would end with it.
        prepare_reading()
    return make_executable(make, None, options)


class ReplicateFields(CommonFields, total=False):
    """Further arguments of ``replicate``, which are those of ``compile``."""

    target: Target | str | Sequence[Target | str]
    output: str | os.PathLike[str] | None
    elided: str
    seed: int
    name: str | None
    drop_unknown_attributes: bool
    signature: str | None
    options: CompileOptions | None
    device: str
    threads: int


def replicate(
    source: ProgramLike,
    *,
    replicas: int = 1,
    partitions: int = 1,
    fold: bool = False,
    timeout: float | None = TIMEOUT,
    capacity: int | None = None,
    **fields: Unpack[ReplicateFields],
) -> Replicas:
    """Compile a program for several devices that run it at once, and load it on each.

    Args:
        source, fields: as of ``compile``.
        replicas, partitions: how many devices; each is a thread with a session of its own.
        fold: make one program of those of all devices instead, for tests and debugging.
        timeout: seconds that a device waits for another one, or for its host; None for ever.
        capacity: how many items the queues of its feeds hold; None for any number.

    Returns:
        What is called like the program, on arrays with a leading dimension of the devices
        (``replica * partitions + partition``); a sharded program, on whole arrays.

    Raises:
        Errors as of ``compile``; UnsupportedError also for groups that do not fit the devices.
    """
    executable = compile(source, replicas=replicas, partitions=partitions, fold_replicas=fold, **fields)
    return Replicas(executable, replicas, partitions, folded=fold, timeout=timeout, capacity=capacity)


def _callbacks(source: Any) -> dict[str, Any]:
    """The Python callbacks of a program that JAX lowered (``pure_callback``, ``debug.print`` …), by their target."""
    lowering = getattr(source, "_lowering", None)
    arguments = getattr(lowering, "compile_args", {})
    functions = arguments.get("host_callbacks") or _numbered(arguments.get("keepalive"))
    return dict.fromkeys(JAX_CALLBACKS, tuple(functions)) if functions else {}


def _numbered(kept: Any) -> tuple[Any, ...]:
    """The callbacks of a program that JAX lowered for hloforge as its backend, where they have numbers of their own."""
    if not kept:
        return ()
    from hloforge.jax.callbacks import functions_among

    return functions_among(kept)


def _contents(source: Program | NamedBytes) -> bytes:
    """What tells a program from others."""
    return source.getvalue() if isinstance(source, NamedBytes) else _bytecode(source.module)


def _bytecode(module: ir.Module) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _file(source: Program | NamedBytes) -> str:
    """The name of the program's file, which the manifest repeats."""
    return Path(source.source if isinstance(source, Program) else source.name).name


def as_program(source: ProgramLike, **options: Any) -> Program:
    """The ``Program`` in ``source``, which is of any kind that ``compile`` takes.

    Args:
        options: as of ``hloforge.read``; without meaning for a ``Program``, which is returned as it is.

    Raises:
        ImporterError: the source is no program that can be read.
        TypeError: it holds no program.
    """
    if isinstance(source, Program):
        return source
    if _is_exported_program(source):
        from hloforge.torch import program_of

        return program_of(source)
    # As above: the readers are not needed for what was compiled before.
    from hloforge.importers.reader import read

    readable = _readable(source)
    # No child process reads first what this one wrote.
    with trusted() if isinstance(readable, NamedBytes) and readable.is_own else nullcontext():
        return read(readable, **options)


def _is_exported_program(source: Any) -> bool:
    """Whether ``torch.export`` made it; PyTorch is not imported to know."""
    return type(source).__module__ == "torch.export.exported_program"


def _readable(source: Any) -> Source:
    """What ``read`` takes: the objects of JAX as bytecode, other modules and objects of frameworks as text."""
    if hasattr(source, "mlir_module_serialized"):  # jax.export.Exported
        return bytes(source.mlir_module_serialized)
    if hasattr(source, "compiler_ir"):  # jax.stages.Lowered
        return NamedBytes(_bytecode(source.compiler_ir("stablehlo")), "<bytes>", is_own=True)
    if isinstance(source, ir.Module):
        return str(source.operation.get_asm(enable_debug_info=True))
    if isinstance(source, str | os.PathLike | bytes | bytearray | memoryview) or hasattr(source, "read"):
        given: Source = source
        return given
    for method in ("mlir_module", "as_text"):
        if hasattr(source, method):
            return str(getattr(source, method)())
    raise TypeError(
        f"no program in a {type(source).__name__}: give a path, bytes, text, a stream, a Program, an ir.Module, or an "
        "object with mlir_module() or as_text()"
    )
