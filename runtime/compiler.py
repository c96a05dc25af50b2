"""The one border crossing: a lowered module becomes a vmfb.

IREE's compiler runs as a child process, so that its crash, its hunger for memory or its endless loop is an error here
and never the end of the user's process.
"""

from __future__ import annotations

import resource
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import CompileError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.named import lower
from hloforge.runtime import iree
from hloforge.runtime.diagnostics import failure
from hloforge.runtime.executable import Executable
from hloforge.runtime.manifest import REFLECTION_KEY, Manifest, tool_versions
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.targets import Target
from hloforge.runtime.work import heaviest_operation


def compile_program(
    program: Program, target: Target | str = "cpu", options: CompileOptions | None = None
) -> Executable:
    """Lower a copy of the program and compile it; the program itself is left as it was.

    Raises:
        UnsupportedError: an operation that the target cannot compile, at its line in the user's file.
        CompileError: IREE's compiler failed; the message names the reproducer.
    """
    target, options = Target.parse(target), options or CompileOptions()
    lowered = program.clone()
    lower(
        lowered.module,
        target=target.kind,
        verify=options.verify,
        dump_after=options.dump_after,
        dump_to=options.dump_to,
    )
    return compile_module(lowered, target, options)


def compile_module(lowered: Program, target: Target, options: CompileOptions) -> Executable:
    """Hand a program that has been through the target's pipeline to IREE's compiler.

    Raises:
        CompileError: as ``compile_program``.
    """
    flags = (*target.flags(), *options.flags)
    manifest = Manifest(
        name=lowered.name,
        signature=lowered.signature,
        target=str(target),
        flags=flags,
        versions=tool_versions(),
        work=heaviest_operation(lowered.module),
        source=Path(lowered.source).name,
    )
    _attach(lowered.module, manifest)
    text = lowered.text(locations=True)
    if options.isolation == "none":
        return Executable(iree.compile_in_process(text, flags), manifest)
    return Executable(_compile_in_child(text, flags, lowered.name, options), manifest)


def _attach(module: Any, manifest: Manifest) -> None:
    with in_context(module):
        entry = entry_function(module).operation
        reflection = ir.DictAttr.get({REFLECTION_KEY: ir.StringAttr.get(manifest.to_json())})
        entry.attributes["iree.reflection"] = reflection


def _compile_in_child(text: str, flags: tuple[str, ...], name: str, options: CompileOptions) -> bytes:
    with tempfile.TemporaryDirectory(prefix="hloforge-") as folder:
        source, result = Path(folder, "module.mlir"), Path(folder, "module.vmfb")
        source.write_text(text)
        command = [iree.compiler_binary(), str(source), "-o", str(result), *flags]
        status, stderr = _run(command, options)
        if status == 0 and result.exists():
            return result.read_bytes()
        reproducer = _write_reproducer(text, flags, name, options)
    notes = (f"reproduce with: {reproducer}",)
    raise failure(stderr.replace(str(source), f"{name}.mlir"), _summary(status), notes)


def _run(command: list[str], options: CompileOptions) -> tuple[int | str, str]:
    """The exit status (``timeout`` when it ran out of time) and standard error of a command."""
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        except OSError as error:
            raise CompileError(f"IREE's compiler cannot be started: {error.strerror}", hint="reinstall it") from None
        try:
            if options.memory_limit is not None:
                resource.prlimit(child.pid, resource.RLIMIT_AS, (options.memory_limit, options.memory_limit))
            status: int | str = child.wait(options.timeout)
        except subprocess.TimeoutExpired:
            status = "timeout"
        finally:
            # Also on Ctrl-C: no compiler outlives the call.
            child.kill()
            child.wait()
        errors.seek(0)
        return status, errors.read().decode(errors="replace")


def _summary(status: int | str) -> str:
    if status == "timeout":
        return "ran out of time"
    if isinstance(status, int) and status < 0:
        return f"crashed ({signal.Signals(-status).name})"
    return "failed"


def _write_reproducer(text: str, flags: tuple[str, ...], name: str, options: CompileOptions) -> str:
    """Keep the compiler's input; returns the command line that repeats the failure."""
    folder = options.reproducer_dir or Path(tempfile.mkdtemp(prefix="hloforge-repro-"))
    label = "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:80] or "module"
    path = folder / f"{label}.repro.mlir"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        return f"(the reproducer could not be written: {error.strerror}: {path})"
    return f"iree-compile {shlex.quote(str(path))} -o out.vmfb {shlex.join(flags)}"
