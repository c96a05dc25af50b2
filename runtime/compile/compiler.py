"""Programs become vmfbs: by our own code generator, or by IREE's compiler (``by_iree.py``) where that refuses."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace

from hloforge.dialect.program import Program
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.runtime.artifact.bundle import bundled, options_for
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.generated import generated, is_asked
from hloforge.runtime.compile.limited import limited_form, make_executable, within
from hloforge.runtime.compile.partition import partitioned
from hloforge.runtime.compile.specialize import at_sizes, compile_dynamic
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.compile.weight_placement import place_weights
from hloforge.runtime.host.host import with_host_functions
from hloforge.runtime.options import CompileOptions

_BY_IREE = "hloforge.runtime.compile.by_iree"


def compile_program(
    program: Program, target: Target | str | Sequence[Target] = "cpu", options: CompileOptions | None = None
) -> Executable:
    """Lower a copy of the program and compile it; the program itself is left as it was.

    A program of dynamic shapes may be compiled at its calls instead, as ``options.dynamic_shapes`` says. Several
    targets (``parse_targets``) are in one file (``bundle.py``).

    Raises:
        UnsupportedError: an operation that the target cannot compile, at its line in the user's file.
        CompileError: IREE's compiler failed; the message names the reproducer.
        OptionError: a file of weights that is none, or is not the program's.
    """
    options = options or CompileOptions()
    targets = parse_targets(target)
    if len(targets) > 1:
        with within(options):
            return bundled([compile_program(program, one, options_for(one, options)) for one in targets])

    def make(program: Program | None, options: CompileOptions) -> Executable:
        assert program is not None
        return _compile_for(program, targets[0], options)

    return make_executable(make, program, options)


def load_ahead(targets: Sequence[Target], options: CompileOptions) -> None:
    """Load IREE's way if targets surely need it.

    Who limits a compilation calls this before: loading takes none of its time then, and its child, which would load
    all for itself alone, has it from this process.
    """
    if not all(is_asked(target, options) for target in targets):
        importlib.import_module(_BY_IREE)


def _compile_for(program: Program, target: Target, options: CompileOptions) -> Executable:
    program, options = at_sizes(program, options)
    if program.template is not None:
        of_form = replace(options, buckets={})
        return compile_dynamic(program, lambda form: compile_program(form, target, of_form), target, options)
    if options.grid.devices > 1:
        # With the tables of what targets compute, which no other program needs before its passes.
        from hloforge.pipelines.capability.check_needs import check_calls

        # Cutting and folding a program takes longer than its passes.
        check_calls(with_host_functions(program, options).module, target.pipeline)
    program, options = place_weights(partitioned(program, options), options)
    program = for_grid(with_host_functions(program, options), options.grid, folded=options.fold_replicas)

    def compile_form(form: Program) -> Executable:
        if (made := generated(form, target, options)) is not None:
            return made
        # IREE's way is loaded when it is gone: its passes take as long to load as all that our code generator needs.
        from hloforge.runtime.compile.by_iree import compile_by_iree

        return compile_by_iree(form, target, options)

    return compile_dynamic(program, limited_form(compile_form, options), target, options)
