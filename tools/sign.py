"""``hloforge sign``: write the signature of a vmfb."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Sign a vmfb with an Ed25519 key.")
@click.argument("files", metavar="VMFB…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--key", required=True, type=click.Path(path_type=Path), help="File of an Ed25519 private key, in PEM.")
def command(files: tuple[Path, ...], key: Path) -> None:
    """Write VMFB.sig beside each VMFB, for `hloforge run --require-signature=key.pub`, and print their SHA-256.

    \b
    Example:
      hloforge sign model.vmfb --key=key.pem

    \b
    To make a key, and the public key for those who verify:
      openssl genpkey -algorithm ed25519 -out key.pem
      openssl pkey -in key.pem -pubout -out key.pub
    """
    import hashlib

    from hloforge.runtime.artifact.code_signing import is_encrypted, sign_file

    password = click.prompt("password of the key", hide_input=True, err=True).encode() if is_encrypted(key) else None
    for file in files:
        place = sign_file(file, key, password)
        click.echo(f"{place}: sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}")
