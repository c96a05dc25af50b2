"""Options of a compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict

from hloforge.dialect.errors import OptionError
from hloforge.dialect.suggestions import did_you_mean
from hloforge.pipelines.framework.machine import check_settings
from hloforge.pipelines.replicas.grid import Grid
from hloforge.runtime.bucket_sizes import normalized

ISOLATIONS = ("process", "none")
# local-sync runs a call on the caller's thread; local-task splits its dispatches over a pool.
DRIVERS = ("local-sync", "local-task")
# Drivers of devices with memory of their own; ``vulkan://GPU-6d65…`` names one of several devices.
GPU_DRIVERS = ("vulkan", "cuda", "hip", "metal")
DYNAMIC_SHAPES = ("auto", "keep", "specialize")


class CommonFields(TypedDict, total=False):
    """Fields of ``CompileOptions`` as keyword arguments, for type checkers; each is described there.

    These are the ones that mean the same wherever a program is compiled.
    """

    flags: Sequence[str]
    isolation: str
    memory_limit: int | None
    size_limit: int | None
    reproducer_dir: str | PathLike[str] | None
    dynamic_shapes: str
    shapes: Mapping[str, tuple[int, ...]]
    buckets: Mapping[str, str | Sequence[int]] | str | bool
    machine: Sequence[str]
    weights: str | PathLike[str] | None
    externalize_weights: str | PathLike[str] | None
    host_calls: Iterable[str]
    libraries: Sequence[str | PathLike[str]]
    verify: bool
    cache: bool
    dump_after: Iterable[str]
    dump_to: str | PathLike[str] | None
    progress: Callable[[str], object] | None


class CompileFields(CommonFields, total=False):
    """All fields of ``CompileOptions``: a test compares them."""

    timeout: float | None
    device: str
    threads: int
    replicas: int
    partitions: int
    fold_replicas: bool


@dataclass(frozen=True)
class CompileOptions:
    """How to compile.

    Attributes:
        flags: further flags of IREE's compiler, each ``--iree-…``; a later one overrides hloforge's own.
        isolation: ``process`` (a crash of the compiler is an error) or ``none`` (in this one, without known kernels).
        timeout: seconds that all of a compilation may take: reading, passes, IREE's compiler with all its attempts;
            None for no limit. A form of a dynamic program that a call compiles has as many again.
        memory_limit: bytes that each of its processes may take: IREE's compiler, and the child that reads and runs the
            passes, beside what this process has; None for no limit.
        size_limit: bytes that the program may have; None for 2 GiB of a stream, and the machine's memory of a file.
        reproducer_dir: where a failed compilation leaves its input; None for ``failures`` in the cache, which keeps the
            last few (runtime/compile/reproducers.py).
        verify: check the IR between passes.
        cache: look for the same compilation on disk first, and keep this one there (runtime/compile/cache.py).
        dynamic_shapes: what becomes of sizes that are known at run time only: ``keep`` (one module for all sizes),
            ``specialize`` (a module for each combination of sizes, compiled when a call first brings it), or ``auto``
            (one module if the target takes the program so). Programs of static shapes do not care.
        shapes: sizes of arguments by name, for which a program of dynamic shapes is compiled once and for all.
        buckets: one program for a few ranges of sizes (docs/shapes.md): ``all`` for every size of an argument that has
            bounds, or sizes by name (``{"x.0": "1..512", "x.1": [16, 64]}``, dimensions of ``x``). Empty for none.
        machine: numbers of the processor's model instead of its own, each ``l2-bytes=1048576`` of
            ``hloforge.pipelines.framework.machine.TUNABLE``.
        device: where sessions of the program run if nobody says, one of ``DRIVERS`` or ``GPU_DRIVERS``; empty for a
            choice by the target, and of processors by the program's size.
        threads: of local-task in such a session; 0 for one a core.
        weights: a file (``.safetensors`` or IREE's ``.irpa``) whose arrays take the place of the parameters of their
            names: the vmfb looks them up in it when it is loaded.
        host_calls: functions of the host that the program may call though nobody registered them yet.
        libraries: shared libraries whose functions it may call.
        replicas, partitions: how many devices run the program at once (``hloforge.replicate``); a sharded program is
            cut into that many partitions.
        fold_replicas: make one program of those of all devices, with a leading dimension of the devices.
        externalize_weights: such a file that shall be written, with the program's large constants.
        dump_after: passes after which the IR is written; ``all`` for every one.
        dump_to: folder for these dumps; None for standard error.
        progress: called meanwhile, from a thread of its own, with what the compilation does whenever that has changed:
            ``reading``, ``the pass inline-calls``, ``IREE's compiler: dispatch 12 of 43``. What is compiled does not
            depend on it.

    Raises:
        OptionError: a flag that is not IREE's, an unknown isolation, device or treatment of dynamic shapes, a number
            of the machine that cannot be set, two files of weights, or a limit that isolation ``none`` cannot keep.
    """

    flags: tuple[str, ...] = ()
    isolation: str = "process"
    timeout: float | None = None
    memory_limit: int | None = None
    size_limit: int | None = None
    reproducer_dir: Path | None = None
    dynamic_shapes: str = "auto"
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    buckets: Mapping[str, Sequence[int]] | str = field(default_factory=dict)
    machine: tuple[str, ...] = ()
    device: str = ""
    threads: int = 0
    weights: Path | None = None
    externalize_weights: Path | None = None
    host_calls: frozenset[str] = frozenset()
    libraries: tuple[Path, ...] = ()
    replicas: int = 1
    partitions: int = 1
    fold_replicas: bool = False
    verify: bool = True
    cache: bool = True
    dump_after: frozenset[str] = frozenset()
    dump_to: Path | None = None
    progress: Callable[[str], object] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("reproducer_dir", "dump_to", "weights", "externalize_weights"):
            path = getattr(self, name)
            if path is not None:
                object.__setattr__(self, name, Path(path))
        for name in ("flags", "machine"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("dump_after", "host_calls"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        object.__setattr__(self, "buckets", normalized(self.buckets))
        object.__setattr__(self, "libraries", tuple(map(Path, self.libraries)))
        if self.buckets and self.externalize_weights is not None:
            raise OptionError(
                "a file of buckets has its weights inside, once; externalize_weights is for other programs",
                hint="leave one of the two out",
            )
        if self.weights is not None and self.externalize_weights is not None:
            raise OptionError("a program takes its weights from one file: either weights or externalize_weights")
        if self.isolation not in ISOLATIONS:
            raise OptionError(f"unknown isolation {self.isolation!r}", hint=f"one of: {', '.join(ISOLATIONS)}")
        if self.dynamic_shapes not in DYNAMIC_SHAPES:
            raise OptionError(
                f"unknown dynamic_shapes {self.dynamic_shapes!r}", hint=f"one of: {', '.join(DYNAMIC_SHAPES)}"
            )
        for flag in self.flags:
            if not flag.startswith("--iree-"):
                raise OptionError(f"{flag!r} is no flag of IREE's compiler", hint="they begin with --iree-")
        try:
            check_settings(self.machine)
        except ValueError as error:
            raise OptionError(str(error)) from None
        if self.device:
            check_device(self.device)
        if self.threads < 0:
            raise OptionError(f"threads must not be negative: {self.threads}")
        Grid(self.replicas, self.partitions)
        for name in ("timeout", "memory_limit", "size_limit"):
            limit = getattr(self, name)
            if limit is not None and limit <= 0:
                raise OptionError(f"{name} must be positive, not {limit}")
        if self.isolation == "none" and (self.timeout is not None or self.memory_limit is not None):
            raise OptionError("a time or memory limit needs isolation 'process'")

    def changed(self, fields: Mapping[str, Any]) -> CompileOptions:
        """The options with other values of some fields, in any form that ``CompileFields`` gives them."""
        return replace(self, **fields)

    @property
    def is_limited(self) -> bool:
        """Whether a compilation has a deadline or a limit of memory, and runs in a child process if it can."""
        return self.timeout is not None or self.memory_limit is not None

    @property
    def grid(self) -> Grid:
        """The devices that run the program at once."""
        return Grid(self.replicas, self.partitions)


def check_device(name: str) -> None:
    """Raise OptionError unless a name is that of a driver, or a URI of one with memory of its own."""
    if name not in DRIVERS and name.partition("://")[0] not in GPU_DRIVERS:
        known = (*DRIVERS, *GPU_DRIVERS)
        hint = f"{did_you_mean(name, known)} devices: {', '.join(known)}".strip()
        raise OptionError(f"unknown device {name!r}", hint=hint)
