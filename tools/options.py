"""Options that several sub-commands share, and the values that they are parsed to."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hloforge.tools import completing

if TYPE_CHECKING:
    from hloforge.dialect.program import Program
    from hloforge.runtime.options import CompileOptions

Function = TypeVar("Function", bound=Callable[..., Any])

FORMS = (
    *("hlo", "hlo-proto", "mlir", "mlir-bytecode", "portable-artifact", "jax-export"),
    *("onnx", "tflite", "tensorflow", "torch-export"),
)
# This machine's processor, whose programs our own code generator makes.
OWN_TARGET = "cpu"
_FLAGS = "hloforge.iree_flags"
_READING = ("format", "elided", "seed", "drop_unknown_attributes")
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


class CompilerCommand(click.Command):
    """A command that hands ``--iree-…`` options to IREE's compiler; ``iree_flags`` reads them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ours = [word for word in args[:end] if not word.startswith("--iree-")]
        ctx.meta[_FLAGS] = tuple(word for word in args[:end] if word.startswith("--iree-"))
        return super().parse_args(ctx, ours + args[end:])


def iree_flags() -> tuple[str, ...]:
    """The ``--iree-…`` options of the current command, in order."""
    flags: tuple[str, ...] = click.get_current_context().meta.get(_FLAGS, ())
    return flags


def _byte_count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes: ``4G``, ``500M``, ``1048576``."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip())
    if match is None or not int(match[1]):
        raise click.BadParameter(f"{value!r} is not a size; write 500M or 4G", ctx, param)
    return int(match[1]) * _UNITS[match[2].lower()]


def _limit_size(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Limit the size of every input until the command ends."""
    from hloforge.dialect.bounded_reading import size_limit

    ctx.with_resource(size_limit(_byte_count(ctx, param, value)))


def _named_sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Sizes by name: ``x=8x4``; ``x=`` has no dimensions."""
    found = {}
    for value in values:
        name, equals, sizes = value.rpartition("=")
        numbers = sizes.split("x") if sizes else []
        if not name or not equals or not all(number.isdecimal() for number in numbers):
            raise click.BadParameter(f"{value!r} names no sizes; write x=8x4", ctx, param)
        found[name] = tuple(map(int, numbers))
    return found


def _named_buckets(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | str:
    """Sizes of buckets by the names of open sizes: ``batch=1,8,32``; ``all`` for what has bounds."""
    if values == ("all",):
        return "all"
    found = {}
    for value in values:
        name, equals, sizes = value.rpartition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} names no buckets; write batch=1,8,32, or all alone", ctx, param)
        found[name] = sizes
    return found


def _apply(options: Iterable[Callable[[Function], Function]], function: Function) -> Function:
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(list(options)), function)


def checked_device(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Callback of ``--device``: a name that sessions take, else a usage error."""
    if value is not None:
        from hloforge.dialect.errors import OptionError
        from hloforge.runtime.options import check_device

        try:
            check_device(value)
        except OptionError as error:
            raise click.BadParameter(f"{error.message}; {error.hint}", ctx, param) from None
    return value


def import_options(function: Function) -> Function:
    """How to read a program: keyword arguments ``format``, ``elided``, ``seed``, ``drop_unknown_attributes``."""
    return _apply(
        (
            click.option(
                "--format", type=click.Choice(FORMS), help="Form of the program; by default detected from its content."
            ),
            click.option(
                "--elided",
                type=click.Choice(["refuse", "parameters", "random"]),
                default="refuse",
                show_default=True,
                help="What to do with constant({...}), whose values the text omits.",
            ),
            click.option(
                "--size-limit",
                callback=_limit_size,
                expose_value=False,
                metavar="BYTES",
                help="Largest input to read, such as 4G.  [default: 2G for a pipe, the memory for a file]",
            ),
            click.option("--seed", type=int, default=0, show_default=True, help="Seed of random values."),
            click.option(
                "--drop-unknown-attributes", is_flag=True, help="Ignore unknown attributes in HLO text of a newer XLA."
            ),
        ),
        function,
    )


def judging_options(function: Function) -> Function:
    """How results are compared, and how the program is compiled for it: keyword arguments ``references``,
    ``tolerance``, ``device``, ``plain``, ``without``, ``plugins``.
    """
    return _apply(
        (
            click.option(
                "--reference",
                "references",
                multiple=True,
                type=click.Choice(["xla", "interpreter"]),
                help="Reference engine; a result is right if it agrees with one of them.  [default: both]",
            ),
            click.option(
                "--tolerance",
                type=click.FloatRange(min=0),
                help="Relative tolerance of floats, instead of the default of the element type.",
            ),
            click.option(
                "--device",
                metavar="NAME",
                type=completing.DEVICE,
                callback=checked_device,
                help="Device, as for hloforge run; by default the target's.",
            ),
            click.option(
                "--plain", is_flag=True, help="Compile with IREE's compiler alone, without hloforge's passes."
            ),
            click.option(
                "--without",
                multiple=True,
                metavar="PASS",
                type=completing.PASS,
                help="Leave this pass out; repeatable.",
            ),
            click.option(
                "--plugin",
                "plugins",
                multiple=True,
                type=click.Path(path_type=Path),
                help="Python file to run first, such as one that registers passes.",
            ),
        ),
        function,
    )


def signature_option(function: Function) -> Function:
    """Which function of a SavedModel: keyword argument ``signature``, as ``signature_of`` takes it."""
    return click.option(
        "--signature",
        metavar="NAME",
        help="Signature of a SavedModel to compile.  [default: serving_default, or the only one]",
    )(function)


def reading_options(function: Function) -> Function:
    """How to read a program: keyword argument ``reading``, which ``read_program`` takes as its keyword arguments."""

    @functools.wraps(function)
    def gathered(*, signature: str | None, **given: Any) -> Any:
        reading = {name: given.pop(name) for name in _READING}
        return function(reading=reading | signature_of(signature), **given)

    return cast(Function, import_options(signature_option(gathered)))


def signature_of(name: str | None) -> dict[str, Any]:
    """A signature as a keyword argument of ``read_program``; empty if the user named none."""
    return {} if name is None else {"signature": name}


def target_option(function: Function) -> Function:
    """What to compile for: keyword argument ``target``."""
    return click.option(
        "--target",
        default=OWN_TARGET,
        type=completing.TARGET,
        metavar="TARGET",
        show_default=True,
        help="cpu[:PROCESSOR], vulkan[:GPU], cuda[:sm_90], rocm[:gfx1100] or metal; or several, separated by commas.",
    )(function)


def compiler_options(function: Function) -> Function:
    """How to compile: the keyword arguments that ``compile_options_of`` takes."""
    return _apply(
        (
            click.option(
                "--dynamic-shapes",
                type=click.Choice(["auto", "keep", "specialize"]),
                default="auto",
                show_default=True,
                help="keep: one module for all sizes; specialize: one per set of sizes; auto: keep, if possible.",
            ),
            click.option(
                "--shape",
                "shapes",
                multiple=True,
                callback=_named_sizes,
                metavar="NAME=8x4",
                help="Sizes of an argument of dynamic shape; repeatable.",
            ),
            click.option(
                "--buckets",
                multiple=True,
                callback=_named_buckets,
                metavar="NAME=1,8,32",
                help="One program for ranges of an open size (batch, x.0): 1,8,32 or 1..64; all: each that has bounds.",
            ),
            click.option(
                "--tuning",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="What hloforge tune --save-tuning wrote: flags, passes, device.",
            ),
            click.option(
                "--weights",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Load the parameters that this .safetensors or .irpa file names.",
            ),
            click.option(
                "--externalize-weights",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Write large constants to this .safetensors or .irpa file instead of the vmfb.",
            ),
            click.option(
                "--host-call",
                "host_calls",
                multiple=True,
                metavar="NAME",
                help="Host function that the program may call and that is provided when it runs; repeatable.",
            ),
            click.option(
                "--library",
                "libraries",
                multiple=True,
                type=click.Path(path_type=Path),
                metavar="FILE[:NAMES]",
                help="Shared library whose functions the program may call; FILE:f,g allows only f and g.",
            ),
            click.option("--replicas", type=click.IntRange(min=1), default=1, help="Number of replicas."),
            click.option(
                "--partitions", type=click.IntRange(min=1), default=1, help="Number of partitions per replica."
            ),
            click.option(
                "--fold-replicas",
                is_flag=True,
                help="Fold the programs of all devices into one, which runs on one device.",
            ),
            click.option(
                "--dump-after",
                multiple=True,
                metavar="PASS",
                type=completing.DUMPED,
                help="Write the IR after this pass, or after all; repeatable.",
            ),
            click.option(
                "--dump-to", type=click.Path(path_type=Path), help="Folder for these dumps.  [default: standard error]"
            ),
            click.option(
                "--isolation",
                type=click.Choice(["process", "none"]),
                default="process",
                show_default=True,
                help="Run IREE's compiler in a child process, or in this one.",
            ),
            click.option(
                "--timeout",
                type=click.FloatRange(min=0, min_open=True),
                help="Seconds that the whole compilation may take.",
            ),
            click.option(
                "--memory-limit",
                callback=_byte_count,
                metavar="BYTES",
                help="Memory that each compiler process may use: 4G, 500M.",
            ),
            click.option(
                "--reproducer-dir",
                type=click.Path(path_type=Path),
                help="Folder for the reproducer of a failed compilation.",
            ),
            click.option(
                "--cache/--no-cache",
                default=True,
                help="Reuse earlier compilations (default); see `hloforge cache`.",
            ),
            click.option("--verify/--no-verify", default=True, help="Verify the IR between passes (default)."),
        ),
        function,
    )


def compile_options_of(
    *,
    dynamic_shapes: str = "auto",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    buckets: Mapping[str, str | Sequence[int]] | str | None = None,
    tuning: Path | None = None,
    weights: Path | None = None,
    externalize_weights: Path | None = None,
    host_calls: tuple[str, ...] = (),
    libraries: tuple[Path, ...] = (),
    replicas: int = 1,
    partitions: int = 1,
    fold_replicas: bool = False,
    dump_after: tuple[str, ...] = (),
    dump_to: Path | None = None,
    isolation: str = "process",
    timeout: float | None = None,
    memory_limit: int | None = None,
    reproducer_dir: Path | None = None,
    verify: bool = True,
    cache: bool = True,
) -> CompileOptions:
    """``CompileOptions`` of the command line, with IREE's flags. Raises OptionError."""
    from hloforge.runtime.bucket_sizes import normalized
    from hloforge.runtime.options import CompileOptions

    options = CompileOptions(
        flags=iree_flags(),
        dynamic_shapes=dynamic_shapes,
        shapes=shapes or {},
        buckets=normalized(buckets or {}),
        weights=weights,
        externalize_weights=externalize_weights,
        host_calls=frozenset(host_calls),
        libraries=libraries,
        replicas=replicas,
        partitions=partitions,
        fold_replicas=fold_replicas,
        isolation=isolation,
        timeout=timeout,
        memory_limit=memory_limit,
        reproducer_dir=reproducer_dir,
        verify=verify,
        cache=cache,
        dump_after=dump_names(dump_after),
        dump_to=dump_to,
    )
    if tuning is None:
        return options
    from hloforge.runtime.tuning.tuned_profile import Profile

    return Profile.load(tuning).applied(options)


def dump_names(dumps: tuple[str, ...]) -> frozenset[str]:
    """The passes of ``--dump-after``. Raises OptionError for one that hloforge does not have."""
    if not dumps:
        return frozenset()
    from hloforge.dialect.errors import OptionError
    from hloforge.dialect.suggestions import did_you_mean
    from hloforge.pipelines.catalogue import NATIVE_PASSES, passes_by_name

    known = ("all", *passes_by_name(), *NATIVE_PASSES)
    for name in dumps:
        # Stages of native passes are named by their pipeline text, such as func.func(canonicalize,cse).
        if not any(part in known for part in re.findall(r"[\w-]+", name)):
            hint = did_you_mean(name, known, "hloforge opt --list-passes shows all")
            raise OptionError(f"--dump-after: no pass is called {name!r}", hint=hint)
    return frozenset(dumps)


def read_program(source: str | Any, **options: Any) -> Program:
    """Read a program from a path, ``-`` or a stream; keyword arguments of ``import_options``."""
    from pathlib import PurePath

    from hloforge.importers.reader import read

    # A PurePath, because a string with a brace in it would be read as the text of a program.
    return read(PurePath(source) if isinstance(source, str) and source != "-" else source, **options)
