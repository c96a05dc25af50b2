"""``hloforge.torch.compile``: a module to what is called like it, and runs on hloforge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from hloforge import api
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.executable import Executable
from hloforge.runtime.session import Session
from hloforge.runtime.targets import Target
from hloforge.torch.exported import Convention, Result, convention_of, leaves_of, names_of, prepared
from hloforge.torch.importer import SEED, program_of
from hloforge.torch.types import to_numpy, to_torch


def compile(
    module: torch.nn.Module | ExportedProgram,
    example_args: tuple[Any, ...] = (),
    example_kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: Target | str = "cpu",
    strict: bool = False,
    **options: Any,
) -> Compiled:
    """Compile a module of PyTorch, as it is (``train()`` or ``eval()``), without gradients.

    Args:
        module: what ``torch.export`` takes, or an exported program (then the arguments below are not used).
        example_args, example_kwargs: arguments of a call.
        dynamic_shapes, strict: as of ``torch.export.export``: sizes that differ from call to call.
        target, options: as of ``hloforge.compile``.

    Returns:
        what is called like the module, and shares its parameters and buffers.

    Raises:
        UnsupportedError: operators that are not imported, each named with its lines.
        Errors of ``torch.export``, and as of ``hloforge.compile``.
    """
    state: dict[str, torch.Tensor] = {}
    if isinstance(module, ExportedProgram):
        exported = module
    else:
        exported = torch.export.export(
            module, example_args, example_kwargs, dynamic_shapes=dynamic_shapes, strict=strict
        )
        state = dict(module.named_parameters(remove_duplicate=False))
        state |= dict(module.named_buffers(remove_duplicate=False))
    exported = prepared(exported)
    title = type(module).__name__
    program = program_of(exported.graph_module, names=names_of(exported), name=title)
    executable = api.compile(program, target, **options)
    return Compiled(executable, convention_of(exported, state))


class Compiled:
    """A compiled module.

    A call returns new tensors, without gradients, and updates the module's buffers in place, such as the running
    statistics of a BatchNorm in training. Random numbers follow ``torch.manual_seed``: each call draws a seed from
    PyTorch's generator.

    Attributes:
        executable: the vmfb and its manifest.
        session: the loaded program, a function of flat numpy arrays.
    """

    def __init__(self, executable: Executable, convention: Convention) -> None:
        self.executable = executable
        self.session: Session = executable.load()
        self._convention = convention
        names = [parameter.name for parameter in self.session.signature.parameters]
        self._seeded = bool(names) and names[-1] == SEED

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program.

        Raises:
            ArgumentError: other arguments than it was compiled for.
            ExecutionError: the program failed.
        """
        convention = self._convention
        try:
            leaves = leaves_of(convention, arguments, named)
        except ValueError as error:
            raise ArgumentError(
                f"the arguments have the structure {error}", hint=f"expected: {convention.in_spec}"
            ) from None
        flat = [*(to_numpy(tensor) for tensor in convention.state), *map(_argument, leaves)]
        if self._seeded:
            flat.append(np.array(draw_seed(), np.int64))
        results = self._results(flat)
        with torch.no_grad():
            for (kind, number), result in zip(convention.updates, results, strict=False):
                changed = convention.state[number] if kind == "state" else leaves[number]
                changed.copy_(result)
        returned = [results[output.number] if isinstance(output, Result) else output for output in convention.outputs]
        return pytree.tree_unflatten(returned, convention.out_spec)

    def _results(self, flat: Sequence[Any]) -> list[torch.Tensor]:
        found = self.session(*flat)
        return [to_torch(array) for array in (found if isinstance(found, tuple) else (found,))]


def draw_seed() -> int:
    """A number from PyTorch's generator, from which a call draws its random numbers."""
    return int(torch.randint(-(2**63), 2**63 - 1, (), dtype=torch.int64))


def _argument(leaf: Any) -> Any:
    return to_numpy(leaf) if isinstance(leaf, torch.Tensor) else np.asarray(leaf)
