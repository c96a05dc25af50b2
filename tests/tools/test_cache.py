"""``hloforge cache``: what it counts, and kernels that are compiled before anybody asks for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hloforge
from hloforge.runtime.compile.direct import objects
from hloforge.runtime.compile.generated import generated
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.compile.timings import recorded
from hloforge.runtime.options import CompileOptions
from hloforge.tools import warming
from tests.tools.command import Call

NAMES = ("add", "exp", "sum", "x[i]", "x.at[i].set", "where", "matmul", "astype pred")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone, and a process that knows no kernel."""
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "_STORE", type(objects._STORE)())
    return tmp_path / "cache"


def few() -> list[warming.Common]:
    """Those of some names and of one size."""
    sizes = {"[64,64]", "[10]"}
    return [one for one in warming.jax_eager() if one.name in NAMES and any(size in one.shapes[0] for size in sizes)]


def test_programs_and_kernels_are_counted(call: Call, add: Path, home: Path) -> None:
    assert re.search(r": 0 programs, 0 kernels, 0\.0 of at most \d+ MB\n", call("cache").stdout)
    assert call("compile", add, "-o", home.parent / "a.vmfb").exit_code == 0
    assert ": 1 program, 1 kernel, " in call("cache").stdout
    assert ": 0 programs, 0 kernels, " in call("cache", "--clear").stdout


def test_warm_kernels_are_known_to_programs_of_jax(call: Call, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(warming, "LISTS", {"jax-eager": lambda: iter(few())})
    result = call("cache", "--warm=jax-eager")
    assert result.exit_code == 0, result.stderr
    assert f": 0 programs, {len(list(home.glob('*.kernels')))} kernels, " in result.stdout
    monkeypatch.setattr(objects, "_STORE", type(objects._STORE)())
    x = jax.ShapeDtypeStruct((64, 64), "float32")
    for function, arguments in (
        (jax.numpy.add, (x, x)),
        (jax.numpy.exp, (x,)),
        (lambda x: jax.lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None), (x,)),
    ):
        program = hloforge.as_program(jax.jit(function).lower(*arguments).as_text())
        with recorded() as parts:
            assert generated(program, Target(), CompileOptions()) is not None
        assert "  known kernels (1 of 1)" in parts, parts


def test_every_common_program_can_be_built() -> None:
    programs = list(warming.jax_eager())
    assert len({str(one) for one in programs}) > 1500
    for one in programs[::40]:
        assert one.program().signature.flat_parameters


def test_what_keeps_no_kernels_is_refused(call: Call, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")
    result = call("cache", "--warm=jax-eager")
    assert result.exit_code == 1 and "HLOFORGE_CODEGEN is iree" in result.stderr
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", "")
    result = call("cache", "--warm=jax-eager")
    assert result.exit_code == 1 and "there is no cache" in result.stderr
