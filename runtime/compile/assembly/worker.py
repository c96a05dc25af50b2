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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hloforge.runtime.compile.assembly import passes
from hloforge.runtime.compile.assembly.executables import EXECUTABLE, renamed, with_binaries, without_code
from hloforge.runtime.compile.assembly.library import Compiler, Invocation
from hloforge.runtime.compile.assembly.messages import receive, send

_PR_SET_PDEATHSIG = 1
# Everything is run once before anything is forked: the code that a first compilation touches comes from disk.
_WARM = b"""
func.func @warm(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %sum = stablehlo.add %a, %b : tensor<4xf32>
  return %sum : tensor<4xf32>
}
"""
_WARM_FORMAT = "embedded-elf"
_WARM_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-type=stablehlo",
)


def _program(compiler: Compiler, request: dict[str, Any], source: bytes, connection: socket.socket) -> None:
    """A program but for the code of its executables.

    Says what the audit reads, the names of the executables, and their texts; is told the executables without their
    code, and then their binaries, in the same order; says the vmfb.
    """
    compiler.choose(request["flags"])
    program = Invocation(compiler, source)
    program.compile("flow")
    audited, host, executables = apart(compiler, program.output("IRBytecode", -1))
    names = list(executables)
    texts = (text.encode() for text in executables.values())
    send(connection, [audited.encode(), json.dumps(names).encode(), *texts])
    module = with_exports(compiler, host, names, [text.decode() for text in receive(connection)])
    binaries = dict(zip(names, receive(connection), strict=True))
    send(connection, [finished(compiler, module, binaries, request["format"])])


def apart(compiler: Compiler, dispatches: bytes) -> tuple[str, str, dict[str, str]]:
    """Of a program of dispatches: the text for the audit, the host's without executables, and these by name."""
    module = compiler.parse(dispatches)
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


def with_exports(compiler: Compiler, host: str, names: Sequence[str], exports: Sequence[str]) -> Any:
    """A host that calls the HAL, with executables that have no code."""
    head, _, body = renamed(host, names).partition("\n")
    module = compiler.parse("\n".join((head, *exports, body)))
    compiler.run(module, passes.TO_HAL)
    return module


def finished(compiler: Compiler, module: Any, binaries: dict[str, bytes], format_: str) -> bytes:
    """The vmfb of such a host."""
    module = compiler.parse(with_binaries(module.operation.get_asm(use_local_scope=True), binaries, format_))
    compiler.run(module, passes.TO_BYTECODE)
    return Invocation(compiler, module.operation.get_asm().encode(), threads=False).output("VMBytecode")


def _kernels(compiler: Compiler, request: dict[str, Any], source: bytes, connection: socket.socket) -> None:
    """Executables: says their texts without code when that is generated, and then their binaries."""
    compiler.choose(request["flags"])
    program = Invocation(compiler, source)
    program.compile("executable-targets", since="executable-sources")
    send(connection, [part.encode() for part in without_code(program.output("IR").decode())])
    program.compile("hal", since="executable-targets")
    folder = Path(request["binaries"])
    send(connection, [next(folder.glob(f"*_{name}_*")).read_bytes() for name in request["names"]])


_REQUESTS = {"program": _program, "kernels": _kernels}


def serve(compiler: Compiler, connection: socket.socket) -> None:
    """Answer one request in a child of its own."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # IREE waits for its linker.
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
    _, host, executables = apart(compiler, program.output("IRBytecode", -1))
    program.compile("executable-targets", since="flow")
    exports = [text.replace("@warm_dispatch_0_", "@kernel_") for text in without_code(program.output("IR").decode())]
    module = with_exports(compiler, host, list(executables), exports)
    finished(compiler, module, dict.fromkeys(executables, b"\0"), _WARM_FORMAT)
    program.compile("end", since="executable-targets")
    program.output("VMBytecode")


if __name__ == "__main__":
    main()
