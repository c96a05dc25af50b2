"""Optimized HLO that XLA's developers measure themselves, where a copy lies beside the repository."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cases import Case

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "hlo" / "benchmarks"


def dump(name: str) -> Case:
    path = FOLDER / f"{name}.hlo"
    return Case(
        name, "dumps", source=lambda: path, needs=lambda: "" if path.is_file() else "the dump is not on this machine"
    )


CASES: tuple[Case, ...] = tuple(
    dump(name)
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
