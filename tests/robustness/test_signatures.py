"""Vmfbs that are loaded only if they are the pinned ones, or signed by somebody who is trusted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import hloforge
from hloforge.runtime.artifact import code_signing
from hloforge.runtime.compile import cache
from hloforge.runtime.session import modules, session
from hloforge.tools.main import cli

X = np.ones(4, np.float32)
TEXT = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] add(x, x) }"
OTHER = TEXT.replace("add", "subtract")


def call(*arguments: object, input: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=input)


def write_keys(folder: Path, name: str) -> tuple[Path, Path]:
    private = ed25519.Ed25519PrivateKey.generate()
    paths = folder / f"{name}.pem", folder / f"{name}.pub"
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[0].write_bytes(private.private_bytes(serialization.Encoding.PEM, *form))
    form_public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    paths[1].write_bytes(private.public_key().public_bytes(*form_public))
    return paths


@pytest.fixture(scope="module")
def made() -> tuple[bytes, bytes]:
    return hloforge.compile(TEXT).vmfb, hloforge.compile(OTHER).vmfb


@pytest.fixture
def vmfb(made: tuple[bytes, bytes], tmp_path: Path) -> Path:
    """A signed one; ``key`` signed it, ``stranger`` is somebody else's."""
    path = tmp_path / "model.vmfb"
    path.write_bytes(made[0])
    for name in ("key", "stranger"):
        write_keys(tmp_path, name)
    code_signing.sign_file(path, tmp_path / "key.pem")
    return path


def test_the_pinned_file_is_loaded_and_no_other(vmfb: Path, made: tuple[bytes, bytes]) -> None:
    digest = hashlib.sha256(made[0]).hexdigest()
    for pin in (digest, digest.upper(), f"sha256:{digest}"):
        np.testing.assert_array_equal(hloforge.load(vmfb, expect_sha256=pin)(X), X + X)
    np.testing.assert_array_equal(hloforge.load(made[0], expect_sha256=digest)(X), X + X)
    vmfb.write_bytes(made[1])
    with pytest.raises(hloforge.LoadError, match=r"model\.vmfb is not the expected file: its SHA-256 is"):
        hloforge.load(vmfb, expect_sha256=digest)
    with pytest.raises(hloforge.OptionError, match="is no SHA-256"):
        hloforge.load(vmfb, expect_sha256=digest[:-1])


def test_a_signed_file_is_loaded(vmfb: Path, tmp_path: Path) -> None:
    trusted = [tmp_path / "stranger.pub", tmp_path / "key.pub"]
    np.testing.assert_array_equal(hloforge.load(vmfb, public_keys=trusted)(X), X + X)
    signature = Path(f"{vmfb}.sig").read_bytes()
    session = hloforge.load(vmfb.read_bytes(), public_keys=trusted[1].read_bytes(), signature=signature)
    np.testing.assert_array_equal(session(X), X + X)


def test_what_is_not_signed_is_refused(vmfb: Path, made: tuple[bytes, bytes], tmp_path: Path) -> None:
    key, signature = tmp_path / "key.pub", Path(f"{vmfb}.sig")
    with pytest.raises(hloforge.LoadError, match="not signed with any of the keys"):
        hloforge.load(vmfb, public_keys=tmp_path / "stranger.pub")
    with pytest.raises(hloforge.LoadError, match="has no signature, but one is required"):
        hloforge.load(made[0], public_keys=key)
    vmfb.write_bytes(made[1])  # exchanged after it was signed
    with pytest.raises(hloforge.LoadError, match="not signed with any of the keys"):
        hloforge.load(vmfb, public_keys=key)
    vmfb.write_bytes(made[0])
    for damaged in (b"", b"{}", b"[" * 100_000, signature.read_bytes()[:-20], b'{"kind": 3}'):
        signature.write_bytes(damaged)
        with pytest.raises(hloforge.LoadError, match="is not a signature"):
            hloforge.load(vmfb, public_keys=key)
    signature.unlink()
    with pytest.raises(hloforge.LoadError, match="cannot be read: No such file") as caught:
        hloforge.load(vmfb, public_keys=key)
    assert "hloforge sign" in str(caught.value)


def test_every_changed_bit_of_a_signature_is_noticed(vmfb: Path, tmp_path: Path) -> None:
    fields = json.loads(Path(f"{vmfb}.sig").read_bytes())
    text = fields["signature"]
    for at in range(0, len(text) - 2, 7):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        with pytest.raises(hloforge.LoadError, match="not signed"):
            signature = json.dumps(fields | {"signature": changed}).encode()
            hloforge.load(vmfb, public_keys=tmp_path / "key.pub", signature=signature)


def test_the_bytes_that_were_checked_are_those_that_are_loaded(
    vmfb: Path, made: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody exchanges the file as soon as it was checked."""
    check = code_signing.verified

    def exchanged(*arguments: object, **named: object) -> object:
        found = check(*arguments, **named)  # type: ignore[arg-type]
        vmfb.write_bytes(made[1])
        return found

    monkeypatch.setattr(session, "verified", exchanged)
    np.testing.assert_array_equal(hloforge.load(vmfb, public_keys=tmp_path / "key.pub")(X), X + X)


def test_nothing_of_a_refused_file_reaches_iree(vmfb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "vm_module", lambda *given: pytest.fail("IREE was asked"))
    with pytest.raises(hloforge.LoadError, match="not signed"):
        hloforge.load(vmfb, public_keys=tmp_path / "stranger.pub")


def test_a_deployment_asks_for_signatures_of_all_that_comes_from_a_disk(
    vmfb: Path, made: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "cache"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(home))
    hloforge.compile(TEXT)
    kept = next(home.glob("*.cached"))
    before = kept.stat().st_mtime_ns, kept.stat().st_ino
    monkeypatch.setenv(
        code_signing.VARIABLE, os.pathsep.join(map(str, (tmp_path / "stranger.pub", tmp_path / "key.pub")))
    )
    np.testing.assert_array_equal(hloforge.load(vmfb)(X), X + X)
    with pytest.raises(hloforge.LoadError, match="has no signature, but one is required"):
        hloforge.load(made[0])
    # What this process compiles is its own; what an earlier one left behind is compiled anew.
    np.testing.assert_array_equal(hloforge.compile(TEXT)(X), X + X)
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) != before
    # A key that is asked for does not replace those of the deployment.
    code_signing.sign_file(vmfb, tmp_path / "stranger.pem")
    monkeypatch.setenv(code_signing.VARIABLE, str(tmp_path / "key.pub"))
    with pytest.raises(hloforge.LoadError, match="not signed"):
        hloforge.load(vmfb, public_keys=tmp_path / "stranger.pub")
    monkeypatch.setenv(code_signing.VARIABLE, "")
    with pytest.raises(hloforge.OptionError, match="names no public key"):
        hloforge.load(vmfb)


def test_keys_that_are_none(vmfb: Path, tmp_path: Path) -> None:
    for data in (
        b"",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        (tmp_path / "key.pem").read_bytes(),
    ):
        with pytest.raises(hloforge.OptionError, match="the given key is no public key"):
            hloforge.load(vmfb, public_keys=data)
    with pytest.raises(hloforge.OptionError, match="cannot read the key"):
        hloforge.load(vmfb, public_keys=tmp_path / "missing.pub")
    with pytest.raises(hloforge.OptionError, match="the list of them is empty"):
        hloforge.load(vmfb, public_keys=[])
    with pytest.raises(hloforge.OptionError, match="cannot be verified without a trusted public key"):
        hloforge.load(vmfb, signature=f"{vmfb}.sig")


def test_the_command_line(vmfb: Path, made: tuple[bytes, bytes], tmp_path: Path) -> None:
    key, stranger = tmp_path / "key", tmp_path / "stranger"
    digest = hashlib.sha256(made[0]).hexdigest()
    signed = call("sign", vmfb, f"--key={key}.pem")
    assert (signed.exit_code, signed.stdout) == (0, f"{vmfb}.sig: sha256:{digest}\n")
    for option in (f"--require-signature={key}.pub", f"--expect-sha256={digest}"):
        result = call("run", vmfb, "--input=4xf32=1", option)
        assert (result.exit_code, result.stdout) == (0, "4xf32=[2 2 2 2]\n"), result.stderr
    for option, told in (
        (f"--require-signature={stranger}.pub", "is not signed with any of the keys"),
        (f"--expect-sha256={digest[::-1]}", "is not the expected file"),
    ):
        result = call("run", vmfb, "--input=4xf32=1", option)
        assert result.exit_code == 1
        assert told in result.stderr
        assert "Traceback" not in result.stderr
    program = tmp_path / "model.hlo"
    program.write_text(TEXT)
    assert "is a program" in call("run", program, "--input=4xf32=1", f"--expect-sha256={digest}").stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_keys_of_openssl_also_with_a_password(vmfb: Path, tmp_path: Path) -> None:
    key, public = tmp_path / "o.pem", tmp_path / "o.pub"
    make = ["openssl", "genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:secret", "-out", key]
    subprocess.run(make, check=True, capture_output=True)
    export = ["openssl", "pkey", "-in", key, "-passin", "pass:secret", "-pubout", "-out", public]
    subprocess.run(export, check=True, capture_output=True)
    assert call("sign", vmfb, f"--key={key}", input=b"wrong\n").exit_code == 1
    assert call("sign", vmfb, f"--key={key}", input=b"secret\n").exit_code == 0
    np.testing.assert_array_equal(hloforge.load(vmfb, public_keys=public)(X), X + X)


def test_another_kind_of_key_is_named(vmfb: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    with pytest.raises(hloforge.OptionError, match="is no Ed25519 key") as caught:
        hloforge.load(vmfb, public_keys=public.public_bytes(*form))
    assert "openssl genpkey" in str(caught.value)


@pytest.mark.parametrize("command", ["inspect", "inspect --json", "inspect --html=-", "run --input=random", "profile"])
def test_every_command_that_reads_a_vmfb_asks_for_its_signature(
    vmfb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv(code_signing.VARIABLE, str(tmp_path / "stranger.pub"))
    result = call(*command.split(), vmfb)
    assert result.exit_code == 1 and "not signed with any of the keys" in result.stderr
    assert "f32[4]" not in result.stdout
    monkeypatch.setenv(code_signing.VARIABLE, str(tmp_path / "key.pub"))
    result = call(*command.split(), vmfb)
    assert result.exit_code == 0, result.stderr


def test_no_vmfb_reaches_iree_unasked(vmfb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The door itself asks, whoever comes through it; what this process compiled is exempt."""
    monkeypatch.setenv(code_signing.VARIABLE, str(tmp_path / "stranger.pub"))
    for source in (vmfb, str(vmfb), vmfb.read_bytes()):
        for read in (modules.read_manifest, modules.vm_module):
            with pytest.raises(hloforge.LoadError, match="sign"):
                read(source)
    assert modules.read_manifest(hloforge.compile(TEXT)).name == "m"
