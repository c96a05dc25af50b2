"""Files that releases of hloforge wrote are read by this one, and mean what they meant."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.dialect.mlir import stablehlo
from hloforge.runtime.artifact import weights
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.tuning.tuned_profile import Profile
from hloforge.tools.forms import portable_artifact
from tests.engines import shared_reference
from tests.golden.sample import TEXT, WEIGHTS, X, truth

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "sample.json").exists())
# StableHLO's versions since the oldest one that this jaxlib writes; of some there were patches, which changed nothing.
MINORS = {0: range(9, 21), 1: range(100)}

releases = pytest.mark.parametrize("folder", RELEASES, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def xla() -> ReferenceEngine:
    return shared_reference("xla")


def check(program: hloforge.Program, engine: ReferenceEngine) -> None:
    """The program computes what it should, by another engine."""
    for n in (0, 3):
        for found, wanted in zip(engine.prepare(program)(X, np.int32(n)), truth(X, n), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_this_release_has_its_files() -> None:
    assert hloforge.__version__ in [folder.name for folder in RELEASES]
    size = sum(path.stat().st_size for folder in RELEASES for path in folder.iterdir())
    assert size < 200_000


@releases
@pytest.mark.parametrize("pattern", ["sample.mlir", "sample.hlo", "sample.pb", "stablehlo-*.mlirbc"])
def test_programs(folder: Path, pattern: str, xla: ReferenceEngine) -> None:
    paths = list(folder.glob(pattern))
    assert paths
    for path in paths:
        check(hloforge.read(path), xla)


@releases
def test_an_export_of_jax(folder: Path, xla: ReferenceEngine) -> None:
    x = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    found = xla.prepare(hloforge.read(folder / "sine.jax"))(x)
    np.testing.assert_allclose(found, np.sin(x) @ x, rtol=1e-5, atol=1e-6)


@releases
def test_manifests(folder: Path) -> None:
    manifest = Manifest.from_json((folder / "sample.json").read_text())
    assert str(manifest.signature) == "(arg0: f32[2,3], arg1: s32[]) -> (f32[2,3], f32[2], f32[3,2])"
    assert dict(manifest.versions)["hloforge"] == folder.name
    layouts = Manifest.from_json((folder / "layouts.json").read_text())
    assert layouts.signature == hloforge.read(folder / "layouts.hlo").signature


@releases
def test_a_vmfb_runs_or_says_which_iree_it_needs(folder: Path) -> None:
    made = dict(Manifest.from_json((folder / "sample.json").read_text()).versions)["iree-base-compiler"]
    load = {"public_keys": folder / "key.pub"}
    if made != version("iree-base-runtime"):
        try:
            hloforge.load(folder / "sample.vmfb", **load)
        except hloforge.LoadError as error:
            assert "another version of IREE" in error.message
            assert "compile again" in error.hint
            return
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("its code is for x86-64")
    session = hloforge.load(folder / "sample.vmfb", **load)
    for n in (0, 3):
        for found, wanted in zip(session(X, np.int32(n)), truth(X, n), strict=True):
            np.testing.assert_array_equal(found, wanted)


@releases
def test_profiles_and_weights(folder: Path) -> None:
    assert Profile.load(folder / "profile.json") == Profile(("--iree-opt-level=O2",), "local-task", 2)
    assert weights.described(folder / "weights.safetensors") == {"kernel": ("F32", (3, 4)), "bias": ("I8", (2,))}
    found = dict(weights._opened(folder / "weights.irpa").items())
    for name, array in WEIGHTS.items():
        assert bytes(found[name].file_view) == array.tobytes()


def versions() -> list[str]:
    """StableHLO's minor versions that this jaxlib writes for."""
    newest = tuple(map(int, stablehlo.get_current_version().split(".")))
    oldest = tuple(map(int, stablehlo.get_minimum_version().split(".")))
    named = [(major, minor, 0) for major, minors in MINORS.items() for minor in minors]
    return [".".join(map(str, each)) for each in named if oldest <= each <= newest]


def test_artifacts_for_every_supported_version_of_stablehlo(xla: ReferenceEngine) -> None:
    """What another jaxlib wrote for a version is what this one writes for it: StableHLO's promise of five years."""
    program = hloforge.read(TEXT)
    wanted = program.text()
    assert len(versions()) > 20
    for each in versions():
        artifact = portable_artifact(program.clone(), each)
        assert artifact[5:].startswith(f"StableHLO_v{each}\0".encode())
        found = hloforge.read(artifact)
        assert found.text() == wanted, each
    check(hloforge.read(portable_artifact(program.clone(), versions()[0])), xla)


def test_a_manifest_of_a_newer_format_is_named() -> None:
    fields = json.loads((RELEASES[0] / "sample.json").read_text()) | {"format": 1000}
    with pytest.raises(hloforge.LoadError, match="made by a newer hloforge") as caught:
        Manifest.from_json(json.dumps(fields))
    assert "upgrade hloforge" in caught.value.hint
