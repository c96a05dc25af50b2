"""Reads a model in a process of its own: ``python -m hloforge.tensorflow.worker MODEL OUTPUT [SIZES [SIGNATURE]]``.

``OUTPUT`` becomes MLIR bytecode with the program's signature, variables as constants; without ``SIZES`` (JSON, a list
of sizes for each argument) or with an empty one, of the program as far as it is known; of ``{"each": [SIZES, …]}``
come ``OUTPUT.0`` and so on. Errors are one JSON object on
standard output.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape


def main(path: str, output: str, sizes: str = "", signature: str | None = None) -> None:
    """Read the model at ``path``. Raises what is no error of the model."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from hloforge.tensorflow.compiled import read

        program = read(path, freeze=True, signature=signature)
        if sizes and program.template is not None:
            given = json.loads(sizes)
            if isinstance(given, dict):
                for number, one in enumerate(given["each"]):
                    # What cannot be read is asked for again, and is answered then.
                    with suppress(Error):
                        _write(_at(program, one), Path(f"{output}.{number}"))
                print(json.dumps({"name": program.name}))
                return
            program = _at(program, given)
    except (Error, ModuleNotFoundError) as error:
        message = error.message if isinstance(error, Error) else str(error)
        hint = error.hint if isinstance(error, Error) else ""
        print(json.dumps({"message": message, "hint": hint}))
        return
    _write(program, Path(output))
    print(json.dumps({"name": program.name}))


def _at(program: Program, sizes: list[list[int]]) -> Program:
    """The program for arguments of some sizes."""
    assert program.template is not None
    pairs = zip(program.signature.parameters, sizes, strict=True)
    return program.template.specialize([Shape.array(p.shape.element, *dims) for p, dims in pairs], {})


def _write(program: Program, output: Path) -> None:
    with output.open("wb") as stream:
        program.module.operation.write_bytecode(stream)


if __name__ == "__main__":
    main(*sys.argv[1:])
