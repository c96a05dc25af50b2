"""``hloforge.torch.compile``: a module as a callable with the same signature that runs on hloforge."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from hloforge import api
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.specialize import SpecializingExecutable
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.devices import devices
from hloforge.runtime.session.arrays import Codec
from hloforge.runtime.session.session import Session
from hloforge.torch.bounded.questions import answered
from hloforge.torch.exported import Convention, Result, convention_of, leaves_of, names_of, prepared
from hloforge.torch.host_operators import PREFIX
from hloforge.torch.importer import SEED, program_of
from hloforge.torch.memory import Argument, Range, Result as Shown, detach
from hloforge.torch.recurrent import RecurrentKept
from hloforge.torch.types import to_numpy, to_torch, torch_dtype_of


def compile(
    module: torch.nn.Module | ExportedProgram,
    example_args: tuple[Any, ...] = (),
    example_kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: Target | str = "cpu",
    strict: bool = False,
    assume_nonempty: bool = False,
    **options: Any,
) -> Compiled:
    """Compile a module of PyTorch, as it is (``train()`` or ``eval()``), without gradients.

    Args:
        module: what ``torch.export`` takes, or an exported program (then the arguments below are not used).
        example_args, example_kwargs: arguments of a call.
        dynamic_shapes, strict: as of ``torch.export.export``: sizes that differ from call to call.
        assume_nonempty: whether questions that the module's Python asks of sizes that depend on elements, such as
            ``if boxes.numel() == 0``, are answered as for many elements; ``Compiled.assumed`` lists them. Without it
            ``torch.export`` refuses them.
        target, options: as of ``hloforge.compile``.

    Returns:
        what is called like the module, and shares its parameters and buffers.

    Raises:
        UnsupportedError: operators that are not imported, each named with its lines.
        Errors of ``torch.export``, and as of ``hloforge.compile``.
    """
    state: dict[str, torch.Tensor] = {}
    with answered(assume_nonempty) as assumed:
        if isinstance(module, ExportedProgram):
            exported = module
        else:
            with RecurrentKept() if dynamic_shapes is not None else nullcontext():
                exported = torch.export.export(
                    module, example_args, example_kwargs, dynamic_shapes=dynamic_shapes, strict=strict
                )
            state = dict(module.named_parameters(remove_duplicate=False))
            state |= dict(module.named_buffers(remove_duplicate=False))
        exported = prepared(exported)
    title = type(module).__name__
    program = program_of(exported.graph_module, names=names_of(exported), name=title)
    executable = api.compile(program, target, **options)
    return Compiled(executable, convention_of(exported, state), assumed)


class Compiled:
    """A compiled module.

    A call returns new tensors, without gradients, and updates the module's buffers in place, such as the running
    statistics of a BatchNorm in training. Random numbers follow ``torch.manual_seed``: each call draws a seed from
    PyTorch's generator.

    Attributes:
        executable: the vmfb and its manifest.
        session: the loaded program, a function of flat numpy arrays.
        assumed: what was assumed of sizes that depend on elements (``assume_nonempty``).
    """

    def __init__(self, executable: Executable, convention: Convention, assumed: Sequence[str] = ()) -> None:
        self.executable = executable
        self.assumed = tuple(assumed)
        self.session: Session = executable.load()
        self._convention = convention
        names = [parameter.name for parameter in self.session.signature.parameters]
        self._seeded = bool(names) and names[-1] == SEED
        # Weights that are in a file (``weights=``) are none of the program's parameters.
        named = zip(convention.names, convention.state, strict=True)
        self._state = [tensor for name, tensor in named if name in names]
        is_open = any(not shape.is_static for shape in self.session.signature.flat_results)
        self._border = None if is_open or isinstance(executable, SpecializingExecutable) else _Border(self.session)

    @property
    def host_operators(self) -> tuple[str, ...]:
        """Operators of libraries that PyTorch computes while the program runs, with their arguments; sorted."""
        calls = self.session.manifest.host_calls
        return tuple(sorted(call.target.removeprefix(PREFIX) for call in calls if call.target.startswith(PREFIX)))

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
        for number, value in convention.constants.items():
            if leaves[number] != value:
                raise ArgumentError(f"argument {number} is {leaves[number]!r}", hint=f"it was compiled for {value!r}")
        given = [leaf for number, leaf in enumerate(leaves) if number not in convention.constants]
        results = self._results([*self._state, *given])
        with torch.no_grad():
            for (kind, number), result in zip(convention.updates, results, strict=False):
                changed = convention.state[number] if kind == "state" else leaves[number]
                changed.copy_(result)
        # As ``backward()`` does.
        for (kind, number), gradient in zip(reversed(convention.gradients), reversed(results), strict=False):
            differentiated = convention.state[number] if kind == "state" else leaves[number]
            old = differentiated.grad
            differentiated.grad = gradient if old is None else old + gradient
        returned = [_returned(output, results) for output in convention.outputs]
        return pytree.tree_unflatten(returned, convention.out_spec)

    def _results(self, given: Sequence[Any]) -> list[torch.Tensor]:
        """The program's results for its arguments, tensors and numbers."""
        arguments = [*given, torch.tensor(draw_seed())] if self._seeded else given
        if self._border is not None:
            return self._border.call([torch.as_tensor(argument) for argument in arguments])
        found = self.session(*(to_numpy(torch.as_tensor(argument)) for argument in arguments))
        return [to_torch(array) for array in (found if isinstance(found, tuple) else (found,))]


def _returned(output: Any, results: Sequence[torch.Tensor]) -> Any:
    """A leaf of what the module returns: a tensor, a number or a constant."""
    if not isinstance(output, Result):
        return output
    found = results[output.number]
    return found.item() if output.is_number else found


class _Border:
    """Calls of a session of fixed sizes with tensors, whose memory crosses without copies where it is aligned."""

    def __init__(self, session: Session) -> None:
        device = devices.device("local-sync")
        self._session = session
        self._arguments = [Argument(_like(codec), codec, device) for codec in session.parameters]
        self._results = [
            Shown(codec, tuple(range(codec.shape.rank)), torch_dtype_of(codec.dtype), device)
            for codec in session.results
        ]

    def call(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, in memory of their own. Raises ArgumentError, ExecutionError."""
        if len(tensors) != len(self._arguments):
            raise ArgumentError(f"{len(tensors)} tensors", hint=f"the program takes {len(self._arguments)}")
        borrowed: list[Range] = []
        views = [argument.view(tensor, borrowed) for argument, tensor in zip(self._arguments, tensors, strict=True)]
        found = self._session.call_views(views)
        results = [result.tensor(view) for result, view in zip(self._results, found, strict=True)]
        detach(results, self._results, borrowed)
        return results


def _like(codec: Codec) -> torch.Tensor:
    """A tensor of a parameter's sizes and type."""
    return torch.empty(codec.shape.dimensions, dtype=torch_dtype_of(codec.dtype))


def draw_seed() -> int:
    """A number from PyTorch's generator, from which a call draws its random numbers."""
    return int(torch.randint(-(2**63), 2**63 - 1, (), dtype=torch.int64))
