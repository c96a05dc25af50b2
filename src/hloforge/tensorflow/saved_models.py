"""SavedModels: signatures of TensorFlow 2, and graphs of TensorFlow 1 or of loaders that are gone, frozen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from hloforge.dialect.errors import ArgumentError, ImporterError, Location

_FILES = ("saved_model.pb", "saved_model.pbtxt")
# Of signatures that say how to initialize the model.
_INNER = "__saved_model"


def load_function(path: Path, wanted: str | None) -> tuple[Callable[..., Any], dict[str, Any], str]:
    """A signature of a SavedModel as a function of named tensors, the specs of its arguments, and its name.

    The model is loaded as TensorFlow 2 does. Where that fails, as for models that Keras 2 saved, or has no signatures,
    as for some of TensorFlow 1, its graph is loaded with the variables as constants.

    Raises:
        ImporterError: no SavedModel, or a damaged one.
        ArgumentError: no such signature.
    """
    from hloforge.tensorflow.sources import pick_signature

    where = Location(str(path))
    if not any((path / file).is_file() for file in _FILES):
        raise ImporterError("there is no SavedModel", location=where, hint="give the folder with saved_model.pb")
    try:
        loaded = tf.saved_model.load(str(path))
        signatures = dict(loaded.signatures)
    except Exception as error:  # whatever the classes that the model names raise
        reason = error
    else:
        if signatures or _graph_signatures(path):
            function, named, name = pick_signature(signatures, wanted)
            return _Signature(loaded, function), named, name
        if callable(loaded):
            return _of_call(loaded, wanted, where)
        raise ArgumentError("the model has no signature", hint="save it with tf.saved_model.save(…, signatures=…)")
    logger = tf.get_logger()
    level = logger.level
    try:
        # That functions of TensorFlow 1 are old is known.
        logger.setLevel("ERROR")
        return _frozen(path, wanted)
    except ArgumentError:
        raise
    except Exception:
        message = str(reason).strip().splitlines()[0] if str(reason).strip() else type(reason).__name__
        raise ImporterError(f"TensorFlow cannot load the SavedModel: {message}", location=where) from None
    finally:
        logger.setLevel(level)


class _Signature:
    """A signature that keeps its model, and with it the variables, alive."""

    def __init__(self, model: Any, function: Any) -> None:
        self._model = model
        self._function = function

    def __call__(self, *positional: Any, **named: Any) -> Any:
        if positional:
            wanted = ", ".join(self._function.structured_input_signature[1])
            raise ArgumentError("a signature takes its arguments by name", hint=f"they are {wanted}")
        return self._function(**named)


def _of_call(loaded: Any, wanted: str | None, where: Location) -> tuple[Callable[..., Any], dict[str, Any], str]:
    """The one traced form of a model's call."""
    forms: Any = getattr(loaded.__call__, "concrete_functions", ())
    if wanted is not None or len(forms) != 1:
        raise ArgumentError(
            f"the model has no signature {wanted or ''}".rstrip(),
            hint="load it with tf.saved_model.load, and compile its function with arguments",
        )
    positional, named = forms[0].structured_input_signature
    if named or any(not isinstance(spec, tf.TensorSpec) for spec in positional):
        raise ArgumentError(
            "the model's call takes more than tensors", hint="compile it with arguments", location=where
        )
    names = [spec.name or f"arg{number}" for number, spec in enumerate(positional)]

    def function(**tensors: Any) -> Any:
        return loaded(*(tensors[name] for name in names))

    return function, dict(zip(names, positional, strict=True)), "call"


def _graph_signatures(path: Path) -> list[str]:
    """The names of signatures that the file declares."""
    names = [name for graph in _meta_graphs(path) for name in graph.signature_def]
    return [name for name in names if not name.startswith(_INNER)]


def _meta_graphs(path: Path) -> Any:
    from tensorflow.python.saved_model import loader_impl

    return loader_impl.parse_saved_model(str(path)).meta_graphs


def _frozen(path: Path, wanted: str | None) -> tuple[Callable[..., Any], dict[str, Any], str]:
    """A signature's part of the graph, as TensorFlow 1 loads it, its variables constants."""
    v1 = tf.compat.v1
    tags = next(iter(_meta_graphs(path))).meta_info_def.tags
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        declared = v1.saved_model.load(session, list(tags), str(path)).signature_def
        known = {name: entry for name, entry in declared.items() if not name.startswith(_INNER)}
        chosen = wanted or ("serving_default" if "serving_default" in known else next(iter(known), ""))
        if chosen not in known:
            raise ArgumentError(f"the model has no signature {chosen!r}", hint=f"signatures: {', '.join(known)}")
        inputs = {name: info.name for name, info in known[chosen].inputs.items()}
        outputs = {name: info.name for name, info in known[chosen].outputs.items()}
        specs = {
            name: tf.TensorSpec(graph.get_tensor_by_name(place).shape, graph.get_tensor_by_name(place).dtype)
            for name, place in inputs.items()
        }
        nodes = [place.split(":")[0] for place in outputs.values()]
        definition = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), nodes)
    wrapped = v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    names = list(inputs)
    pruned = wrapped.prune(
        [wrapped.graph.get_tensor_by_name(inputs[name]) for name in names],
        {name: wrapped.graph.get_tensor_by_name(place) for name, place in outputs.items()},
    )

    def function(**tensors: Any) -> Any:
        return pruned(*(tensors[name] for name in names))

    return function, specs, chosen
