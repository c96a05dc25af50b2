"""IREE's compiler as a shared library: sessions by its C API, and passes by its Python bindings.

Only the server's process loads it (``worker.py``). Nothing is freed, because each of its children ends soon.
"""

from __future__ import annotations

import ctypes
import importlib
import io
from collections.abc import Sequence
from typing import Any

_POINTER = ctypes.c_void_p
_BYTECODE = b"ML\xefR"
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ireeCompilerGlobalInitialize": (None, ()),
    "ireeCompilerSetupGlobalCL": (None, (ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_bool)),
    "ireeCompilerSessionCreate": (_POINTER, ()),
    "ireeCompilerSessionSetFlags": (_POINTER, (_POINTER, ctypes.c_int, _POINTER)),
    "ireeCompilerSessionBorrowContext": (_POINTER, (_POINTER,)),
    "ireeCompilerInvocationCreate": (_POINTER, (_POINTER,)),
    "ireeCompilerSourceWrapBuffer": (
        _POINTER,
        (_POINTER, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_bool, _POINTER),
    ),
    "ireeCompilerInvocationParseSource": (ctypes.c_bool, (_POINTER, _POINTER)),
    "ireeCompilerInvocationSetCompileFromPhase": (None, (_POINTER, ctypes.c_char_p)),
    "ireeCompilerInvocationSetCompileToPhase": (None, (_POINTER, ctypes.c_char_p)),
    "ireeCompilerInvocationPipeline": (ctypes.c_bool, (_POINTER, ctypes.c_int)),
    "ireeCompilerOutputOpenMembuffer": (_POINTER, (_POINTER,)),
    "ireeCompilerOutputMapMemory": (_POINTER, (_POINTER, _POINTER, _POINTER)),
    "ireeCompilerInvocationOutputIR": (_POINTER, (_POINTER, _POINTER)),
    "ireeCompilerInvocationOutputIRBytecode": (_POINTER, (_POINTER, _POINTER, ctypes.c_int)),
    "ireeCompilerInvocationOutputVMBytecode": (_POINTER, (_POINTER, _POINTER)),
    "ireeCompilerRunLldMain": (ctypes.c_int, (ctypes.c_int, _POINTER)),
    "mlirContextEnableMultithreading": (None, (_POINTER, ctypes.c_bool)),
}


class CompilerError(Exception):
    """IREE's compiler refuses what it was given."""


class Compiler:
    """The library.

    Args:
        path: its file.
    """

    def __init__(self, path: str) -> None:
        # ``iree.compiler.ir`` would have each context load all dialects.
        libraries: Any = importlib.import_module("iree.compiler._mlir_libs")
        bindings: Any = importlib.import_module("iree.compiler._mlir_libs._mlir")
        passes: Any = importlib.import_module("iree.compiler.passmanager")
        self._context, self._module, self._attribute = bindings.ir._Context, bindings.ir.Module, bindings.ir.Attribute
        self._registry, self._passes = libraries.get_dialect_registry, passes.PassManager
        self._functions = {}
        api = ctypes.CDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(api, name)
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function
        self.call("ireeCompilerGlobalInitialize")

    def call(self, name: str, *arguments: Any) -> Any:
        """A function of the C API."""
        return self._functions[name](*arguments)

    def choose(self, flags: Sequence[str]) -> None:
        """Flags of ``iree-compile`` for all sessions of this process; once only."""
        words = (ctypes.c_char_p * (len(flags) + 1))(b"iree-compile", *(flag.encode() for flag in flags))
        self.call("ireeCompilerSetupGlobalCL", len(words), words, b"", False)

    def link(self, words: Sequence[str]) -> int:
        """Run IREE's linker, which may end this process; its status."""
        command = (ctypes.c_char_p * (len(words) + 2))(b"iree-lld", *(word.encode() for word in words), None)
        return int(self.call("ireeCompilerRunLldMain", len(words) + 1, command))

    def parse(self, source: bytes | str) -> Any:
        """A module in a context of its own, which loads the dialects alone that the module or a pass has.

        Each pass that canonicalizes collects the patterns of all that are loaded.
        """
        context = self._context()
        context.enable_multithreading(False)
        context.append_dialect_registry(self._registry())
        return self._module.parse(source, context=context)

    def bytecode(self, module: Any) -> bytes:
        """A module as MLIR's bytecode."""
        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
        return stream.getvalue()

    def set_attribute(self, module: Any, name: str, value: str) -> None:
        """Give a module an attribute, as MLIR prints it."""
        module.operation.attributes[name] = self._attribute.parse(value, context=module.context)

    def run(self, module: Any, passes: str) -> None:
        """Run passes, which are a pipeline in MLIR's textual form without its root."""
        with module.context:
            self._passes.parse(f"builtin.module({passes})").run(module.operation)


class Invocation:
    """A program in a session of IREE's compiler.

    Args:
        flags: of the session, beside those of the process.
        threads: whether passes may run in threads.

    Raises:
        CompilerError: a flag is unknown, or the program cannot be parsed.
    """

    def __init__(self, compiler: Compiler, source: bytes, flags: Sequence[str] = (), *, threads: bool = True) -> None:
        self._compiler = compiler
        session = compiler.call("ireeCompilerSessionCreate")
        if not threads:
            context = compiler.call("ireeCompilerSessionBorrowContext", session)
            compiler.call("mlirContextEnableMultithreading", context, False)
        words = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        if compiler.call("ireeCompilerSessionSetFlags", session, len(words), words):
            raise CompilerError("unknown flag")
        self._invocation = compiler.call("ireeCompilerInvocationCreate", session)
        # Text ends with a zero, bytecode does not; both stay with their owner.
        is_text = not source.startswith(_BYTECODE)
        self._source = source + b"\0" if is_text else source
        found = _POINTER()
        place = (self._source, len(self._source), is_text, ctypes.byref(found))
        compiler.call("ireeCompilerSourceWrapBuffer", session, b"<stdin>", *place)
        if not compiler.call("ireeCompilerInvocationParseSource", self._invocation, found):
            raise CompilerError("the program cannot be parsed")

    def compile(self, to: str, *, since: str = "start") -> None:
        """Run IREE's own phases. Raises CompilerError."""
        self._compiler.call("ireeCompilerInvocationSetCompileFromPhase", self._invocation, since.encode())
        self._compiler.call("ireeCompilerInvocationSetCompileToPhase", self._invocation, to.encode())
        if not self._compiler.call("ireeCompilerInvocationPipeline", self._invocation, 0):
            raise CompilerError(f"no {to}")

    def output(self, form: str, *arguments: int) -> bytes:
        """What there is now, in a form of ``ireeCompilerInvocationOutput…``. Raises CompilerError."""
        output, start, length = _POINTER(), _POINTER(), ctypes.c_uint64()
        self._compiler.call("ireeCompilerOutputOpenMembuffer", ctypes.byref(output))
        if self._compiler.call(f"ireeCompilerInvocationOutput{form}", self._invocation, output, *arguments):
            raise CompilerError(f"no {form}")
        self._compiler.call("ireeCompilerOutputMapMemory", output, ctypes.byref(start), ctypes.byref(length))
        return ctypes.string_at(start.value, length.value) if start.value else b""
