"""PyTorch on hloforge: ``hloforge.torch.compile(module, example_args)``.

A module goes through ``torch.export``, ``run_decompositions(decompositions())``, ``program_of`` and
``hloforge.compile``.
``program_of`` also takes the graphs of AOTAutograd::

    graph: torch.fx.GraphModule            # functional ATen, made with decompositions=hloforge.torch.decompositions()
    program = program_of(graph)            # or program_of(graph, example_inputs), program_of(exported_program)
    # parameters: one a placeholder, in order; then "seed" (s64[]) if the graph draws random numbers
    # results: the outputs that are tensors, in order; an output that is None or a number is none
    results = hloforge.compile(program).load()(*map(to_numpy, inputs))  # draw_seed() makes a seed

``to_numpy`` and ``to_torch`` share memory with their arguments. The names are imported when one is first used.

Raises (on import):
    ModuleNotFoundError: PyTorch or JAX is not installed.
    InstallationError: a release of PyTorch that nobody has tested; an ImportError as well.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hloforge.dialect.versions import check_version

for _name in ("torch", "jax"):
    try:
        importlib.import_module(_name)
    except ModuleNotFoundError as error:
        if error.name != _name:
            raise
        message = (
            f"hloforge.torch needs {_name}, which is not installed: "
            "pip install 'hloforge[torch]', in a clone '.[torch]'"
        )
        raise ModuleNotFoundError(message, name=_name) from None

check_version("torch", str(importlib.import_module("torch").__version__))

if TYPE_CHECKING:
    from hloforge.torch.compiled import Compiled, compile, draw_seed
    from hloforge.torch.decompositions import decompositions
    from hloforge.torch.importer import SEED, program_of
    from hloforge.torch.types import to_numpy, to_torch

_HOMES = {
    "SEED": "importer",
    "Compiled": "compiled",
    "compile": "compiled",
    "decompositions": "decompositions",
    "draw_seed": "compiled",
    "program_of": "importer",
    "to_numpy": "types",
    "to_torch": "types",
}

__all__ = [
    "SEED",
    "Compiled",
    "compile",
    "decompositions",
    "draw_seed",
    "program_of",
    "to_numpy",
    "to_torch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hloforge.torch' has no attribute {name!r}")
    # All at once: a module must not stay where the function of its name is meant.
    found = {each: getattr(importlib.import_module(f"hloforge.torch.{home}"), each) for each, home in _HOMES.items()}
    globals().update(found)
    return globals()[name]
