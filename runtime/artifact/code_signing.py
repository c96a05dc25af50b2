"""Restrict loading to vmfbs with a given digest, or with a signature by a trusted key.

A vmfb is native code, and its check sums tell accidents alone. Whoever must know where one comes from pins its SHA-256,
or has it signed: ``model.vmfb.sig`` holds an Ed25519 signature of the digest. What is asked for is checked on the bytes
that are loaded then, which are read once, and before IREE sees them. ``HLOFORGE_REQUIRE_SIGNATURE`` asks for signatures
of everything that comes compiled from a disk.

Source: RFC 8032 (Ed25519), by the package ``cryptography``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hloforge.dialect.bounded_reading import read_path
from hloforge.dialect.errors import LoadError, OptionError
from hloforge.runtime.data.files import write_atomically

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# Files of public keys, separated as in PATH.
VARIABLE = "HLOFORGE_REQUIRE_SIGNATURE"
SUFFIX = ".sig"
Key: TypeAlias = str | PathLike[str] | bytes
_KIND = "hloforge.signature"
# What is signed begins so: a signature of something else is none of a vmfb.
_CONTEXT = b"hloforge vmfb, version 1\0"
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
_MAKE_KEYS = "openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out key.pub"


class Verified(bytes):
    """A vmfb that is what was asked for.

    Attributes:
        name: what messages call it.
        folder: where it came from, and its weights are looked for.
    """

    name = "the given data"
    folder = Path()


def verified(
    source: str | PathLike[str] | bytes,
    expect_sha256: str | None = None,
    keys: Key | Sequence[Key] | None = None,
    signature: str | PathLike[str] | bytes | None = None,
    *,
    compiled_here: bool = False,
) -> str | PathLike[str] | bytes:
    """A vmfb's bytes, read once and checked; the source as it is where nothing is asked for.

    Args:
        source: a path, or the bytes.
        expect_sha256: its digest, 64 hexadecimal digits.
        keys: public keys, one of which it is signed with: PEM files, or their bytes.
        signature: what ``sign`` returned, or its file; by default the file beside it, ``model.vmfb.sig``.
        compiled_here: this process compiled it: ``HLOFORGE_REQUIRE_SIGNATURE`` does not ask for its signature.

    Raises:
        LoadError: it is another file, is not signed or by nobody of these, or cannot be read.
        OptionError: a malformed digest or key; the package cryptography is missing.
    """
    groups = [each for each in (_listed(keys), [] if compiled_here else required()) if each]
    if isinstance(source, Verified) or (expect_sha256 is None and not groups and signature is None):
        return source
    if signature is not None and not groups:
        raise OptionError("a signature cannot be verified without a trusted public key")
    data, name, folder = _read(source)
    digest = hashlib.sha256(data).digest()
    if expect_sha256 is not None:
        _compare(digest, expect_sha256, name)
    if groups:
        given = signature if signature is not None else _beside(source, name)
        raw = _signature(given, name)
        for group in groups:
            if not any(_signed(key, raw, digest) for key in map(_public_key, group)):
                raise LoadError(f"{name} is not signed with any of the keys that are trusted", hint=_CHANGED)
    made = Verified(data)
    made.name, made.folder = name, folder
    return made


_CHANGED = "it was changed after it was signed, or somebody else signed it"


def required() -> list[Key]:
    """The public keys of ``HLOFORGE_REQUIRE_SIGNATURE``; none where it is not set.

    Raises:
        OptionError: it is set, and names none.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return []
    found: list[Key] = [name for name in chosen.split(os.pathsep) if name]
    if not found:
        raise OptionError(f"{VARIABLE} is set and names no public key", hint="name the files of keys, or unset it")
    return found


def refuse_unsigned(what: str) -> None:
    """Refuse what cannot have a signature where signatures are asked for.

    Raises:
        LoadError: ``HLOFORGE_REQUIRE_SIGNATURE`` is set.
    """
    if required():
        raise LoadError(f"{what} has no signature, but {VARIABLE} requires one", hint="compile the program again")


def sign(data: bytes, key: Key, password: bytes | None = None) -> bytes:
    """The contents of a ``.sig`` file for a vmfb.

    Args:
        key: an Ed25519 private key: a PEM file, or its bytes.
        password: of an encrypted key.

    Raises:
        OptionError: no such key, another kind of key, a wrong password; the package cryptography is missing.
    """
    private = _private_key(key, password)
    raw = private.sign(_CONTEXT + hashlib.sha256(data).digest())
    fields = {"kind": _KIND, "algorithm": "ed25519", "signature": base64.b64encode(raw).decode()}
    return (json.dumps(fields) + "\n").encode()


def sign_file(path: Path, key: Key, password: bytes | None = None) -> Path:
    """Write ``model.vmfb.sig`` beside a vmfb, whole or not at all; returns its path. Errors as of ``sign``, and:

    Raises:
        LoadError: the vmfb cannot be read.
        CompileError: the signature cannot be written.
    """
    data, _, _ = _read(path)
    place = path.with_name(path.name + SUFFIX)
    write_atomically(place, sign(data, key, password))
    return place


def is_encrypted(key: Key) -> bool:
    """Whether a private key takes a password. Raises OptionError if it cannot be read."""
    return b"ENCRYPTED" in _pem(key)


def _listed(keys: Key | Sequence[Key] | None) -> list[Key]:
    if keys is None:
        return []
    if isinstance(keys, str | PathLike | bytes):
        return [keys]
    if not keys:
        raise OptionError("no public key is trusted: the list of them is empty")
    return list(keys)


def _read(source: str | PathLike[str] | bytes) -> tuple[bytes, str, Path]:
    if isinstance(source, bytes):
        return source, Verified.name, Path()
    path = Path(source)
    try:
        return read_path(path), str(path), path.parent
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror}") from None


def _compare(digest: bytes, expected: str, name: str) -> None:
    match = _DIGEST.fullmatch(expected.strip())
    if match is None:
        raise OptionError(f"{expected!r} is no SHA-256: it has 64 hexadecimal digits")
    if digest.hex() != match[1].lower():
        raise LoadError(
            f"{name} is not the expected file: its SHA-256 is {digest.hex()}",
            hint="get the right one, or pin this one if you trust it",
        )


def _beside(source: str | PathLike[str] | bytes, name: str) -> Path:
    if isinstance(source, bytes):
        raise LoadError(f"{name} has no signature, but one is required", hint="give the file, or load(…, signature=…)")
    return Path(f"{Path(source)}{SUFFIX}")


def _signature(given: str | PathLike[str] | bytes, name: str) -> bytes:
    """The 64 bytes of a signature."""
    data = given if isinstance(given, bytes) else _signature_file(Path(given), name)
    try:
        fields = json.loads(data)
        if fields["kind"] != _KIND or fields["algorithm"] != "ed25519":
            raise ValueError("another kind of file")
        return base64.b64decode(fields["signature"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise LoadError(f"the signature file of {name} is not a signature", hint="hloforge sign makes it") from None


def _signature_file(path: Path, name: str) -> bytes:
    try:
        return read_path(path)
    except OSError as error:
        message = f"the signature of {name} cannot be read: {error.strerror}: {path}"
        raise LoadError(message, hint="hloforge sign makes it") from None


def _signed(key: Ed25519PublicKey, signature: bytes, digest: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, _CONTEXT + digest)
    except InvalidSignature:
        return False
    return True


def _public_key(key: Key) -> Ed25519PublicKey:
    ed25519, serialization = _cryptography()
    with _malformed(key, "public"):
        found = serialization.load_pem_public_key(_pem(key))
    if not isinstance(found, ed25519.Ed25519PublicKey):
        raise OptionError(f"{_name(key)} is no Ed25519 key", hint=_MAKE_KEYS)
    public: Ed25519PublicKey = found
    return public


def _private_key(key: Key, password: bytes | None) -> Ed25519PrivateKey:
    ed25519, serialization = _cryptography()
    with _malformed(key, "private"):
        found = serialization.load_pem_private_key(_pem(key), password)
    if not isinstance(found, ed25519.Ed25519PrivateKey):
        raise OptionError(f"{_name(key)} is no Ed25519 key", hint=_MAKE_KEYS)
    private: Ed25519PrivateKey = found
    return private


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        message = "signatures are checked with the package cryptography, which is not installed"
        raise OptionError(message, hint="pip install 'hloforge[signing]', in a clone '.[signing]'") from None
    return ed25519, serialization


@contextmanager
def _malformed(key: Key, kind: str) -> Iterator[None]:
    """Say of what cryptography raises that the key is none."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = " ".join(str(error).split())[:200]
        raise OptionError(f"{_name(key)} is no {kind} key in PEM, or its password is another: {reason}") from None


def _pem(key: Key) -> bytes:
    if isinstance(key, bytes):
        return key
    try:
        return read_path(key)
    except OSError as error:
        raise OptionError(f"cannot read the key {os.fspath(key)}: {error.strerror}") from None


def _name(key: Key) -> str:
    return "the given key" if isinstance(key, bytes) else str(key)
