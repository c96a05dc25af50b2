"""TensorFlow and Keras on hloforge: ``hloforge.tensorflow.compile`` of functions, models and SavedModels.

Raises (on import):
    ModuleNotFoundError: TensorFlow is not installed.
    ImportError: the process runs programs on Mesa's Vulkan driver for processors.
"""

from __future__ import annotations

import sys

from hloforge.runtime.devices.drivers import has_lavapipe

if "tensorflow" not in sys.modules and has_lavapipe():
    message = "TensorFlow cannot be loaded into a process that runs Vulkan by Mesa's lavapipe"
    raise ImportError(f"{message}: both carry LLVM, and it would not end. Use a process for each.", name="tensorflow")

try:
    import tensorflow as _tensorflow  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    message = (
        "hloforge.tensorflow needs TensorFlow, which is not installed: "
        "pip install 'hloforge[tensorflow]', in a clone '.[tensorflow]'"
    )
    raise ModuleNotFoundError(message, name="tensorflow") from None

from hloforge.tensorflow.compiled import Compiled, compile, read

__all__ = ["Compiled", "compile", "read"]
