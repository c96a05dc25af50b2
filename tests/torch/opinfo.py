"""Samples of PyTorch's own operator tests (``op_db``), as graphs, and how far each comes.

``op_db`` has samples of the arguments of each operator; PyTorch itself computes what is expected.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import numpy as np
import torch
from torch import fx
from torch._functorch.aot_autograd import aot_export_module
from torch.utils import _pytree as pytree

from hloforge.dialect.errors import Error
from hloforge.torch import decompositions, to_numpy, to_torch
from hloforge.torch.importer import Graph, graph_of
from tests.expectations import Outcome

# What a sample is made of first: the first of these that the operator takes.
_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
# Operators whose results are numbers that nobody can foretell: only their sizes and types are compared.
_UNFORESEEN = (
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "rand", "randint"),
    *("randint_like", "randn", "randn_like", "rand_like", "uniform", "empty", "empty_like", "empty_strided"),
    *(
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "normal.in_place",
        "normal.number_mean",
        "nn.functional.rrelu",
    ),
    *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout"),
    *("nn.functional.feature_alpha_dropout", "svd_lowrank", "pca_lowrank"),
)


@dataclass(frozen=True)
class Case:
    """One sample of an operator.

    Attributes:
        name: ``operator.variant:dtype:number``.
        function: of the tensors among the sample's arguments.
        tensors: these.
        tolerance: relative and absolute.
    """

    name: str
    operator: str
    function: Any = field(repr=False)
    tensors: tuple[torch.Tensor, ...] = field(repr=False)
    tolerance: tuple[float, float] = (1e-4, 1e-4)


@cache
def operators() -> dict[str, Any]:
    """The operators of the database by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    return {_name(info): info for info in op_db}


def _name(info: Any) -> str:
    name: str = info.name
    return f"{name}.{info.variant_test_name}" if info.variant_test_name else name


def dtypes_of(name: str) -> list[torch.dtype]:
    """The element types of the samples."""
    taken = operators()[name].supported_dtypes("cpu")
    return [dtype for dtype in _DTYPES if dtype in taken][:1]


def cases_of(name: str, count: int, dtypes: Sequence[torch.dtype] = ()) -> Iterator[Case]:
    """Up to ``count`` samples of an operator for each element type, spread over all of them."""
    info = operators()[name]
    for dtype in dtypes or dtypes_of(name):
        torch.manual_seed(0)
        samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), 200))
        step = max(1, len(samples) // count)
        for number in range(0, min(len(samples), step * count), step):
            yield _case(f"{name}:{str(dtype).removeprefix('torch.')}:{number}", name, info, samples[number], dtype)


def _case(title: str, name: str, info: Any, sample: Any, dtype: torch.dtype) -> Case:
    leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor.clone()  # some operators change their argument
        arguments, named = pytree.tree_unflatten(given, spec)
        results = pytree.tree_leaves(sample.output_process_fn_grad(info.op(*arguments, **named)))
        return tuple(result for result in results if isinstance(result, torch.Tensor))

    tolerance = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-7}.get(dtype, 2e-5)
    tensors = tuple(leaves[place].detach().clone() for place in places)
    return Case(title, name, function, tensors, (10 * tolerance, tolerance))


def expected_of(case: Case) -> list[torch.Tensor]:
    """PyTorch's own results that are tensors."""
    torch.manual_seed(0)
    return [result.detach() for result in case.function(*case.tensors)]


def traced(case: Case) -> fx.GraphModule:
    """The graph of a sample: functional ATen, decomposed."""
    graph_module, _ = aot_export_module(
        _Module(case.function), case.tensors, trace_joint=False, decompositions=decompositions()
    )
    return graph_module


class _Module(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


def imported(case: Case) -> Graph:
    """The graph, ready to be run. Raises Error for what is not imported."""
    return graph_of(traced(case))


def run_by_jax(graph: Graph, case: Case) -> list[torch.Tensor]:
    """The results by JAX's CPU client."""
    arguments = [np.ascontiguousarray(to_numpy(tensor)).reshape(tensor.shape) for tensor in case.tensors]
    if graph.is_random:
        arguments.append(np.array(7, np.int64))
    with jax.enable_x64(True):
        results = jax.jit(graph.function({}), keep_unused=True)(*arguments)
        return [to_torch(np.array(result)) for result in results]


def mismatch(case: Case, expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]) -> str:
    """What is wrong with results; nothing if they are right, or nearer to those in f64 than PyTorch's own."""
    if len(expected) != len(actual):
        return f"{len(actual)} results where PyTorch has {len(expected)}"
    for number, (right, result) in enumerate(zip(expected, actual, strict=True)):
        if right.dtype != result.dtype or right.shape != result.shape:
            return f"{result.dtype}{list(result.shape)} where PyTorch has {right.dtype}{list(right.shape)}"
        if case.operator in _UNFORESEEN:
            continue
        try:
            torch.testing.assert_close(
                result, right.contiguous(), rtol=case.tolerance[0], atol=case.tolerance[1], equal_nan=True
            )
        except AssertionError as error:
            if not _is_nearer(case, number, right, result):
                return " ".join(str(error).split())
    return ""


def _is_nearer(case: Case, number: int, right: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether a result is nearer to what PyTorch computes in f64 than its own of a narrower type."""
    if right.dtype not in (torch.float32, torch.float16, torch.bfloat16) or not right.numel():
        return False
    wide = tuple(each.double() if each.dtype.is_floating_point else each for each in case.tensors)
    try:
        truth = expected_of(replace(case, tensors=wide))[number]
    except Exception:  # of any kind: the operator takes no f64
        return False
    if truth.dtype is not torch.float64 or truth.shape != right.shape:
        return False
    ours, theirs = ((each.double() - truth).abs() / truth.abs() for each in (result, right))
    return bool(ours.max() <= theirs.max())  # false where one is NaN


def judge(case: Case) -> Outcome:
    """How far a sample comes when JAX's CPU client runs it."""
    try:
        expected = expected_of(case)
        graph_module = traced(case)
    except Exception as error:
        return Outcome("reference", f"{type(error).__name__}: {error}")
    try:
        actual = run_by_jax(graph_of(graph_module), case)
    except Error as error:
        return Outcome("import", error.message)
    except Exception as error:
        return Outcome("run", f"{type(error).__name__}: {error}")
    message = mismatch(case, expected, actual)
    return Outcome("numerics", message) if message else Outcome()
