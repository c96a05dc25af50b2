"""A process that has IREE's compiler loaded and warm, and forks a child for each request (``server.py``).

It imports IREE's compiler and little else, so that it is ready in a third of a second. A child serves one connection
and ends with it: whatever happens to it, the next one is forked from the same state. It does not say what went wrong,
because whoever asked has the program compiled by ``iree-compile`` then, whose diagnostics are read.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hloforge.runtime.compile.assembly import passes
from hloforge.runtime.compile.assembly.executables import (
    EXECUTABLE,
    joined,
    moved,
    named,
    with_binaries,
    with_marks,
)
from hloforge.runtime.compile.assembly.library import Compiler, Invocation
from hloforge.runtime.compile.assembly.messages import receive, send

_PR_SET_PDEATHSIG = 1
_VARIANT = "hal.executable.variant"
_OF_BYTECODE = ("--iree-vm-bytecode-module-strip-source-map=true",)
# As IREE has its linker make libraries.
_SHARED = ("-nostdlib", "-static", "-shared")
# Everything is run once before anything is forked: the code that a first compilation touches comes from disk.
_WARM = b"""
func.func @warm(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %sum = stablehlo.add %a, %b : tensor<4xf32>
  return %sum : tensor<4xf32>
}
"""
_WARM_LIBRARY = "library_warm"
_WARM_FORMAT = "embedded-elf"
_WARM_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-type=stablehlo",
)


def _dispatches(compiler: Compiler, request: dict[str, Any], source: bytes, connection: socket.socket) -> None:
    """A program until it consists of dispatches: says it as bytecode."""
    compiler.choose(request["flags"])
    program = Invocation(compiler, source)
    program.compile("flow")
    send(connection, [program.output("IRBytecode", -1)])


def _program(compiler: Compiler, request: dict[str, Any], source: bytes, connection: socket.socket) -> None:
    """A program, or dispatches as bytecode, but for the code of its executables.

    Says what the audit reads, the names of the executables, and their texts; is told in which library each is, and
    these libraries without code, and then their names and binaries; says the vmfb.
    """
    if request["flags"]:
        compiler.choose(request["flags"])
    module = compiler.parse(source)
    if request["device"]:
        before, after = passes.to_dispatches(**request["dispatches"])
        compiler.run(module, before)
        compiler.set_attribute(module, "hal.device.targets", f"[{request['device']} : !hal.device]")
        compiler.run(module, after)
    audited, host, executables = apart(compiler, module)
    texts = (text.encode() for text in executables.values())
    send(connection, [audited.encode(), json.dumps(list(executables)).encode(), *texts])
    places, *libraries = receive(connection)
    # Nothing depends on the code itself, which is not there yet.
    host = moved(host, found := json.loads(places))
    host = named(host, request["names"], {kernel: name for name, (_, kernel) in found.items()})
    text = without_binaries(compiler, host, [library.decode() for library in libraries], request["format"])
    names, *binaries = receive(connection)
    send(connection, [finished(compiler, text, dict(zip(json.loads(names), binaries, strict=True)))])


def apart(compiler: Compiler, module: Any) -> tuple[str, str, dict[str, str]]:
    """Of a program of dispatches: the text for the audit, the host's without executables, and these by name."""
    compiler.run(module, passes.TO_SCHEDULE)
    audited = module.operation.get_asm(
        print_generic_op_form=True, enable_debug_info=True, large_elements_limit=16, large_resource_limit=16
    )
    compiler.run(module, passes.TO_EXECUTABLES)
    executables = {}
    for operation in [op.operation for op in module.body.operations if op.operation.name == EXECUTABLE]:
        name = json.loads(str(operation.attributes["sym_name"]))
        executables[name] = operation.get_asm(use_local_scope=True)
        operation.erase()
    return audited, module.operation.get_asm(use_local_scope=True), executables


def without_binaries(compiler: Compiler, host: str, libraries: Sequence[str], format_: str) -> str:
    """A host as the text of its bytecode, with a mark in the place of each library's binary."""
    head, _, body = host.partition("\n")
    module = compiler.parse("\n".join((head, *libraries, body)))
    compiler.run(module, passes.TO_HAL)
    module = compiler.parse(with_marks(module.operation.get_asm(use_local_scope=True), format_))
    compiler.run(module, passes.TO_BYTECODE)
    return str(module.operation.get_asm())


def finished(compiler: Compiler, text: str, binaries: Mapping[str, bytes]) -> bytes:
    """The vmfb of such a host."""
    program = Invocation(compiler, with_binaries(text, binaries).encode(), _OF_BYTECODE, threads=False)
    return program.output("VMBytecode")


def _library(compiler: Compiler, request: dict[str, Any], source: bytes, connection: socket.socket) -> None:
    """A library of executables: says its text without code when that is generated, and then its binary."""
    compiler.choose(request["flags"])
    if request["is_o2"]:
        module = compiler.parse(source)
        compiler.run(module, passes.TO_CODE)
        program = Invocation(compiler, compiler.bytecode(module))
    else:
        program = Invocation(compiler, source)
        program.compile("executable-targets", since="executable-sources")
        module = compiler.parse(program.output("IRBytecode", -1))
    send(connection, [joined(exports_of(module)).encode()])
    program.compile("hal", since="executable-targets")
    (code,) = Path(request["temporary"]).glob("*.o")
    library = code.with_suffix(".linked")
    _link(compiler, [*request["linker"], *_SHARED, "-o", str(library), str(code)])
    send(connection, [library.read_bytes()])


def exports_of(module: Any) -> list[str]:
    """Each executable of a module as text, in order, after its code is taken away."""
    found = []
    for executable in [op.operation for op in module.body.operations if op.operation.name == EXECUTABLE]:
        (variant,) = [op for op in executable.regions[0].blocks[0].operations if op.operation.name == _VARIANT]
        for inner in list(variant.regions[0].blocks[0].operations):
            if inner.operation.name == "builtin.module":
                inner.operation.erase()
        found.append(executable.get_asm(use_local_scope=True))
    return found


def _link(compiler: Compiler, words: Sequence[str]) -> None:
    """Link in a child, because the linker may end its process. Raises OSError if it fails."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = compiler.link(words)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        raise OSError(f"the linker ended with {status}")


_REQUESTS = {"dispatches": _dispatches, "program": _program, "library": _library}


def serve(compiler: Compiler, connection: socket.socket) -> None:
    """Answer one request in a child of its own."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A linker is waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    send(connection, [str(os.getpid()).encode()])
    head, source = receive(connection)
    request = json.loads(head)
    if request["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
    # Where IREE's linker leaves its files if it is killed.
    os.environ["TMPDIR"] = request["temporary"]
    _REQUESTS[request["kind"]](compiler, request, source, connection)


def main() -> None:
    """Serve connections that come through a socket until its other end is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    compiler = Compiler(sys.argv[2])
    _warm(compiler)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        said, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not said:
            return
        with socket.socket(fileno=descriptors[0]) as connection:
            if os.fork() == 0:
                control.close()
                try:
                    serve(compiler, connection)
                except BaseException:
                    # For whoever debugs this: what this process says goes nowhere.
                    traceback.print_exc()
                finally:
                    os._exit(0)


def _warm(compiler: Compiler) -> None:
    """Run what requests run."""
    program = Invocation(compiler, _WARM, _WARM_FLAGS, threads=False)
    program.compile("flow")
    _, host, executables = apart(compiler, compiler.parse(program.output("IRBytecode", -1)))
    module = compiler.parse("\n".join(("module {", *executables.values(), "}")))
    compiler.run(module, passes.TO_CODE)
    code = compiler.bytecode(module)
    library = joined(exports_of(module)).replace("@library", f"@{_WARM_LIBRARY}", 1)
    host = moved(host, {name: (_WARM_LIBRARY, name) for name in executables})
    finished(compiler, without_binaries(compiler, host, [library], _WARM_FORMAT), {_WARM_LIBRARY: b"\0"})
    Invocation(compiler, code, threads=False).compile("end", since="executable-targets")
    before, after = passes.to_dispatches(strips_assertions=True, tiles_data=False)
    module = compiler.parse(_WARM)
    compiler.run(module, before)
    compiler.run(module, after)


if __name__ == "__main__":
    main()
