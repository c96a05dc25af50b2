"""How far a model of the zoo comes in each way, beside eager PyTorch in f64.

Ours must be as near to f64 as eager PyTorch in the model's own element type, within a factor.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from tests.torch.zoo.entries import Entry, floats

# As near as eager within this factor, or within so many roundings of the largest number: sums have other orders.
FACTOR, ROUNDINGS = 3.0, 32.0
_EPSILON = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}
_RUN = """
import sys, numpy, hloforge
program = hloforge.load(sys.argv[1])
given = numpy.load(sys.argv[2])
found = program(*(given[str(n)] for n in range(len(given.files))))
found = found if isinstance(found, list | tuple) else [found]
numpy.savez(sys.argv[3], **{str(n): numpy.asarray(each) for n, each in enumerate(found)})
assert "torch" not in sys.modules and "jax" not in sys.modules
"""


def cast(value: Any, dtype: torch.dtype) -> Any:
    """Floats of another type; other tensors stay."""

    def one(leaf: Any) -> Any:
        return leaf.to(dtype) if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point else leaf

    return pytree.tree_map(one, value)


def made(entry: Entry, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, tuple[Any, ...]]:
    """The model in evaluation and its inputs, the same each time."""
    torch.manual_seed(0)
    model = entry.make().eval().to(dtype)
    return model, cast(entry.inputs(), dtype)


def wide(model: nn.Module) -> nn.Module:
    """The same weights in f64."""
    return copy.deepcopy(model).double()


def errors(found: Any, truth: Any) -> list[float]:
    """Of each float, the largest difference by the largest number.

    Gradients that are 0 in f64, such as those of biases before a batch norm, are rounding errors of the others.
    """
    result = []
    every = [float(each.detach().abs().max()) for each in floats(pytree.tree_leaves(truth)) if each.numel()]
    least = 1e-3 * max(every, default=1.0) or 1.0
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(truth), strict=True):
        if not isinstance(one, Tensor) or not one.dtype.is_floating_point or not one.numel():
            continue
        scale = max(float(other.detach().abs().max()), least)
        apart = (one.detach().double() - other.detach().double()).abs().max()
        result.append(float(apart) / scale)
    return result


def mismatch(found: Any, eager: Any, truth: Any, dtype: torch.dtype = torch.float32) -> str:
    """What is wrong with results; nothing if they are as near to f64 as eager's."""
    ours, theirs = pytree.tree_leaves(found), pytree.tree_leaves(eager)
    if len(ours) != len(theirs):
        return f"{len(ours)} results of {len(theirs)}"
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not isinstance(other, Tensor):
            if one != other:
                return f"result {number} is {one}, and {other} in eager mode"
        elif one.dtype != other.dtype or one.shape != other.shape:
            return (
                f"result {number} is {one.dtype}{list(one.shape)}, and {other.dtype}{list(other.shape)} in eager mode"
            )
        elif not other.dtype.is_floating_point and not torch.equal(one, other):
            return f"result {number} differs in {int((one != other).sum())} of {other.numel()} integers"
    floor = ROUNDINGS * _EPSILON[dtype]
    for number, (our, their) in enumerate(zip(errors(found, truth), errors(eager, truth), strict=True)):
        if not our <= max(FACTOR * their, floor):
            return f"float {number} is {our:.1e} from f64, and eager {their:.1e}"
    return ""


def compiled(model: nn.Module, entry: Entry, **options: Any) -> Callable[..., Any]:
    """The model by ``torch.compile``, as one graph if it is one."""
    torch._dynamo.reset()
    return torch.compile(model, backend="hloforge", fullgraph=entry.is_whole, **options)


def inference(entry: Entry, dtype: torch.dtype = torch.float32) -> str:
    model, inputs = made(entry, dtype)
    twin, truth = copy.deepcopy(model), wide(model)
    with torch.no_grad():
        found = compiled(model, entry, dynamic=False)(*inputs)
        return mismatch(found, twin(*inputs), truth(*cast(inputs, torch.float64)), dtype)


def _step(model: nn.Module, run: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Any]:
    """Results of a step of training, its gradients, and the statistics after it."""
    torch.manual_seed(1)
    found = run(*inputs)
    leaves = [each for each in floats(pytree.tree_leaves(found)) if each.requires_grad]
    loss = sum((torch.randn(each.shape).to(each.dtype) * each).sum() for each in leaves)
    assert isinstance(loss, Tensor)
    loss.backward()
    slopes = [p.grad for p in model.parameters() if p.grad is not None]
    return [*pytree.tree_leaves(found), *slopes, *model.buffers()]


def training(entry: Entry) -> str:
    model, inputs = made(entry)
    model.train()
    twin, truth = copy.deepcopy(model), wide(model)
    found = _step(model, compiled(model, entry, dynamic=False), inputs)
    right = _step(truth, truth, cast(inputs, torch.float64))
    return mismatch(found, _step(twin, twin, inputs), right)


def dynamic(entry: Entry) -> str:
    """Three sizes of the first dimension through one graph."""
    model, inputs = made(entry)
    twin, truth = copy.deepcopy(model), wide(model)
    fast = compiled(model, entry, dynamic=True)
    for size in (3, 2, 7):
        given = list(inputs)
        for n in entry.opens:
            rows = torch.arange(size) % len(given[n])
            given[n] = given[n][rows] * (1 if not given[n].dtype.is_floating_point else 0.7)
        with torch.no_grad():
            message = mismatch(fast(*given), twin(*given), truth(*cast(tuple(given), torch.float64)))
        if message:
            return f"size {size}: {message}"
    return ""


def command_line(entry: Entry, dtype: torch.dtype = torch.float32) -> str:
    """Export → ``.pt2`` → ``hloforge compile`` → a process that has neither PyTorch nor JAX."""
    model, inputs = made(entry, dtype)
    truth = wide(model)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        place = Path(folder)
        torch.export.save(torch.export.export(model, inputs), place / "model.pt2")
        command = [sys.executable, "-m", "hloforge", "compile", str(place / "model.pt2"), "-o", str(place / "m.vmfb")]
        _checked(command)
        arrays = {str(n): each.numpy() for n, each in enumerate(inputs)}
        np.savez(place / "given.npz", allow_pickle=False, **arrays)
        _checked([sys.executable, "-c", _RUN, *(str(place / name) for name in ("m.vmfb", "given.npz", "found.npz"))])
        eager = model(*inputs)
        with np.load(place / "found.npz") as found:
            leaves = [torch.from_numpy(np.array(found[str(n)])) for n in range(len(found.files))]
        return mismatch(leaves, eager, truth(*cast(inputs, torch.float64)), dtype)


def _checked(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-800:])
