"""What TFLite's interpreter makes of a model, and how a program's results are compared with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import hloforge
from tests.tflite.cases import INPUTS


def converted(tf: Any, functions: dict[str, Callable[..., Any]], **settings: Any) -> tuple[bytes, list[str]]:
    """One model of all functions, and the names of its inputs, in the order of its parameters."""
    names = list(
        dict.fromkeys(name for function in functions.values() for name in inspect.signature(function).parameters)
    )

    def model(**given: Any) -> dict[str, Any]:
        results = {}
        for name, function in functions.items():
            found = function(**{key: given[key] for key in inspect.signature(function).parameters})
            found = found if isinstance(found, list | tuple) else [found]
            results |= {f"{name}_{number}": tf.identity(part) for number, part in enumerate(found)}
        return results

    specs = {name: tf.TensorSpec(INPUTS[name].shape, INPUTS[name].dtype, name=name) for name in names}
    module = tf.Module()
    module.call = tf.function(model)
    concrete = module.call.get_concrete_function(**specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
    for name, value in settings.items():
        setattr(converter, name, value)
    data: bytes = converter.convert()
    return data, names


def interpreted(tf: Any, data: bytes, inputs: Sequence[Any], *, plain: bool = False) -> tuple[list[Any], list[str]]:
    """The outputs of TFLite's interpreter and their names, for inputs in the order of the model's.

    Args:
        plain: without XNNPACK, by the reference kernels.
    """
    kinds = tf.lite.experimental.OpResolverType
    interpreter = tf.lite.Interpreter(
        model_content=data, experimental_op_resolver_type=kinds.BUILTIN_REF if plain else kinds.AUTO, num_threads=2
    )
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    signatures = interpreter._get_full_signature_list()
    named = {number: name for entry in signatures.values() for name, number in entry["outputs"].items()}
    details = interpreter.get_output_details()
    names = [named.get(detail["index"], detail["name"]) for detail in details]
    return [interpreter.get_tensor(detail["index"]) for detail in details], names


def inputs_of(data: bytes) -> list[Any]:
    """The inputs by the names that the model gives its parameters."""
    program = hloforge.read(data)
    names = [parameter.name for parameter in program.signature.parameters]
    return [INPUTS[name.removeprefix("serving_default_").split(":")[0]] for name in names]


def results_of(data: bytes, inputs: Sequence[Any]) -> list[Any]:
    """What the compiled program computes."""
    found = hloforge.compile(data)(*inputs)
    return list(found) if isinstance(found, tuple | list) else [found]
