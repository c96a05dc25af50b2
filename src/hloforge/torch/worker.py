"""Reads an export in a process of its own: ``python -m hloforge.torch.worker MODEL OUTPUT [SIZES]``.

``OUTPUT`` becomes MLIR bytecode with the program's signature, weights as constants; without ``SIZES`` (JSON, a list of
sizes for each argument) of the program as far as it is known. The last line on standard output is one JSON object.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path

from hloforge.dialect.errors import Error


def main(path: str, output: str, sizes: str = "") -> None:
    """Read the archive at ``path``, which ``importers/exported_program.py`` has vetted."""
    warnings.simplefilter("ignore")
    try:
        from hloforge.torch.archives import program_of_archive
        from hloforge.torch.operators.grouped import declare_operators

        declare_operators()
        program = program_of_archive(path, json.loads(sizes) if sizes else None)
    except (Error, ModuleNotFoundError) as error:
        print(json.dumps(_answer(error)))
        return
    stream = io.BytesIO()
    program.module.operation.write_bytecode(stream)
    Path(output).write_bytes(stream.getvalue())
    print(json.dumps({"name": program.name}))


def _answer(error: Exception) -> dict[str, object]:
    if not isinstance(error, Error):
        return {"message": str(error), "hint": ""}
    return {"message": error.message, "hint": error.hint, "notes": error.notes}


if __name__ == "__main__":
    main(*sys.argv[1:])
