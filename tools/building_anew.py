"""Read, lower and compile a program for the command line, with the times of its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hloforge.dialect import budget
from hloforge.dialect.program import Program
from hloforge.importers.source import NamedBytes
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.generated import generated
from hloforge.runtime.compile.limited import limited_form, make_executable
from hloforge.runtime.compile.partition import partitioned
from hloforge.runtime.compile.specialize import at_sizes, compile_dynamic
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.compile.weight_placement import place_weights
from hloforge.runtime.host.host import with_host_functions
from hloforge.runtime.options import CompileOptions
from hloforge.tools.options import read_program
from hloforge.tools.progress import Stopwatch


def build_anew(
    source: NamedBytes, target: Target, options: CompileOptions, watch: Stopwatch, reading: dict[str, Any]
) -> Executable:
    """Read a program and compile it; raises what ``hloforge.compile`` raises.

    Args:
        reading: as of ``read_program``.
    """

    def make(_: Program | None, options: CompileOptions) -> Executable:
        source.seek(0)  # another target may have read it
        budget.enter("reading")
        with watch.step("read"):
            program = read_program(source, **reading)
        return _build_program(program, target, options, watch)

    return make_executable(make, None, options, also=watch.steps)


def _build_program(program: Program, target: Target, options: CompileOptions, watch: Stopwatch) -> Executable:
    """Compile a program that was read; it is left as it was."""
    program, options = at_sizes(program, options)
    if program.template is not None:
        of_form = replace(options, buckets={})
        return compile_dynamic(program, lambda form: _build_program(form, target, of_form, watch), target, options)
    if options.grid.devices > 1:
        # Loaded when it is needed, as in ``runtime/compile/compiler.py``; so is IREE's way below.
        from hloforge.pipelines.capability.check_needs import check_calls

        # Cutting and folding a program takes longer than its passes.
        check_calls(with_host_functions(program, options).module, target.pipeline)
    with watch.step("partition"):
        program = partitioned(program, options)
    program, options = place_weights(program, options)
    program = for_grid(with_host_functions(program, options), options.grid, folded=options.fold_replicas)

    def compile_form(form: Program) -> Executable:
        with watch.parts(), watch.step("code generation"):
            made = generated(form, target, options)
        if made is not None:
            return made
        from hloforge.tools.iree_building import build_by_iree

        return build_by_iree(form, target, options, watch)

    return compile_dynamic(program, limited_form(compile_form, options), target, options)
