"""Files of this release, for later ones to read: ``python -m tests.golden.add_release``.

A folder of an earlier release is never written again: whoever changes what hloforge writes, raises the version.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from safetensors.numpy import save_file

import hloforge
from hloforge.dialect.mlir import stablehlo
from hloforge.runtime.artifact import code_signing, weights
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.tuning.tuned_profile import Profile
from hloforge.tools.forms import portable_artifact, translate
from tests.golden.sample import TEXT, WEIGHTS
from tests.robustness.samples import HLO

HOME = Path(__file__).parent
# Code for any processor of this architecture, so that every machine of it can run the vmfb.
TARGET = "cpu:x86-64"


def write(folder: Path) -> None:
    """Write one file of each kind."""
    program = hloforge.read(TEXT, name="sample")
    made = {
        "sample.mlir": TEXT.encode(),
        "sample.hlo": translate(program, "hlo"),
        "sample.pb": translate(program, "hlo-proto"),
        "layouts.hlo": HLO.encode(),
    }
    for version in ("0.9.0", "1.0.0", stablehlo.get_current_version()):
        made[f"stablehlo-{version}.mlirbc"] = portable_artifact(program.clone(), version)
    # Locations in an export name the file that traced it, without the folder where this machine has it.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) @ x))(jax.ShapeDtypeStruct((3, 3), jnp.float32))
    made["sine.jax"] = bytes(exported.serialize())
    executable = hloforge.compile(program, TARGET, cache=False)
    made["sample.vmfb"] = executable.vmfb
    made["sample.json"] = executable.manifest.to_json().encode()
    layouts = hloforge.read(HLO)
    made["layouts.json"] = (
        Manifest(layouts.name, layouts.signature, TARGET, ("--iree-opt-level=O2",)).to_json().encode()
    )
    for name, data in made.items():
        (folder / name).write_bytes(data)
    Profile(("--iree-opt-level=O2",), "local-task", 2).save(folder / "profile.json")
    save_file({name: np.ascontiguousarray(array) for name, array in WEIGHTS.items()}, folder / "weights.safetensors")
    weights.write(folder / "weights.irpa", ".irpa", WEIGHTS)
    _sign(folder)


def _sign(folder: Path) -> None:
    """Sign the vmfb with a key that nobody keeps."""
    key = ed25519.Ed25519PrivateKey.generate()
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    code_signing.sign_file(folder / "sample.vmfb", private)
    public = key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "key.pub").write_bytes(public)


def main() -> None:
    folder = HOME / hloforge.__version__
    if folder.exists():
        sys.exit(f"{folder} is there: files of a release are not written again")
    folder.mkdir()
    write(folder)


if __name__ == "__main__":
    main()
