"""``hloforge profile``: measure the time of a program's calls, by operation and source line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloforge.tools import completing
from hloforge.tools.options import (
    CompilerCommand,
    checked_device,
    compile_options_of,
    compiler_options,
    reading_options,
    target_option,
)
from hloforge.tools.progress import progress
from hloforge.tools.streams import STDIO

if TYPE_CHECKING:
    from hloforge.runtime.profiling.result import TimeProfile

_POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command(
    cls=CompilerCommand,
    short_help="Measure the time of a program's calls, by operation.",
    epilog="Inputs have the syntax of hloforge run; by default they are plausible for a program, random for a vmfb.",
)
@click.argument("source", metavar="FILE", type=completing.FILE)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="SPEC",
    type=completing.INPUT,
    help="Value of a parameter, as for hloforge run; in order.",
)
@click.option("--iterations", type=click.IntRange(min=1), help="Calls to measure, instead of --seconds.")
@click.option("--seconds", type=_POSITIVE, default=2.0, show_default=True, help="Seconds to measure, about.")
@click.option(
    "--warmup", type=click.IntRange(min=0), default=3, show_default=True, help="Calls before the measured ones."
)
@click.option(
    "--by",
    type=click.Choice(["location", "op", "dispatch", "scope"]),
    default="location",
    show_default=True,
    help="What the lines of the table are.",
)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Lines of the table.")
@click.option("--peak-gflops", type=_POSITIVE, help="Peak of the device, in 10^9 operations per second; else measured.")
@click.option("--peak-bandwidth", type=_POSITIVE, help="Peak of its memory, in 10^9 bytes per second; else measured.")
@click.option("--roofline/--no-roofline", default=True, help="Compare with the device's peaks (default).")
@click.option(
    "--device",
    metavar="NAME",
    type=completing.DEVICE,
    callback=checked_device,
    help="local-sync, local-task, vulkan, cuda or vulkan://GPU-…  [default: by target and program size]",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of local-task.  [default: one per core]")
@click.option("--deadline", type=_POSITIVE, help="Seconds that the measured calls may take together.")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write all numbers as JSON; - for standard output.",
)
@click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write the calls as trace events (Perfetto, chrome://tracing).",
)
@click.option(
    "--flame",
    "flame_file",
    metavar="FILE",
    type=completing.OUTPUT,
    help="Write folded stacks, for speedscope and flamegraph.pl.",
)
@target_option
@reading_options
@compiler_options
def command(
    source: str,
    inputs: tuple[str, ...],
    iterations: int | None,
    seconds: float,
    warmup: int,
    by: str,
    top: int,
    peak_gflops: float | None,
    peak_bandwidth: float | None,
    roofline: bool,
    device: str | None,
    threads: int | None,
    deadline: float | None,
    json_file: str | None,
    trace_file: str | None,
    flame_file: str | None,
    target: str,
    reading: dict[str, Any],
    **compiler: Any,
) -> None:
    """Run FILE, a program or a vmfb, many times, and show what takes its time: by operation and line of the source,
    with counts of arithmetic and bytes beside what the device can do.

    \b
    Example:
      hloforge profile model.hlo
      hloforge profile model.onnx --by=scope --trace=trace.json --flame=stacks.folded
      hloforge profile model.mlir --device=local-sync --json=profile.json
    """
    from hloforge.runtime.profiling.profiler import Plan
    from hloforge.runtime.profiling.result import Roofline
    from hloforge.tools import profiling
    from hloforge.tools.profile_table import profile_text

    if (peak_gflops is None) != (peak_bandwidth is None):
        raise click.UsageError("--peak-gflops and --peak-bandwidth belong together")
    given = Roofline(peak_gflops, peak_bandwidth, "given") if peak_gflops and peak_bandwidth else None
    plan = Plan(iterations, seconds, warmup, given, roofline, deadline)
    loading = {"device": device, "threads": threads, **({"deadline": deadline} if deadline else {})}
    with progress("profiling") as say:
        found = profiling.profile(source, target, compile_options_of(**compiler), reading, inputs, plan, loading, say)
    files = _files(found, json_file, trace_file, flame_file)
    if STDIO not in files:
        click.echo(profile_text(found, by, top), nl=False)


def _files(found: TimeProfile, json_file: str | None, trace_file: str | None, flame_file: str | None) -> set[str]:
    """Write what was asked for; returns where."""
    import json

    from hloforge.runtime.profiling.trace import folded_stacks, trace_events
    from hloforge.tools.streams import write_text

    if json_file is not None:
        write_text(json_file, json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    if trace_file is not None:
        write_text(trace_file, json.dumps(trace_events(found)))
    if flame_file is not None:
        write_text(flame_file, folded_stacks(found))
    return {file for file in (json_file, trace_file, flame_file) if file is not None}
