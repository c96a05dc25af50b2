"""Reads a model in a process of its own: ``python -m hloforge.tensorflow.worker MODEL OUTPUT [SIZES [SIGNATURE]]``.

``OUTPUT`` becomes MLIR bytecode with the program's signature, variables as constants; without ``SIZES`` (JSON, a list
of sizes for each argument) or with an empty one, of the program as far as it is known. Errors are one JSON object on
standard output.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.dialect.shapes import Shape


def main(path: str, output: str, sizes: str = "", signature: str | None = None) -> None:
    """Read the model at ``path``. Raises what is no error of the model."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from hloforge.tensorflow.compiled import read

        program = read(path, freeze=True, signature=signature)
        if sizes and program.template is not None:
            given = json.loads(sizes)
            pairs = zip(program.signature.parameters, given, strict=True)
            shapes = [Shape.array(parameter.shape.element, *dims) for parameter, dims in pairs]
            program = program.template.specialize(shapes, {})
    except (Error, ModuleNotFoundError) as error:
        message = error.message if isinstance(error, Error) else str(error)
        hint = error.hint if isinstance(error, Error) else ""
        print(json.dumps({"message": message, "hint": hint}))
        return
    stream = io.BytesIO()
    program.module.operation.write_bytecode(stream)
    Path(output).write_bytes(stream.getvalue())
    print(json.dumps({"name": program.name}))


if __name__ == "__main__":
    main(*sys.argv[1:])
