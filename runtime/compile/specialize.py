"""Programs of dynamic shapes that are compiled for the sizes of each call, and cached."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import (
    ArgumentError,
    CompileError,
    ExecutionError,
    OperationError,
    OptionError,
    UnregisteredError,
    UnsupportedError,
)
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.dynamic.specialize import is_dynamic, size_parameters, specialize
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest, tool_versions
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.devices.devices import choose_driver, device as device_of
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.session.arrays import DeviceArray
from hloforge.runtime.session.convention import leaf_values
from hloforge.runtime.session.feeds import Feeds
from hloforge.runtime.session.session import Session

Compile: TypeAlias = Callable[[Program], Executable]
# What a specialization depends on: the sizes of every array, and the values of those that the program takes sizes from.
_Key: TypeAlias = tuple[tuple[tuple[int, ...], ...], tuple[bytes, ...]]

# Specializations that a session keeps, the last used ones; one is some 100 KiB of code.
KEPT = 64


def compile_dynamic(program: Program, compile_form: Compile, target: Target, options: CompileOptions) -> Executable:
    """Compile a program whose shapes may be dynamic.

    Args:
        compile_form: compiles a program as it is.
        options: ``shapes`` and ``dynamic_shapes`` say for which sizes, and when.

    Raises:
        ArgumentError: the program does not take ``options.shapes``.
        UnsupportedError, CompileError: as ``compile_form``.
    """
    if program.template is not None:
        executable = _specializing(program, compile_form, target, options, "")
        if options.buckets:
            from hloforge.runtime.compile.buckets import bucketed

            return bucketed(executable, options.buckets)
        return executable
    if options.buckets:
        from hloforge.runtime.compile.buckets import bucketed

        if not is_dynamic(program.module):
            raise OptionError(
                "buckets are for programs of open sizes",
                hint="export it with dynamic shapes: torch.export.Dim, jax.export.symbolic_shape, dim_param of ONNX",
            )
        return bucketed(_specializing(program, compile_form, target, options, ""), options.buckets)
    if options.shapes:
        program = for_sizes(program, options.shapes)
    if options.dynamic_shapes == "keep" or not is_dynamic(program.module):
        return compile_form(program)
    refusal = ""
    if options.dynamic_shapes == "auto":
        try:
            return compile_form(program)
        except (CompileError, OperationError) as error:
            # The latter: a pass wrote an operation for static sizes alone.
            refusal = error.message
        except UnsupportedError as error:
            # An operation of static shapes would be refused again, when it is too late; so would an unknown function.
            if "?" not in error.op or isinstance(error, UnregisteredError):
                raise
            refusal = error.message
    return _specializing(program, compile_form, target, options, refusal)


def _specializing(
    program: Program, compile_form: Compile, target: Target, options: CompileOptions, refusal: str
) -> SpecializingExecutable:
    manifest = Manifest(
        program.name, program.signature, str(target), options.flags, tool_versions(), source=Path(program.source).name
    )
    return SpecializingExecutable(b"", manifest, program, compile_form, refusal)


def at_sizes(program: Program, options: CompileOptions) -> tuple[Program, CompileOptions]:
    """A template's program for the sizes that the options name, and options that name none; anything else as it is.

    Raises:
        ArgumentError: as of ``for_sizes``.
    """
    if program.template is None or not options.shapes:
        return program, options
    return for_sizes(program, options.shapes), replace(options, shapes={})


def for_sizes(program: Program, sizes: Mapping[str, Sequence[int]]) -> Program:
    """The program for arguments of these sizes, by their names; those of static shape need none.

    Raises:
        ArgumentError: an unknown name, sizes that the parameter does not take, or none for a dynamic shape.
    """
    leaves = [leaf for leaf in program.signature.flat_parameters if crosses(leaf.shape)]
    missing = [leaf.name for leaf in leaves if not leaf.shape.is_static and leaf.name not in sizes]
    unknown = sorted(sizes.keys() - {leaf.name for leaf in leaves})
    if missing or unknown:
        message = f"no parameter is called {unknown[0]!r}" if unknown else f"no sizes of {', '.join(missing)}"
        raise ArgumentError(message, hint=f"signature: {program.signature}")
    dims = [tuple(sizes.get(leaf.name, leaf.shape.dimensions)) for leaf in leaves]
    return specialize(program, [Shape(leaf.shape.element, sizes) for leaf, sizes in zip(leaves, dims, strict=True)])


@dataclass(frozen=True)
class SpecializingExecutable(Executable):
    """A program that is compiled when a call brings sizes that no call had before. It has no vmfb.

    Attributes:
        program: with dynamic shapes; it is not changed.
        compile_form: compiles a specialized program.
        refusal: why the program is not compiled for all sizes, if that was tried.
    """

    compiles_at_calls: ClassVar[bool] = True
    program: Program = field(repr=False)
    compile_form: Compile = field(repr=False)
    refusal: str = ""

    def in_one_file(self) -> Executable:
        """Refuse: a vmfb holds one form of a program, or its buckets. Raises OptionError."""
        raise OptionError(
            f"{self.manifest.name} is compiled for the sizes of each call, and a vmfb holds one form",
            notes=(f"for all sizes: {self.refusal}",) if self.refusal else (),
            hint="name the sizes of its arguments: compile(…, shapes={'x': (8, 4)}), or --shape x=8x4; or ranges of "
            "them: buckets={'x.0': [1, 8]}, or --buckets x.0=1,8",
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a vmfb. Raises OptionError as of ``in_one_file``."""
        self.in_one_file().save(path)

    def load(self, *, device: str | None = None, threads: int | Sequence[int] | None = None, **options: Any) -> Session:
        return SpecializingSession(self, device, threads, options)

    def __repr__(self) -> str:
        return f"SpecializingExecutable({self.manifest.name}: {self.manifest.signature})"


class SpecializingSession(Session):
    """A session that compiles a form of its program for the sizes of the arguments, and keeps the last ones used.

    Each form chooses its device if nobody did: a processor's kernels share their work out where it is large enough, and
    arrays of one processor's devices are the others' as well.
    """

    is_specializing = True
    _lock: threading.Lock
    _is_closed: bool

    def __init__(
        self,
        executable: SpecializingExecutable,
        driver: str | None,
        threads: int | Sequence[int] | None,
        options: Mapping[str, Any],
    ) -> None:
        self._take_manifest(executable.manifest)
        self.device, self._asked = driver or "", driver
        self._threads = threads
        own = {**executable.host, **(options.get("host") or {})}
        libraries = (*options.get("libraries", ()), *executable.libraries)
        self.feeds = options.get("feeds") or Feeds()
        self._options = {**options, "host": own, "libraries": libraries, "feeds": self.feeds}
        self._executable = executable
        self._size_parameters = size_parameters(executable.program)
        self._forms: OrderedDict[_Key, Session] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            forms = list(self._forms.values())
            self._forms.clear()
        for form in forms:
            form.close()

    @property
    def closed(self) -> bool:
        return self._is_closed

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        ordered = self._in_order(arguments, named)
        return self._form(ordered)(*ordered)

    def call_device(self, *arguments: Any, **named: Any) -> Any:
        ordered = self._in_order(arguments, named)
        return self._form(ordered).call_device(*ordered)

    def put(self, value: Any, parameter: int | str) -> DeviceArray:
        self.device = self.device or choose_driver(0, self._threads)
        self._device = device_of(self.device, self._threads)
        return super().put(value, parameter)

    def _form(self, arguments: Sequence[Any]) -> Session:
        """The session for the sizes of the arguments. Raises ArgumentError for arguments that the program refuses."""
        flat = leaf_values(self.signature, arguments)
        sizes = tuple(codec.sizes(value) for codec, value in zip(self._parameters, flat, strict=True))
        with self._lock:
            if self._is_closed:
                raise ExecutionError(f"the session of {self.manifest.name} is closed", hint="load the program again")
            key = sizes, self._values(flat)
            if key not in self._forms:
                form = self._compile(sizes, dict(enumerate(flat)))
                # A template may have learned which elements decide sizes.
                self._size_parameters = size_parameters(self._executable.program)
                key = sizes, self._values(flat)
                self._forms[key] = form
                if len(self._forms) > KEPT:
                    self._forms.popitem(last=False)
            self._forms.move_to_end(key)
            return self._forms[key]

    def _values(self, flat: Sequence[Any]) -> tuple[bytes, ...]:
        return tuple(np.asarray(flat[number]).tobytes() for number in self._size_parameters)

    def _compile(self, sizes: Sequence[tuple[int, ...]], flat: dict[int, Any]) -> Session:
        program = self._executable.program
        numbers = flat if program.template is not None else self._size_parameters
        values = {number: np.asarray(flat[number]) for number in numbers}
        shapes = [Shape(codec.shape.element, dims) for codec, dims in zip(self._parameters, sizes, strict=True)]
        form = self._executable.compile_form(specialize(program, shapes, values))
        session = form.load(device=self._asked, threads=self._threads, **self._options)
        self.device, self._device = session.device, session._device
        return session
