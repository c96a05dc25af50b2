"""Calls of IREE's compiler: the binary, and its API in process. ``devices`` calls the runtime."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from hloforge.dialect.errors import CompileError, LoadError
from hloforge.dialect.versions import InstallationError, check_version
from hloforge.runtime.compile.diagnostics import failure


def compiler_binary() -> str:
    """The path of ``iree-compile`` inside the compiler's package. Raises CompileError if it is not installed."""
    return _compiler_tool("iree-compile")


def linker_binary() -> str:
    """The path of the linker inside the compiler's package. Raises CompileError if it is not installed."""
    return _compiler_tool("iree-lld")


def _compiler_tool(name: str) -> str:
    try:
        from iree.compiler.tools.binaries import find_tool
        from iree.compiler.version import VERSION

        check_version("iree-base-compiler", VERSION)
        return str(find_tool(name))
    except InstallationError:
        raise
    except (ImportError, ValueError) as error:
        raise CompileError(
            f"IREE's compiler is not installed: {error}", hint="pip install iree-base-compiler"
        ) from None


@functools.cache
def tied_to_this_process() -> tuple[str, ...]:
    """A prefix that lets the kernel kill the compiler when this process is killed, where util-linux has it."""
    tool = shutil.which("setpriv")
    if tool is None:
        return ()
    prefix = (tool, "--pdeathsig", "KILL", "--")
    works = subprocess.run([*prefix, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return prefix if works.returncode == 0 else ()


def runtime_binary(name: str) -> str:
    """The path of a tool in the runtime's package, such as ``iree-benchmark-module``. Raises LoadError without it."""
    import iree._runtime_libs as libraries

    path = Path(libraries.__path__[0]) / name
    if not os.access(path, os.X_OK):
        raise LoadError(f"IREE's runtime has no {name}", hint="reinstall iree-base-runtime")
    return str(path)


def compile_in_process(text: bytes, flags: tuple[str, ...]) -> bytes | None:
    """Compile MLIR text by IREE's API; None if the compiler refuses it, which it tells on standard error.

    A crash of the compiler ends this process.

    Raises:
        CompileError: an unknown flag.
    """
    from iree.compiler.api import Invocation, Output, Session, Source

    session = Session()
    try:
        session.set_flags(*flags)
    except ValueError as error:
        raise failure(str(error), "refused its flags") from None
    with Invocation(session) as invocation:
        source = Source.wrap_buffer(session, text + b"\0")
        if not invocation.parse_source(source) or not invocation.execute():
            return None
        output = Output.open_membuffer()
        invocation.output_vm_bytecode(output)
        return bytes(output.map_memory())
