"""Modules of PyTorch, imported by ``hloforge.torch``; PyTorch runs the modules themselves."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.cases import Array, Case

# Gives a module and the arguments of a call.
Make = Callable[[], tuple[Any, tuple[Any, ...]]]


def of_pytorch(name: str, make: Make) -> Case:
    """A case of a module: its weights, buffers and arguments are the program's parameters."""

    @cache
    def exported() -> Any:
        import torch

        torch.manual_seed(0)
        module, arguments = make()
        with torch.no_grad():
            return torch.export.export(module.eval(), arguments)

    def source() -> str:
        from hloforge.torch import program_of

        return str(program_of(exported()).text())

    def own(_: list[Array]) -> list[Array]:
        from hloforge.torch import to_numpy
        from hloforge.torch.exported import convention_of

        return [to_numpy(each).copy() for each in (*convention_of(exported()).state, *exported().example_inputs[0])]

    @cache
    def module() -> Any:
        return exported().module()

    def eager(_: Any) -> Any:
        return module()(*exported().example_inputs[0])

    return Case(name, "models", source=source, eager=eager, needs=_needs, adapt=own)


def _needs() -> str:
    return "" if importlib.util.find_spec("torch") else "needs torch (the extra `torch`)"


def _unet() -> tuple[Any, tuple[Any, ...]]:
    import torch

    from tests.torch.families import UNet

    return UNet(64), (torch.randn(4, 3, 64, 64),)


def _decoding() -> tuple[Any, tuple[Any, ...]]:
    import torch

    from tests.torch.families import CausalLm

    decoder = CausalLm(words=8000, width=256, heads=8, layers=4, longest=128)
    return decoder, (torch.tensor([[7]]), decoder.cache(1), torch.tensor([100]))


CASES: tuple[Case, ...] = (
    of_pytorch("U-Net block of PyTorch 4×64×64×3", _unet),
    of_pytorch("causal LM of PyTorch, a token with its cache", _decoding),
)
