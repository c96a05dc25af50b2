"""Reads an export in a process of its own: ``python -m hloforge.torch.worker MODEL OUTPUT [SIZES]``.

``OUTPUT`` becomes MLIR bytecode with the program's signature, weights as constants; without ``SIZES`` (JSON, a list of
sizes for each argument) of the program as far as it is known; of ``{"each": [SIZES, …]}`` come ``OUTPUT.0`` and so on.
The last line on standard output is one JSON object.
"""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import suppress
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program


def main(path: str, output: str, sizes: str = "") -> None:
    """Read the archive at ``path``, which ``importers/exported_program.py`` has vetted."""
    warnings.simplefilter("ignore")
    try:
        from hloforge.torch.archives import program_of_archive
        from hloforge.torch.operators.grouped import declare_operators

        declare_operators()
        given = json.loads(sizes) if sizes else None
        if isinstance(given, dict):
            for number, one in enumerate(given["each"]):
                # What cannot be read is asked for again, and is answered then.
                with suppress(Error):
                    write(program_of_archive(path, one), Path(f"{output}.{number}"))
            print(json.dumps({"name": ""}))
            return
        program = program_of_archive(path, given)
    except (Error, ModuleNotFoundError) as error:
        print(json.dumps(_answer(error)))
        return
    write(program, Path(output))
    print(json.dumps({"name": program.name, "open_sizes": [size.to_json() for size in program.open_sizes]}))


def write(program: Program, output: Path) -> None:
    """Write a program as bytecode."""
    with output.open("wb") as stream:
        program.module.operation.write_bytecode(stream)


def _answer(error: Exception) -> dict[str, object]:
    if not isinstance(error, Error):
        return {"message": str(error), "hint": ""}
    return {"message": error.message, "hint": error.hint, "notes": error.notes}


if __name__ == "__main__":
    main(*sys.argv[1:])
