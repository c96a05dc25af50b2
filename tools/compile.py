"""``hloforge compile``: compile a program to a vmfb."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hloforge.tools import completing
from hloforge.tools.options import (
    OWN_TARGET,
    CompilerCommand,
    compile_options_of,
    compiler_options,
    reading_options,
    target_option,
)
from hloforge.tools.progress import Stopwatch
from hloforge.tools.streams import STDIO, check_writable, write_bytes

if TYPE_CHECKING:
    from hloforge.runtime.artifact.executable import Executable


@click.command(
    cls=CompilerCommand,
    short_help="Compile a program to an IREE module.",
    epilog="Options that begin with --iree- are passed to IREE's compiler unchanged (--iree-opt-level=O2).",
)
@click.argument("source", metavar="PROGRAM", type=completing.FILE)
@click.option(
    "-o",
    "--output",
    type=completing.OUTPUT,
    help="File of the vmfb; - for standard output.  [default: PROGRAM's name with .vmfb, in this folder]",
)
@target_option
@reading_options
@compiler_options
@click.option("--timings", is_flag=True, help="Print the time of each step on standard error, and of IREE's phases.")
def command(
    source: str,
    output: str | None,
    target: str,
    reading: dict[str, Any],
    timings: bool,
    **compiler: Any,
) -> None:
    """Compile PROGRAM (HLO text or proto, StableHLO; - for standard input) to an IREE module.

    \b
    Example:
      hloforge compile model.hlo -o model.vmfb
      hloforge compile model.mlir --target=cpu:generic --iree-opt-level=O2 --timings
    """
    if target != OWN_TARGET:
        from hloforge.runtime.compile.assembly import server

        # It gets ready while Python loads what reads and lowers programs. Of this processor's few need it.
        server.prepare()
    from hloforge.tools.building import build

    place = output or _default_output(source)
    check_writable(place)
    options = compile_options_of(**compiler)
    watch = Stopwatch(is_detailed=timings)
    executable = build(source, target, options, watch, **reading)
    if not executable.vmfb:
        with watch.step("buckets"):
            executable = in_one_file(executable)
    with watch.step("write"):
        write_bytes(place, executable.vmfb)
    if timings:
        watch.report()


def in_one_file(executable: Executable) -> Executable:
    """A program that is compiled at its calls as a file of its buckets. Raises OptionError for one without any."""
    from hloforge.runtime.compile.specialize import SpecializingExecutable

    assert isinstance(executable, SpecializingExecutable)
    return executable.in_one_file()


def _default_output(source: str) -> str:
    """The program's name with ``.vmfb``, in the current folder; what came by a pipe leaves by one."""
    return STDIO if source == STDIO else f"{Path(source).stem}.vmfb"
