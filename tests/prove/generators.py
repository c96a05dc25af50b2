"""The generators: each makes the program of a seed, and judges it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hloforge.dialect.errors import Error
from tests.fuzz.corpus import keep
from tests.fuzz.examine import AGREES, Examiner, Outcome
from tests.fuzz.generator import Case


@dataclass(frozen=True)
class Generator:
    """A way to write programs.

    Attributes:
        module: has ``case_of(seed)`` for a program that is judged by both reference engines, or ``judge(seed)``, which
            gives what is wrong, for what is more than one call of one program. It is imported when it is needed,
            because frameworks are optional.
        batch: how many programs a child process is asked for.
        together: how many of them are compiled as one.
        on_devices: so many on a GPU, which has a dispatch of its own for each step: many take minutes to compile.
        needs: a package without which there is no such program.
    """

    module: str
    about: str
    batch: int = 96
    together: int = 8
    on_devices: int = 4
    needs: str = ""

    def outcomes(self, seeds: Sequence[int], deadline: float, target: str = "cpu") -> Iterator[Outcome]:
        """What becomes of the programs of seeds; of another target than processors, where engines judge alone."""
        module = importlib.import_module(self.module)
        if hasattr(module, "case_of"):
            together = self.together if target == "cpu" else min(self.together, self.on_devices)
            yield from _by_engines(module.case_of, seeds, together, deadline, target)
            return
        for seed in seeds:
            try:
                wrong = module.judge(seed)
            except Exception as error:
                yield Outcome((seed,), "error", f"{type(error).__name__}: {error}")
            else:
                yield Outcome((seed,), "differs" if wrong else AGREES, wrong)

    def keep(self, folder: Path, outcome: Outcome) -> None:
        """Write the program of a finding, where it is one program."""
        module = importlib.import_module(self.module)
        if hasattr(module, "case_of"):
            keep(folder, outcome, module.case_of)


def _by_engines(
    case_of: Callable[[int], Case], seeds: Sequence[int], together: int, deadline: float, target: str
) -> Iterator[Outcome]:
    with Examiner(target, deadline) as examiner:
        waiting: list[Case] = []
        for seed in seeds:
            try:
                case = case_of(seed)
            except Error as error:
                yield Outcome((seed,), "read", error.message)
                continue
            if case.is_alone:
                yield from examiner.outcomes([case])
                continue
            waiting.append(case)
            if len(waiting) == together:
                yield from examiner.outcomes(waiting)
                waiting = []
        if waiting:
            yield from examiner.outcomes(waiting)


GENERATORS = {
    "builder": Generator("tests.fuzz.generator", "programs of the builder's operations (tests/fuzz)", 192, 16),
    "jax": Generator("tests.prove.jax_functions", "chains of jnp, lax, nn, linalg and random, with control flow"),
    "habits": Generator("tests.prove.jax_habits", "JAX as other people write it, each habit in a few lines", 192, 16),
    "algorithms": Generator("tests.prove.jax_algorithms", "known algorithms and methods as people write them in JAX"),
    "short": Generator("tests.prove.jax_short", "two lines of JAX: a view and an update, of every type", 320, 32),
    "hlo": Generator("tests.prove.jax_hlo", "the same functions as optimized HLO text of XLA"),
    "onnx": Generator(
        "tests.prove.onnx_graphs", "graphs of ONNX operators beside ONNX Runtime", 64, needs="onnxruntime"
    ),
    "onnx-edges": Generator(
        "tests.prove.onnx_edges", "ONNX operators by their attributes, six in a graph", 64, needs="onnxruntime"
    ),
    "views": Generator("tests.prove.views", "sums, products and windows of slices with steps, …", 192, 32, 8),
    "replicas": Generator("tests.prove.replicas", "programs of two and four devices with collectives", 48),
    "torch": Generator(
        "tests.prove.torch_modules", "modules of PyTorch by torch.compile, with gradients", 48, needs="torch"
    ),
    "torch-lines": Generator(
        "tests.prove.torch_lines", "views, updates in place and rare operators of PyTorch", 48, needs="torch"
    ),
    "sizes": Generator("tests.prove.sizes", "functions of arrays of any first size, at five sizes", 48),
    "edges": Generator(
        "tests.prove.edges", "StableHLO text with attributes at the edges of the specification", 192, 16
    ),
    "long": Generator("tests.prove.long_sums", "sums of up to 200,000 terms of every kind, beside XLA and float64", 24),
    "guarded": Generator("tests.prove.guarded", "programs in memory between pages that nobody may touch", 48),
    "calls": Generator("tests.prove.calls", "many calls of one session, from threads, arguments shared or donated", 48),
}
# Those whose programs are judged for any target.
ON_DEVICES = ("builder", "jax", "short", "hlo", "edges", "habits", "algorithms", "views")
