"""Models of TensorFlow and Keras for damage, and what reads them: in a child process, as users do, or in this one.

The latter is what the child does, without its seconds of importing TensorFlow for each file.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import hloforge
from hloforge.dialect.errors import ImporterError

# The files of a SavedModel, each of which is damaged beside sound ones.
PARTS = ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001")

_MAKE = """
import sys, keras, tensorflow as tf
class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        return tf.nn.relu(x @ self.w)
model = Model()
tf.saved_model.save(model, sys.argv[1] + "/saved", signatures={"serving_default": model.__call__})
keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="relu")]).save(sys.argv[1] + "/model.keras")
"""


@cache
def _files() -> dict[str, bytes]:
    """Sound files by name, made by a process of its own: TensorFlow's threads do not survive a fork."""
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", _MAKE, folder], check=True, capture_output=True)
        named = {f"saved/{part}" for part in PARTS} | {"model.keras"}
        return {name: (Path(folder) / name).read_bytes() for name in named}


def keras_files() -> list[bytes]:
    return [_files()["model.keras"]]


def parts_of_saved_models(part: str) -> list[bytes]:
    return [_files()[f"saved/{part}"]]


def read_keras_here(path: Path, data: bytes) -> None:
    _work(path)


def read_saved_model(part: str, path: Path, data: bytes) -> None:
    """A model in which one file is damaged, by TensorFlow in its own process."""
    _with_part(part, data, path, hloforge.read)


def read_saved_model_here(part: str, path: Path, data: bytes) -> None:
    _with_part(part, data, path, _work)


def _with_part(part: str, data: bytes, path: Path, read: Callable[[Path], object]) -> None:
    folder = path.with_suffix(".folder")
    shutil.rmtree(folder, ignore_errors=True)
    for name in PARTS:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if name == part else _files()[f"saved/{name}"])
    read(folder)


def _work(path: Path) -> None:
    """What the child process does with a model; its parent makes one error of any that ends it."""
    from hloforge.importers import reader
    from hloforge.tensorflow import worker

    output, said = path.with_suffix(".mlirbc"), io.StringIO()
    output.unlink(missing_ok=True)
    try:
        with redirect_stdout(said):
            worker.main(str(path), str(output))
    except Exception as error:
        raise ImporterError(f"{type(error).__name__}: {error}"[:400]) from None
    answer = json.loads(said.getvalue().splitlines()[-1])
    if not output.is_file():
        raise ImporterError(answer["message"])
    reader._read_child(output.read_bytes(), str(output))
