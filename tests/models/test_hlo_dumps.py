from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests.expectations import judge, read_expectations
from tests.models.dump_suite import EXPECTATIONS, TIMEOUT, programs
from tests.suite_child import SuiteChild
from tests.support import needs_shared

# Of the small dumps half run in the quick suite, of the large ones these.
_QUICK_BENCHMARKS = {
    "benchmarks/bench_scan_N2000_M3",
    "benchmarks/layer_norm_1x4096x768_bf16",
    "benchmarks/mha_block_1x12x128x64_bf16",
    "benchmarks/xnn.parallel_dots.optimized",
}


# Small files of large programs: 20 seconds and more.
_SLOW = {
    "optimized/xla__backends__gpu__codegen__emitters__tests__transpose__multiple_roots_one_shmem_transpose",
    "optimized/xla__tools__hlo_opt__tests__cpu_hlo",
    "optimized/xla__tools__multihost_hlo_runner__data__fp8_gemm_loop",
}


def _is_quick(name: str) -> bool:
    if name in _SLOW:
        return False
    if name.startswith("optimized/"):
        return zlib.crc32(name.encode()) % 2 == 0
    return name in _QUICK_BENCHMARKS


@pytest.fixture(scope="module")
def child() -> Iterator[SuiteChild]:
    child = SuiteChild("models", TIMEOUT)
    yield child
    child.close()


@pytest.mark.wide(4)
@needs_shared
@pytest.mark.parametrize(
    "name", [pytest.param(name, id=name, marks=[] if _is_quick(name) else [pytest.mark.slow]) for name in programs()]
)
def test_agrees_with_xla(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), read_expectations(EXPECTATIONS))


@needs_shared
def test_every_expectation_names_a_dump() -> None:
    assert read_expectations(EXPECTATIONS).keys() <= programs().keys()
