"""Small programs and a way to call the command in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hloforge.tools.main import cli
from tests.tools.command import Call

ADD = """HloModule add
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT z = f32[4] add(x, y)
}
"""

PAIR = """HloModule pair, entry_computation_layout={(f32[2,3]{0,1}, s32[])->(f32[3,2]{1,0}, (s32[]))}
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  n = s32[] parameter(1)
  t = f32[3,2]{1,0} transpose(x), dimensions={1,0}
  one = s32[] constant(1)
  m = s32[] add(n, one)
  u = (s32[]) tuple(m)
  ROOT r = (f32[3,2]{1,0}, (s32[])) tuple(t, u)
}
"""

REFUSED = """HloModule refused
ENTRY e {
  x = f32[4] parameter(0)
  ROOT z = f32[4] custom-call(x), custom_call_target="unheard_of"
}
"""


@pytest.fixture
def call() -> Call:
    """``call("run", path, input=bytes)``: the command in this process; output and errors are apart."""

    def invoke(*arguments: object, input: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=input)

    return invoke


@pytest.fixture
def add(tmp_path: Path) -> Path:
    return _written(tmp_path / "add.hlo", ADD)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return _written(tmp_path / "pair.hlo", PAIR)


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    return _written(tmp_path / "refused.hlo", REFUSED)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture(scope="session")
def add_vmfb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vmfb of ADD, compiled once."""
    folder = tmp_path_factory.mktemp("compiled")
    _written(folder / "add.hlo", ADD)
    result = CliRunner().invoke(cli, ["compile", str(folder / "add.hlo"), "-o", str(folder / "add.vmfb")])
    assert result.exit_code == 0, result.stderr
    return folder / "add.vmfb"
