"""What prepares features and names results (``ai.onnx.ml``): scalers, encoders, maps between values."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.ml_scores import ML
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.texts import Table, Text, as_text, is_text, strings_of
from hloforge.importers.tensors import (
    Array,
    broadcast_to,
    cast,
    expand,
    fill,
    greatest,
    numbers,
    take,
    total,
    window,
)

# Integers from the first key to the last one that are a table: so many times the keys, or so many.
_SPARSE, _SHORT = 4, 256


@operator("Binarizer", domain=ML)
def binarizer(node: Node) -> Value:
    x = node.value(0)
    return cast(x > fill(x.dims, float(node.attribute("threshold", 0.0)), x.element_type), x.element_type)


@operator("Scaler", domain=ML)
def scaler(node: Node) -> Value:
    x = cast(node.value(0), "f32")
    offset, scale = (np.asarray(node.attribute(name) or [default], np.float32)
                     for name, default in (("offset", 0.0), ("scale", 1.0)))  # fmt: skip
    return (x - broadcast_to(constant(offset), x.dims)) * broadcast_to(constant(scale), x.dims)


@operator("Normalizer", domain=ML)
def normalizer(node: Node) -> Value:
    """Each row by its greatest number, the sum of its magnitudes, or its length; a row of zeros stays."""
    x = cast(node.value(0), "f32")
    rows = expand(x, [0]) if x.rank == 1 else x
    norm = str(node.attribute("norm", "MAX"))
    match norm:
        case "MAX":
            divisor = greatest(rows, [1], True)
        case "L1":
            divisor = total(ops.abs(rows), [1], True)
        case "L2":
            divisor = ops.sqrt(total(rows * rows, [1], True))
        case _:
            raise UnsupportedError(f"the norm {norm!r} is not imported")
    one = fill(divisor.dims, 1.0, divisor.element_type)
    divisor = ops.select(divisor.eq(0.0), one, divisor)
    return ops.reshape(rows / broadcast_to(divisor, rows.dims), x.dims)


@operator("Imputer", domain=ML)
def imputer(node: Node) -> Value:
    x = node.value(0)
    kind = "floats" if x.element_type.is_float else "int64s"
    given = node.attribute(f"imputed_value_{kind}")
    if not given:
        raise ImporterError(f"imputed_value_{kind} is missing, which numbers of {x.element_type} are replaced by")
    missing = node.attribute(f"replaced_value_{kind[:-1]}", 0)
    values = np.asarray(given).astype(x.element_type.dtype)
    if len(values) not in (1, x.dims[-1]):
        raise ImporterError(f"{len(values)} imputed values for {x.dims[-1]} features")
    is_missing = x.ne(x) if missing != missing else x.eq(fill(x.dims, missing, x.element_type))
    return ops.select(is_missing, broadcast_to(constant(values), x.dims), x)


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: Node) -> Value:
    """Columns by their numbers."""
    x, places = node.value(0), node.value(1)
    count = int(np.prod(places.dims))
    taken = take(x, ops.reshape(places, [count]), x.rank - 1)
    return expand(taken, [0]) if x.rank == 1 else taken


@operator("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node) -> Value:
    sizes = [int(size) for size in node.attribute("inputdimensions") or ()]
    parts = []
    for number, x in enumerate(node.values()):
        rows = cast(expand(x, [0]) if x.rank == 1 else ops.reshape(x, [x.dims[0], int(np.prod(x.dims[1:]))]), "f32")
        size = sizes[number] if number < len(sizes) else rows.dims[1]
        if size < rows.dims[1]:
            rows = window(rows, 1, 0, size)
        elif size > rows.dims[1]:
            rows = ops.concat_in_dim([rows, fill([rows.dims[0], size - rows.dims[1]], 0.0, "f32")], 1)
        parts.append(rows)
    return ops.concat_in_dim(parts, 1) if len(parts) > 1 else parts[0]


@operator("ZipMap", domain=ML)
def zip_map(node: Node) -> Value:
    """The scores as they are: what maps them to classes is the table of labels in the signature."""
    x = node.value(0)
    texts, integers = node.attribute("classlabels_strings"), node.attribute("classlabels_int64s")
    names: list[str | int] = [*(strings_of(texts) if texts else map(int, integers or []))]
    if len(names) != x.dims[-1]:
        raise ImporterError(f"{len(names)} labels for {x.dims[-1]} columns")
    node.scope.importing.columns[node.proto.output[0]] = tuple(names)
    return x


@operator("DictVectorizer", "CastMap", domain=ML)
def of_map(node: Node) -> Any:
    raise UnsupportedError(
        f"{node.name} reads a map, and a program takes and returns tensors",
        hint="end the model after this node, and pass the vector that it makes: a column for each key",
    )


# Maps between values ------------------------------------------------------------------------------------------------


def _places(x: Any, keys: Array | list[str]) -> tuple[Value, Value]:
    """Where each element is among the keys, s32, and whether it is there; of a repeated key the last place counts."""
    if is_text(x):
        text = as_text(x)
        asked = text.table.numbers(strings_of(np.asarray(keys, object)))
        return _among(text.numbers, asked)
    return _among(x, np.asarray(keys))


def _among(x: Value, keys: Array) -> tuple[Value, Value]:
    """Binary search; NaN is equal to NaN."""
    row = x.element_type
    keys = keys.astype(row.dtype)
    is_nan = np.isnan(keys) if row.is_float else np.zeros(len(keys), bool)
    known, last = np.unique(keys[~is_nan][::-1], return_index=True)
    places = np.flatnonzero(~is_nan)[::-1][last] if len(known) else np.zeros(0, np.int64)
    if len(known) and row.is_integer and int(known[-1]) - int(known[0]) < max(_SPARSE * len(known), _SHORT):
        place, is_there = _in_table(x, known, places)
    elif len(known):
        table = constant(known)
        found = fill(x.dims, 0, "s32")
        step = 1 << len(known).bit_length() - 1
        # How many keys are smaller.
        while step:
            asked = found + (step - 1)
            smaller = _at(table, ops.min(asked, len(known) - 1)) < x
            found = found + cast(smaller & (asked < len(known)), "s32") * step
            step //= 2
        found = ops.min(found, len(known) - 1)
        is_there = _at(table, found).eq(x)
        place = _at(constant(places.astype(np.int32)), found)
    else:
        place, is_there = fill(x.dims, 0, "s32"), fill(x.dims, False, "pred")
    if is_nan.any():
        place = ops.select(x.ne(x), fill(x.dims, int(np.flatnonzero(is_nan)[-1]), "s32"), place)
        is_there = is_there | x.ne(x)
    return place, is_there


def _in_table(x: Value, known: Array, places: Array) -> tuple[Value, Value]:
    """By a table of all integers from the first key to the last one."""
    low, high = int(known[0]), int(known[-1])
    table = np.full(high - low + 1, -1, np.int32)
    table[[int(key) - low for key in known]] = places
    place = _at(constant(table), cast(ops.clamp(low, x, high) - low, "s32"))
    is_there = (x >= low) & (x <= high)
    return (place, is_there) if (table >= 0).all() else (ops.max(place, 0), is_there & (place >= 0))


def _at(table: Value, places: Value) -> Value:
    dimensions = ops.GatherDimensionNumbers([], [0], [0], places.rank)
    return ops.gather(table, ops.reshape(places, [*places.dims, 1]), dimensions, [1])


def _mapped(x: Any, keys: Any, values: Any, default: Any) -> Any:
    """The value of each element's key; strings become numbers in a table of the values."""
    place, is_there = _places(x, keys)
    if isinstance(default, str):
        table = Table()
        stored = table.numbers([*strings_of(np.asarray(values, object)), default])
        found = ops.select(is_there, _at(constant(stored[:-1]), place), int(stored[-1]))
        return Text(found, table)
    stored = np.asarray(values)
    return ops.select(is_there, _at(constant(stored), place), fill(place.dims, default, element_type(stored.dtype)))


@operator("LabelEncoder", domain=ML)
def label_encoder(node: Node) -> Any:
    """Keys to values; what is no key becomes the default."""
    x = _input(node)
    if node.attribute("classes_strings") and not _given(node, "keys"):
        names = strings_of(node.attribute("classes_strings"))
        if is_text(x):
            return _mapped(x, names, np.arange(len(names)), int(node.attribute("default_int64", -1)))
        return _mapped(x, np.arange(len(names)), names, str(node.attribute("default_string", "_Unused")))
    keys, values = _given(node, "keys"), _given(node, "values")
    if keys is None or values is None or len(keys[1]) != len(values[1]):
        raise ImporterError("keys and values of the map are missing or of different lengths")
    if is_text(x) != (keys[1].dtype.kind in "OSU"):
        raise ImporterError("the keys of the map are of another type than the input")
    stored = values[1]
    default = node.attribute("default_tensor")
    if default is not None:
        default = np.asarray(default).reshape(-1)[0]
        default = strings_of([default])[0] if stored.dtype.kind in "OSU" else default
    elif stored.dtype.kind in "OSU":
        default = str(node.attribute("default_string", "_Unused"))
    elif stored.dtype.kind == "f":
        default = float(node.attribute("default_float", -0.0))
    else:
        default = int(node.attribute("default_int64", -1))
    return _mapped(x, keys[1], stored, default)


def _given(node: Node, what: str) -> tuple[str, Array] | None:
    """The keys or values of a map, whichever attribute has them, as an array of their type."""
    for kind, dtype in (("int64s", np.int64), ("floats", np.float32), ("strings", object)):
        given = node.attribute(f"{what}_{kind}")
        if given:
            return kind, np.array(strings_of(given), object) if dtype is object else np.asarray(given, dtype)
    tensor = node.attribute(f"{what}_tensor")
    return None if tensor is None else ("tensor", np.asarray(tensor).reshape(-1))


def _input(node: Node) -> Any:
    given = node.inputs[0]
    return as_text(given) if is_text(given) else node.value(0)


@operator("CategoryMapper", domain=ML)
def category_mapper(node: Node) -> Any:
    x = _input(node)
    texts, integers = strings_of(node.attribute("cats_strings") or []), list(node.attribute("cats_int64s") or [])
    if not texts or len(texts) != len(integers):
        raise ImporterError("the strings and integers of the map are missing or of different lengths")
    if is_text(x):
        return _mapped(x, texts, np.array(integers, np.int64), int(node.attribute("default_int64", -1)))
    return _mapped(x, np.array(integers, np.int64), texts, str(node.attribute("default_string", "_Unused")))


@operator("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node) -> Value:
    """A column for each category, along a new last dimension; what is none of them is a row of zeros."""
    x = _input(node)
    if not node.attribute("zeros", 1):
        raise UnsupportedError(
            "OneHotEncoder with zeros=0 fails for an unknown category, and a program cannot",
            hint="set zeros=1: an unknown category is a row of zeros",
        )
    keys: Any = node.attribute("cats_strings") or node.attribute("cats_int64s")
    if not keys:
        raise ImporterError("the encoder has no categories")
    if not is_text(x):
        x = cast(x, "s64")
        keys = np.asarray(keys, np.int64)
    place, is_there = _places(x, keys)
    dims = [*place.dims, len(keys)]
    at = list(range(place.rank))
    is_it = ops.broadcast_in_dim(place, dims, at).eq(numbers(dims, place.rank))
    return cast(is_it & ops.broadcast_in_dim(is_there, dims, at), "f32")
