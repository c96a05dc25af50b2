"""Whole models: HLO dumps beside the repository, measured where they are present."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.named import normalize

DUMPS = Path(__file__).resolve().parents[2] / "shared" / "hlo" / "benchmarks"


@dataclass(frozen=True)
class Model:
    """A dump to measure, by the stem of its file."""

    name: str

    @property
    def path(self) -> Path:
        return DUMPS / f"{self.name}.hlo"

    def missing(self) -> str:
        """Why it cannot be measured; empty if it can."""
        return "" if self.path.is_file() else "the dump is not on this machine"


MODELS: tuple[Model, ...] = tuple(
    Model(name)
    for name in (
        "resnet50_keras_jax_f32",
        "mha_block_1x12x128x64_bf16",
        "layer_norm_1x4096x768_bf16",
        "bench_scan_N2000_M3",
        "bench_mass_matrix_35",
        "dlrm_keras_jax_f32_test_step",
        "dynamic_slice_loop_1x2048x768_bf16",
        "xnn.parallel_dots.optimized",
    )
)


def normalized(source: str | Path) -> Program:
    """The program that every engine gets: pure StableHLO, its lost constants replaced by random ones."""
    program = read(source, elided="random")
    normalize(program.module)
    return program
