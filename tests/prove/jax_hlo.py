"""Random functions of JAX as XLA has optimized them: HLO text with fusions, layouts and library calls."""

from __future__ import annotations

import jax

import hloforge
from hloforge.dialect.mlir import _hlo
from tests.fuzz.generator import Case
from tests.prove.jax_functions import function_of


def text_of(seed: int) -> str:
    """The optimized HLO of a seed's function, with its constants whole."""
    made = function_of(seed)
    with jax.enable_x64(made.x64):
        # XLA's passes are the same; only LLVM's are left out, whose code nobody runs.
        compiled = made.lowered().compile(compiler_options={"xla_backend_optimization_level": 0})
        module = compiled.runtime_executable().hlo_modules()[0]
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return str(module.to_string(options))


def case_of(seed: int) -> Case:
    """The program of a seed, as a file that hloforge reads."""
    return Case(seed, hloforge.read(text_of(seed), name=f"hlo_{seed}"), function_of(seed).arguments)
