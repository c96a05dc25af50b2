"""What the C functions of the plugin call: programs are compiled and run, arrays are put into IREE's buffers.

Arrays are IREE's buffer views throughout; C keeps their shapes. It knows element types by PJRT's numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import hloforge
from hloforge import api
from hloforge.dialect.abi import crosses, donated_arguments, physical_element
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import (
    ArgumentError,
    Error,
    ExecutionError,
    LoadError,
    OptionError,
    UnregisteredError,
    UnsupportedError,
)
from hloforge.dialect.host_calls import JAX_CALLBACKS
from hloforge.dialect.program import Program as ReadProgram, Signature
from hloforge.dialect.shapes import Shape
from hloforge.importers.guard import trusted
from hloforge.importers.native import portable_artifact_to_bytecode
from hloforge.importers.reader import read
from hloforge.jax import processes
from hloforge.jax.backend import check_overrides, costs_of, guards_copies_to_host
from hloforge.jax.buffer_callbacks import CallbackError
from hloforge.jax.callbacks import functions_of
from hloforge.jax.inspections import answer
from hloforge.jax.plugin.compile_options import REPLICATED, Placement, op_sharding, overrides, placement
from hloforge.jax.plugin.memory_kinds import memory_kinds
from hloforge.jax.plugin.tiers import WORTH_A_THREAD, Tiered, waits_for_code
from hloforge.jax.plugin.traces import Trace
from hloforge.pipelines.evaluation.plans import plan_of
from hloforge.pipelines.replicas.shards import Sharded
from hloforge.runtime.artifact.code_signing import refuse_unsigned
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile.partition import is_to_cut, part_of
from hloforge.runtime.devices.devices import device, rt
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.replicas.communicator import TIMEOUT
from hloforge.runtime.replicas.replicas import Joint, Replicas
from hloforge.runtime.session.arrays import MEMORY, USAGE, hal_type
from hloforge.runtime.session.session import Session
from hloforge.runtime.session.timed import TimedCall

# PJRT_Buffer_Type: by number. Source: XLA, pjrt_c_api.h.
_ORDER = """
. pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 bf16 c64 c128 f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz
s4 u4 . s2 u2 f8e4m3 f8e3m4 f8e8m0fnu f4e2m1fn
"""
_NAMES = {number: name for number, name in enumerate(_ORDER.split()) if name != "."}
_NUMBERS = {name: number for number, name in _NAMES.items()}

_TOKEN = 23
# Type, dimensions, whether the program takes the memory, the order of the dimensions in memory (the minor ones first;
# nothing for row after row), and the number of the kind of memory.
Value: TypeAlias = tuple[int, tuple[int, ...], bool, tuple[int, ...], int]

# Codes of absl::Status.
_INVALID_ARGUMENT, _NOT_FOUND, _RESOURCE_EXHAUSTED, _UNIMPLEMENTED, _INTERNAL = 3, 5, 8, 12, 13
# What IREE says where there is no memory.
_NO_MEMORY = "allocator failed the request"
_DLPACK_CPU = 1


@cache
def _hal(number: int) -> int:
    return hal_type(physical_element(element_type(_NAMES[number])))


@cache
def _allocator() -> Any:
    return device("local-sync").allocator


@cache
def _device() -> Any:
    return device("local-sync")


def put(memory: memoryview, number: int) -> Any:
    """A buffer view with a copy of an array of physical form: ``memory`` has its dimensions."""
    return _allocator().allocate_buffer_copy(MEMORY, USAGE, _device(), memory, _hal(number))


def put_in_place(memory: memoryview, dimensions: tuple[int, ...], number: int) -> Any:
    """A buffer view of memory where it lies, aligned to 64 bytes; the caller keeps it."""
    buffer = _allocator().import_host_allocation(memory, MEMORY, USAGE)
    return rt.HalBufferView(buffer, list(dimensions), _hal(number))


def lasting(view: Any) -> Any:
    """What keeps a buffer view's memory without being an object of IREE's bindings."""
    return _device().create_dlpack_capsule(view, _DLPACK_CPU, 0)


_trace = Trace()
# Called by C while JAX's profiler ends: what ran since a time, as an XSpace.
taken_trace = _trace.take


def traced(program: Program, views: list[Any], devices: tuple[int, ...]) -> list[Any]:
    """Call ``program.run`` or ``program.run_all`` while JAX's profiler is on."""
    calls = program.timed(views)
    each = [calls] if isinstance(calls, TimedCall) else calls
    for number, call in zip(devices, each, strict=True):
        _trace.add(number, program.name.decode(), call)
    return each[0].results if program.run is not None else [call.results for call in each]


__all__ = [
    "compile_program",
    "describe",
    "deserialize",
    "guards_copies_to_host",
    "lasting",
    "put",
    "put_in_place",
    "taken_trace",
    "traced",
]


def describe(exception: BaseException) -> tuple[int, str]:
    """An error's code and text for JAX, which raises a JaxRuntimeError of them."""
    if isinstance(exception, CallbackError):
        return _INTERNAL, str(exception)
    if not isinstance(exception, Error):
        return _INTERNAL, "".join(traceback.format_exception(exception)).rstrip()
    # What has no place in the user's files begins as XLA's errors do.
    text = str(exception).removeprefix("error: ")
    if isinstance(exception, UnsupportedError):
        return _NOT_FOUND if isinstance(exception, UnregisteredError) else _UNIMPLEMENTED, text
    if isinstance(exception, ExecutionError) and _NO_MEMORY in text:
        # Programs look for these words.
        return _RESOURCE_EXHAUSTED, f"Out of memory: {text}"
    return _INVALID_ARGUMENT if isinstance(exception, ArgumentError | OptionError) else _INTERNAL, text


def _telling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose errors are told from those of hloforge. Programs look for XLA's words about them."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except CallbackError:
            raise
        except Exception as error:
            text = "".join(traceback.format_exception(error)).rstrip()
            raise CallbackError(f"CpuCallback error calling callback: {text}") from None

    return call


@dataclass(frozen=True)
class Program:
    """A compiled program on its devices, as C reads it.

    Attributes:
        name, fingerprint, text, options: bytes; the text is the program as JAX gave it.
        code_size: bytes of the vmfb.
        parameters, results: of each in order.
        shardings: an OpSharding of each parameter and each result, without results one of the empty tuple; none of a
            program that is not partitioned.
        devices: their numbers, by ``replica * partitions + partition``.
        in_background: whether it takes longer than handing it to another thread.
        run: from the buffer views of the arguments to those of the results.
        run_all: the same for all devices, a list for each.
        timed: the same for one device, or for all, with times.
        made: the executable, which may have to be compiled first.
    """

    name: bytes
    fingerprint: bytes
    text: bytes
    options: bytes
    code_size: int
    parameters: tuple[Value, ...]
    results: tuple[Value, ...]
    shardings: tuple[bytes, ...]
    replicas: int
    partitions: int
    devices: tuple[int, ...]
    in_background: bool
    run: Callable[[list[Any]], list[Any]] | None
    run_all: Callable[[list[list[Any]]], list[list[Any]]] | None
    timed: Callable[[list[Any]], TimedCall | list[TimedCall]] = field(repr=False)
    made: Callable[[], Executable] = field(repr=False)

    def costs(self) -> list[tuple[str, float]]:
        """What XLA's analysis says that a run costs (``flops``, ``bytes accessed`` …), by name."""
        return costs_of(portable_artifact_to_bytecode(self.text, self.name.decode()))

    def part(self) -> bytes:
        """The program of one device, of one of several partitions, as MLIR: XLA's text shows its collectives."""
        program = read(self.text)
        options = CompileOptions(replicas=self.replicas, partitions=self.partitions)
        return part_of(program, options) if is_to_cut(program, options) else self.text

    def serialize(self) -> bytes:
        """The program with its vmfb, for ``deserialize``."""
        executable = self.made()
        head = {"manifest": executable.manifest.to_json(), "text": len(self.text), "options": len(self.options)}
        return b"".join((json.dumps(head).encode(), b"\n", self.text, self.options, executable.vmfb))


class _Loaded:
    """What runs programs in this process, by program and grid: equal programs on several devices share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: weakref.WeakValueDictionary[tuple[object, ...], Session | Replicas] = weakref.WeakValueDictionary()

    def of(self, executable: Executable, fingerprint: str, where: Placement) -> Session | Replicas:
        key = (fingerprint, where.replicas, where.partitions, where.devices if _joint(where) else None)
        with self._lock:
            found = self._found.get(key)
            if found is None:
                found = self._found[key] = _load(executable, where)
            return found


_loaded = _Loaded()


def _load(executable: Executable, where: Placement) -> Session | Replicas:
    calls = executable.manifest.host_calls
    numbers = [int(call.attributes["index"]) for call in calls if call.target in JAX_CALLBACKS]
    host = dict.fromkeys(JAX_CALLBACKS, tuple(map(_telling, functions_of(numbers)))) if numbers else {}
    if len(where.devices) == 1:
        return executable.load(host=host)
    joint = _joint(where)
    timeout = TIMEOUT if joint is None else processes.TIMEOUT
    return Replicas(executable, where.replicas, where.partitions, host=host, timeout=timeout, joint=joint)


def _joint(where: Placement) -> Joint | None:
    """This process's part of the devices; None if all are its own."""
    world = processes.world()
    return None if world is None else world.joint(where.devices)


def compile_program(code: bytes, options: bytes) -> Program:
    """Compile what JAX lowered.

    Args:
        code: a StableHLO program, as a portable artifact.
        options: a serialized CompileOptionsProto.

    Raises:
        UnsupportedError, CompileError: as ``hloforge.compile``.
        OptionError: compiler options that XLA does not take.
    """
    where = placement(options)
    if chosen_options := overrides(options):
        check_overrides(chosen_options)
    chosen = CompileOptions(replicas=where.replicas, partitions=where.partitions, host_calls=frozenset(JAX_CALLBACKS))
    with trusted():
        answer(code, chosen)
        if len(where.devices) == 1 and not waits_for_code():
            before = api.compiled_before(code, chosen)
            if before is None and (tiered := _tiered(code, chosen)) is not None:
                return _tiered_program(*tiered, code, options)
        executable = hloforge.compile(code, options=chosen)
    return _program(executable, code, options)


def _tiered(code: bytes, chosen: CompileOptions) -> tuple[Tiered, ReadProgram] | None:
    """A program that can run before it is compiled, and what was read; None if it cannot."""
    program = read(code)
    # Who donates an argument wants its memory for a result.
    plan = None if donated_arguments(program.signature) else plan_of(program)
    if plan is None:
        return None

    def compile() -> Executable:
        with trusted():
            return hloforge.compile(code, options=chosen)

    return Tiered(plan, program.signature, compile), program


def _tiered_program(tiered: Tiered, program: ReadProgram, code: bytes, options: bytes) -> Program:
    return Program(
        code_size=0,
        in_background=tiered.is_long,
        run=tiered.call_views,
        run_all=None,
        timed=tiered.call_views_timed,
        made=lambda: tiered.compiled,
        **_facts(program.name, program.signature, code, options),
    )


def deserialize(serialized: bytes, options: bytes) -> Program:
    """The program of ``Program.serialize``.

    Args:
        options: a serialized CompileOptionsProto that replaces the program's; may be empty.

    Raises:
        LoadError: the bytes are none of a program, or of another version; signatures are asked for.
    """
    refuse_unsigned("a program that JAX kept")
    try:
        line, _, rest = serialized.partition(b"\n")
        head = json.loads(line)
        text, behind = rest[: head["text"]], rest[head["text"] :]
        own, vmfb = behind[: head["options"]], behind[head["options"] :]
        executable = Executable(vmfb, Manifest.from_json(head["manifest"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LoadError(f"these bytes are no program of hloforge's JAX backend: {error}") from None
    return _program(executable, text, options or own)


def _program(executable: Executable, code: bytes, options: bytes) -> Program:
    where = placement(options)
    runs = _loaded.of(executable, hashlib.sha256(executable.vmfb).hexdigest(), where)
    manifest = executable.manifest
    return Program(
        code_size=len(executable.vmfb),
        in_background=manifest.work >= WORTH_A_THREAD and not _calls_python(manifest),
        run=runs.call_views if isinstance(runs, Session) else None,
        run_all=runs.each_views if isinstance(runs, Replicas) else None,
        timed=runs.each_views_timed if isinstance(runs, Replicas) else runs.call_views_timed,
        made=lambda: executable,
        **_facts(manifest.name, manifest.signature, code, options, manifest.sharded),
    )


def _facts(
    name: str, signature: Signature, code: bytes, options: bytes, sharded: Sharded | None = None
) -> dict[str, Any]:
    """What C reads of any program."""
    where = placement(options)
    kinds = memory_kinds(code, len(signature.flat_parameters), len(signature.flat_results))
    return {
        "name": name.encode(),
        # Of the program, whether it is compiled yet or not.
        "fingerprint": hashlib.sha256(code + options).hexdigest().encode(),
        "text": code,
        "options": options,
        "parameters": _parameters(signature, kinds[0]),
        "results": tuple(
            _value(shape, kind=kind) for shape, kind in zip(signature.flat_results, kinds[1], strict=True)
        ),
        "shardings": _shardings(signature, sharded, where.partitions),
        "replicas": where.replicas,
        "partitions": where.partitions,
        "devices": where.devices,
    }


def _shardings(signature: Signature, sharded: Sharded | None, partitions: int) -> tuple[bytes, ...]:
    """An OpSharding of each parameter and each result; without results one of their empty tuple, as XLA has it.

    A program of several partitions that says nothing of how its arrays lie has all of them on each device.
    """
    if partitions == 1 and sharded is None:
        return ()
    if sharded is not None:
        parameters, results = sharded.parameters, sharded.results
        return (*map(op_sharding, parameters), *(map(op_sharding, results) if results else (REPLICATED,)))
    return (REPLICATED,) * (len(signature.flat_parameters) + max(len(signature.flat_results), 1))


def _calls_python(manifest: Manifest) -> bool:
    return any(call.target in JAX_CALLBACKS for call in manifest.host_calls)


def _parameters(signature: Signature, kinds: Sequence[int]) -> tuple[Value, ...]:
    numbers = itertools.count()
    donated = donated_arguments(signature)
    leaves = zip(signature.flat_parameters, kinds, strict=True)
    return tuple(
        _value(leaf.shape, crosses(leaf.shape) and next(numbers) in donated, kind=kind) for leaf, kind in leaves
    )


def _value(shape: Shape, is_donated: bool = False, *, kind: int) -> Value:
    if shape.element is None:
        return _TOKEN, (), False, (), 0
    if shape.layout is not None and not shape.layout.is_plain:
        raise UnsupportedError(
            f"{shape}: arrays of JAX's backend have no tiles", hint="give the minor-to-major order only"
        )
    order = shape.layout.minor_to_major if shape.layout is not None else ()
    return _NUMBERS[shape.element.name], tuple(shape.dimensions), is_donated, order, kind
