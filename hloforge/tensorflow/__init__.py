"""TensorFlow and Keras on hloforge: ``hloforge.tensorflow.compile`` of functions, models and SavedModels.

Raises (on import):
    ModuleNotFoundError: TensorFlow is not installed.
"""

from __future__ import annotations

try:
    import tensorflow as _tensorflow  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    message = "hloforge.tensorflow needs TensorFlow, which is not installed: pip install 'hloforge[tensorflow]'"
    raise ModuleNotFoundError(message, name="tensorflow") from None

from hloforge.tensorflow.compiled import Compiled, compile, read

__all__ = ["Compiled", "compile", "read"]
