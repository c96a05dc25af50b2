"""MLIR contexts that small programs leave to later ones."""

from __future__ import annotations

import threading

import pytest

from hloforge.dialect import mlir
from hloforge.dialect.mlir import context_for, ir

TEXT = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n}"
SMALL, LARGE = 100, 1 << 20


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each context that a test makes; no earlier program has left one."""
    numbers: list[int] = []
    make = mlir._made

    def counting() -> ir.Context:
        numbers.append(len(numbers))
        return make()

    monkeypatch.setattr(mlir, "_made", counting)
    monkeypatch.setattr(mlir, "_prepared", [])
    monkeypatch.setattr(mlir, "_kept", type(mlir._kept)(maxlen=mlir._kept.maxlen))
    return numbers


def test_a_context_is_used_again_when_its_program_is_gone(made: list[int]) -> None:
    for _ in range(3):
        module = ir.Module.parse(TEXT, context_for(SMALL))
        del module
    assert len(made) == 1


@pytest.mark.parametrize("what", ["module", "attribute", "type"])
def test_what_lives_in_a_context_keeps_it(what: str, made: list[int]) -> None:
    module = ir.Module.parse(TEXT, context_for(SMALL))
    function = module.body.operations[0]
    held = {
        "module": module,
        "attribute": function.attributes["sym_name"],
        "type": ir.TypeAttr(function.attributes["function_type"]).value,
    }[what]
    del function, module
    context_for(SMALL)
    assert len(made) == 2
    assert "main" in str(held) or "tensor" in str(held)


def test_a_context_is_used_a_limited_number_of_times(made: list[int]) -> None:
    for _ in range(200):
        module = ir.Module.parse(TEXT, context_for(SMALL))
        del module
    assert 3 <= len(made) <= 20


def test_a_large_program_has_its_own(made: list[int]) -> None:
    for size in (SMALL, LARGE, LARGE, SMALL):
        module = ir.Module.parse(TEXT, context_for(size))
        del module
    assert len(made) == 3


def test_threads_never_share_one() -> None:
    barrier, seen = threading.Barrier(8), []

    def take() -> None:
        barrier.wait()
        for _ in range(20):
            module = ir.Module.parse(TEXT, context_for(SMALL))
            # One module alone lives in it.
            seen.append(module.context._get_live_module_count())
            del module

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 160
