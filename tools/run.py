"""``hloforge run``: run a vmfb or a program on given or random inputs, and check its results on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hloforge.importers.source import NamedBytes
from hloforge.tools import completing
from hloforge.tools.options import (
    CompilerCommand,
    checked_device,
    compile_options_of,
    compiler_options,
    read_program,
    reading_options,
    target_option,
)
from hloforge.tools.streams import is_vmfb, open_source

if TYPE_CHECKING:
    from hloforge.dialect.program import Program
    from hloforge.runtime.replicas.mpi import Rank
    from hloforge.runtime.replicas.replicas import Replicas
    from hloforge.runtime.session.session import Session


def _numbered(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Specifications with the number of a channel: ``7=2xf32=1 2``."""
    pairs = [value.partition("=") for value in values]
    for value, (number, equals, _) in zip(values, pairs, strict=True):
        if not equals or not number.strip().isdecimal():
            raise click.BadParameter(f"{value!r} names no channel; write 7=2xf32=1 2", ctx, param)
    return tuple((int(number), spec) for number, _, spec in pairs)


@click.command(
    cls=CompilerCommand,
    short_help="Run a vmfb or a program, and check its results.",
    epilog="A SPEC is 2x3xf32=1 2 3 4 5 6, f32[2,3]=@x.npy, @x.npy, @x.npz:name, random[:SEED], zeros or iota. A "
    "single random, zeros or iota applies to every parameter, and so do fewer @x.npz than parameters, by name. "
    "With --reference, the default is random.",
)
@click.argument("source", metavar="FILE", type=completing.FILE)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="SPEC",
    type=completing.INPUT,
    help="Value of a parameter; one per parameter, in order.",
)
@click.option("--infeed", multiple=True, metavar="SPEC", help="Value of an infeed item; one per item, in order.")
@click.option(
    "--channel",
    "channels",
    multiple=True,
    callback=_numbered,
    metavar="N=SPEC",
    help="Array that the program receives on channel N; one per array, in order.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=completing.RESULT,
    metavar="@FILE.npy|-",
    help="Destination of a result; one per result, in order, then outfeed items and channels. A single @FILE.npz "
    "takes all, by name.",
)
@click.option(
    "--expected-output",
    "expected",
    multiple=True,
    metavar="SPEC",
    help="Expected value of a result; one per result, in order.",
)
@click.option(
    "--reference", type=click.Choice(["xla", "interpreter"]), help="Compare the results with those of this engine."
)
@click.option(
    "--tolerance", type=click.FloatRange(min=0), help="Relative tolerance of floats, instead of the type's default."
)
@click.option(
    "--device",
    metavar="NAME",
    type=completing.DEVICE,
    callback=checked_device,
    help="local-sync, local-task, vulkan, cuda or vulkan://GPU-…  [default: by target and program size]",
)
@click.option("--function", metavar="NAME", help="Function of a vmfb that has several.  [default: its first one]")
@click.option("--deadline", type=click.FloatRange(min=0, min_open=True), help="Seconds that a call may take.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of local-task.  [default: one per core]")
@click.option("--repeat", type=click.IntRange(min=1), help="Number of calls that --time measures.  [default: 20]")
@click.option("--expect-sha256", metavar="HEX", help="Run a vmfb only if its SHA-256 digest is HEX.")
@click.option(
    "--require-signature",
    "public_keys",
    multiple=True,
    metavar="KEY.pub",
    help="Run a vmfb only if FILE.sig is its signature by one of these keys.",
)
@click.option("--mpi", is_flag=True, help="Run as one of the processes that mpiexec started, one per device.")
@click.option("--time", "timed", is_flag=True, help="Print the latency of a call on standard error.")
@target_option
@reading_options
@compiler_options
def command(
    source: str,
    inputs: tuple[str, ...],
    infeed: tuple[str, ...],
    channels: tuple[tuple[int, str], ...],
    outputs: tuple[str, ...],
    expected: tuple[str, ...],
    reference: str | None,
    tolerance: float | None,
    device: str | None,
    function: str | None,
    deadline: float | None,
    threads: int | None,
    repeat: int | None,
    expect_sha256: str | None,
    public_keys: tuple[str, ...],
    mpi: bool,
    timed: bool,
    target: str,
    reading: dict[str, Any],
    **compiler: Any,
) -> None:
    """Run FILE, a vmfb or a program that is compiled first, and print its results.

    Exit status 1 if a result is not the expected one.

    \b
    Example:
      hloforge run model.vmfb --input=2x3xf32=@x.npy --output=@y.npy
      hloforge run model.hlo --reference=xla
      hloforge run model.hlo --infeed=3xf32=@x.npy --infeed=random --channel=7=zeros
      hloforge run model.hlo --replicas=2 --input=2x8xf32=@x.npy
      mpiexec -n 2 hloforge run model.hlo --mpi --input=2x8xf32=@x.npy
    """
    # A vmfb runs without anything that compiles.
    from hloforge.tools import calling, checking, feeding

    options = compile_options_of(**compiler)
    if mpi:
        from hloforge.runtime.replicas.mpi import with_all_processes

        options = with_all_processes(options)
    loading: dict[str, Any] = {"device": device, "threads": threads, "mpi": mpi}
    loading |= {name: value for name, value in (("deadline", deadline), ("function", function)) if value}
    session, read = _load(source, target, options, loading, reading, (expect_sha256, public_keys or None))
    program = read() if reference or any(spec.strip() == calling.PLAUSIBLE for spec in inputs) else None
    if program:
        program = _as_called(program, options)
    if reference and not inputs:
        inputs = ("random",)
    arguments = calling.arguments(session.signature, inputs, reading["seed"], program)
    fed = feeding.fed(session, infeed, channels, reading["seed"])
    # What comes out of feeds is known afterwards.
    wanted = {} if fed else checking.expected_results(session.signature, expected)
    engine = checking.open_reference(reference, program, feeds=fed is not None) if reference else None
    call = fed or session
    results = call(*arguments)
    given = fed.given() if fed else []
    # The first process of MPI has the results of all.
    first = not getattr(session, "rank", 0)
    if fed:
        fed.report_left()
    if fed and first:
        wanted = checking.expected_results(session.signature, expected, given)
    if timed or repeat:
        calling.report_bucket(session)
        calling.report_latency(call, arguments, repeat or calling.REPEAT)
    if not first:
        return
    leaves = calling.leaves(session.signature, results) + given
    if outputs or not (wanted or engine):
        calling.write_results(session.signature, leaves, outputs)
    if wanted:
        checking.check_expected(dict(leaves), wanted, tolerance)
    if engine and program:
        from hloforge.runtime.reference.correctness import judge

        report = judge(engine, program, arguments, results, tolerance=tolerance)
        checking.conclude(report, f"reference {reference}")


def _as_called(program: Program, options: Any) -> Program:
    """The program for the sizes of the call; of several devices the folded one, because engines run one device."""
    from hloforge.pipelines.replicas.fold import for_grid
    from hloforge.runtime.compile.partition import is_to_cut
    from hloforge.runtime.compile.specialize import for_sizes

    if options.shapes:
        program = for_sizes(program, options.shapes)
    if (options.fold_replicas or options.grid.devices > 1) and not is_to_cut(program, options):
        return for_grid(program, options.grid, folded=True)
    return program


def _load(
    source: str,
    target: str,
    options: Any,
    loading: dict[str, Any],
    reading: dict[str, Any],
    trusted: tuple[str | None, tuple[str, ...] | None],
) -> tuple[Session | Replicas | Rank, Callable[[], Program | None]]:
    """Sessions, and what reads the program, which a vmfb does not hold: few ask for it, and reading takes its time."""
    from hloforge.dialect.errors import OptionError
    from hloforge.runtime.artifact.code_signing import verified
    from hloforge.runtime.replicas.replicas import load_on_grid

    head, stream = open_source(source)
    if is_vmfb(head):
        given = verified(stream if isinstance(stream, str) else stream.getvalue(), *trusted)
        near = {"weights": options.weights, "libraries": options.libraries}
        return load_on_grid(given, options, **near, **loading), lambda: None
    if any(trusted):
        raise OptionError(
            f"{source} is a program: only vmfbs, which are native code, are checked by digest or signature"
        )
    from hloforge.tools.building import build
    from hloforge.tools.progress import Stopwatch

    again = stream if isinstance(stream, str) else NamedBytes(stream.getvalue(), stream.name)
    executable = build(stream, target, options, Stopwatch(), **reading)
    return load_on_grid(executable, options, **loading), lambda: read_program(again, **reading)
