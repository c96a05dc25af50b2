"""Options that several sub-commands share, and what they become."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from hloforge.dialect.program import Program
    from hloforge.runtime.options import CompileOptions

Function = TypeVar("Function", bound=Callable[..., Any])

FORMS = (
    *("hlo", "hlo-proto", "mlir", "mlir-bytecode", "portable-artifact", "jax-export"),
    *("onnx", "tflite", "tensorflow", "torch-export"),
)
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
    """The options of the current command that are meant for IREE's compiler, in order."""
    flags: tuple[str, ...] = click.get_current_context().meta.get(_FLAGS, ())
    return flags


def _byte_count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes: ``4G``, ``500M``, ``1048576``."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip())
    if match is None or not int(match[1]):
        raise click.BadParameter(f"{value!r} is no size; write 500M or 4G", ctx, param)
    return int(match[1]) * _UNITS[match[2].lower()]


def _limit_size(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Bound what is read until the command ends."""
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
            click.option("--format", type=click.Choice(FORMS), help="Its form; by default the content tells."),
            click.option(
                "--elided",
                type=click.Choice(["refuse", "parameters", "random"]),
                default="refuse",
                show_default=True,
                help="What to do with constant({...}), whose values the text has lost.",
            ),
            click.option(
                "--size-limit",
                callback=_limit_size,
                expose_value=False,
                metavar="BYTES",
                help="Most that a file or stream may have: 4G; by default 2G of a pipe, the memory there is of a file.",
            ),
            click.option("--seed", type=int, default=0, show_default=True, help="Seed of random values."),
            click.option(
                "--drop-unknown-attributes", is_flag=True, help="Read HLO text of a newer XLA without what is unknown."
            ),
        ),
        function,
    )


def judging_options(function: Function) -> Function:
    """What a program's results are judged by, and how it is compiled for that: keyword arguments ``references``,
    ``tolerance``, ``device``, ``plain``, ``without``, ``plugins``.
    """
    return _apply(
        (
            click.option(
                "--reference",
                "references",
                multiple=True,
                type=click.Choice(["xla", "interpreter"]),
                help="Engines; a result is right that agrees with one.  [default: both]",
            ),
            click.option(
                "--tolerance",
                type=click.FloatRange(min=0),
                help="Relative tolerance of floats instead of the table's.",
            ),
            click.option(
                "--device", metavar="NAME", callback=checked_device, help="As of run; by default the target's."
            ),
            click.option("--plain", is_flag=True, help="By IREE's compiler alone, without hloforge's passes."),
            click.option("--without", multiple=True, metavar="PASS", help="Leave a pass out."),
            click.option(
                "--plugin",
                "plugins",
                multiple=True,
                type=click.Path(path_type=Path),
                help="Python file to run first.",
            ),
        ),
        function,
    )


def signature_option(function: Function) -> Function:
    """Which function of a SavedModel: keyword argument ``signature``, as ``signature_of`` takes it."""
    return click.option(
        "--signature", metavar="NAME", help="Of a SavedModel; by default serving_default, or the only one."
    )(function)


def reading_options(function: Function) -> Function:
    """How to read a program: keyword argument ``reading``, which ``read_program`` takes as its keyword arguments."""

    @functools.wraps(function)
    def gathered(*, signature: str | None, **given: Any) -> Any:
        reading = {name: given.pop(name) for name in _READING}
        return function(reading=reading | signature_of(signature), **given)

    return cast(Function, import_options(signature_option(gathered)))


def signature_of(name: str | None) -> dict[str, Any]:
    """A signature as a keyword argument of ``read_program``; none where the user named none."""
    return {} if name is None else {"signature": name}


def target_option(function: Function) -> Function:
    """What to compile for: keyword argument ``target``."""
    return click.option(
        "--target",
        default="cpu",
        show_default=True,
        help="cpu[:PROCESSOR], vulkan[:GPU], cuda[:sm_90], rocm[:gfx1100] or metal; several, separated by commas.",
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
                help="One module for all sizes of a dynamic shape, or one for each; auto: one, if that works.",
            ),
            click.option(
                "--shape",
                "shapes",
                multiple=True,
                callback=_named_sizes,
                metavar="NAME=8x4",
                help="Sizes of an argument of dynamic shape.",
            ),
            click.option(
                "--profile",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Flags, passes and device that hloforge tune found.",
            ),
            click.option(
                "--weights",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Take parameters from a .safetensors or .irpa file, by their names.",
            ),
            click.option(
                "--externalize-weights",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Write large constants to such a file instead of the vmfb.",
            ),
            click.option(
                "--host-call",
                "host_calls",
                multiple=True,
                metavar="NAME",
                help="A function of the host that the program may call, though it is not here.",
            ),
            click.option(
                "--library",
                "libraries",
                multiple=True,
                type=click.Path(path_type=Path),
                metavar="FILE[:NAMES]",
                help="A shared library whose own functions the program may call; FILE:f,g for these alone.",
            ),
            click.option("--replicas", type=click.IntRange(min=1), default=1, help="How many replicas run at once."),
            click.option("--partitions", type=click.IntRange(min=1), default=1, help="Partitions of each replica."),
            click.option(
                "--fold-replicas",
                is_flag=True,
                help="Make one program of those of all devices.",
            ),
            click.option("--dump-after", multiple=True, metavar="PASS", help="Write the IR after a pass, or all."),
            click.option("--dump-to", type=click.Path(path_type=Path), help="Folder for these dumps; else stderr."),
            click.option(
                "--isolation",
                type=click.Choice(["process", "none"]),
                default="process",
                show_default=True,
                help="Where IREE's compiler runs.",
            ),
            click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for all of it."),
            click.option("--memory-limit", callback=_byte_count, metavar="BYTES", help="Of each process: 4G, 500M."),
            click.option("--reproducer-dir", type=click.Path(path_type=Path), help="Where a failure leaves its input."),
            click.option(
                "--cache/--no-cache",
                default=True,
                help="Reuse what was compiled before (default); see `hloforge cache`.",
            ),
            click.option("--verify/--no-verify", default=True, help="Check the IR between passes (default)."),
        ),
        function,
    )


def compile_options_of(
    *,
    dynamic_shapes: str = "auto",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    profile: Path | None = None,
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
    """``CompileOptions`` of the command line, IREE's flags included. Raises OptionError."""
    from hloforge.runtime.options import CompileOptions
    from hloforge.runtime.tuning.tuned_profile import Profile

    options = CompileOptions(
        flags=iree_flags(),
        dynamic_shapes=dynamic_shapes,
        shapes=shapes or {},
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
    return options if profile is None else Profile.load(profile).applied(options)


def dump_names(dumps: tuple[str, ...]) -> frozenset[str]:
    """The passes of ``--dump-after``. Raises OptionError for one that hloforge does not have."""
    from hloforge.dialect.errors import OptionError
    from hloforge.pipelines.catalogue import NATIVE_PASSES, passes_by_name

    known = ("all", *passes_by_name(), *NATIVE_PASSES)
    for name in dumps:
        # Stages of native passes are named by their pipeline text, such as func.func(canonicalize,cse).
        if not any(part in known for part in re.findall(r"[\w-]+", name)):
            raise OptionError(f"--dump-after: no pass is called {name!r}", hint="hloforge opt --list-passes shows all")
    return frozenset(dumps)


def read_program(source: str | Any, **options: Any) -> Program:
    """Read a program from a path, ``-`` or a stream; keyword arguments of ``import_options``."""
    from pathlib import PurePath

    from hloforge.importers.reader import read

    # A path, also where its name has a brace in it, which would make a string a program's text.
    return read(PurePath(source) if isinstance(source, str) and source != "-" else source, **options)
