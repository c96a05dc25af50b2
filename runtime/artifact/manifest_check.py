"""Check a manifest against the program beside it.

A manifest is text that travels with the code. What it says of sizes and types decides how memory is read, so that it is
compared with IREE's own declaration of ``main`` before anything is called, and each of its fields with what it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from hloforge.dialect.abi import crosses, physical_shape
from hloforge.dialect.errors import Error, LoadError
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.replicas.shards import Sharded, Sharding
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.artifact.plain_vmfb import declared_tensors
from hloforge.runtime.compile.targets import Target

_HINT = "the file was damaged or changed: compile the program again"
# Threads of a pool: more than any machine has processors.
_MOST_THREADS = 1 << 16


def check_manifest(manifest: Manifest, declaration: str) -> None:
    """Compare a manifest with itself and with the function that it describes.

    Args:
        declaration: of ``main``, as IREE's compiler wrote it.

    Raises:
        LoadError: names the field, what it says, and what the program takes or returns.
    """
    try:
        _check_fields(manifest)
        _check_signature(manifest.signature, declaration)
        if manifest.sharded is not None:
            _check_sharded(manifest.sharded, manifest.signature)
    except LoadError:
        raise
    except (Error, ValueError, IndexError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        what = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        raise LoadError(f"the manifest inside the vmfb is wrong: {what}", hint=_HINT) from None


def _check_fields(manifest: Manifest) -> None:
    for name in ("name", "target", "device", "source", "weights_file"):
        _demand(name, getattr(manifest, name), lambda value: isinstance(value, str), "text")
    for name in ("work", "threads"):
        _demand(name, getattr(manifest, name), lambda value: type(value) is int and value >= 0, "a count")
    _demand("threads", manifest.threads, lambda value: value <= _MOST_THREADS, "a number of threads")
    for name in ("flags", "targets"):
        _demand(name, getattr(manifest, name), lambda value: all(isinstance(one, str) for one in value), "texts")
    for name, of in manifest.versions:
        _demand(f"version of {name}", of, lambda value: isinstance(value, str), "text")
    # They are looked for in the folder of the vmfb, and nowhere else.
    _demand("weights_file", manifest.weights_file, _is_base_name, "the name of a file")
    for text in (manifest.target, *manifest.targets):
        if text:
            Target.parse(text)
    for name, shape in manifest.weights:
        _demand(f"weight {name!r}", shape, crosses, "an array")
    for text in (manifest.attempts.compiled, *(text for pair in manifest.attempts.failed for text in pair)):
        _demand("record of attempts", text, lambda value: isinstance(value, str), "text")
    for call in manifest.host_calls:
        _demand("target of a host call", call.target, lambda value: isinstance(value, str), "text")


def _is_base_name(name: str) -> bool:
    return name not in (".", "..") and not any(char in name for char in "/\\\0")


def _demand(field: str, value: Any, holds: Callable[[Any], bool], what: str) -> None:
    if not holds(value):
        raise LoadError(f"the manifest inside the vmfb is damaged: its {field} {value!r} is not {what}", hint=_HINT)


def _check_signature(signature: Signature, declaration: str) -> None:
    inputs, outputs = declared_tensors(declaration)
    parameters = [(f"parameter {leaf.name}", leaf.shape) for leaf in signature.flat_parameters if crosses(leaf.shape)]
    results = [(f"result {number}", shape) for number, shape in enumerate(signature.flat_results) if crosses(shape)]
    _compare("takes", parameters, inputs)
    _compare("returns", results, outputs)
    for alias in signature.aliases:
        if alias.parameter_number >= len(signature.parameters):
            raise LoadError(f"the manifest donates parameter {alias.parameter_number}, which is none", hint=_HINT)
        _member(signature.parameters[alias.parameter_number].shape, alias.parameter_index, str(alias))
        _member(signature.result, alias.output_index, str(alias))


def _compare(what: str, said: Sequence[tuple[str, Shape]], declared: Sequence[str]) -> None:
    if len(said) != len(declared):
        raise LoadError(
            f"the manifest says that main {what} {len(said)} arrays, and it {what} {len(declared)}", hint=_HINT
        )
    for (name, shape), body in zip(said, declared, strict=True):
        if not _fits(shape, body):
            raise LoadError(f"the manifest says {name}: {shape}, and main {what} tensor<{body}>", hint=_HINT)


def _fits(shape: Shape, body: str) -> bool:
    """Whether an array of this shape crosses as a tensor that is declared so; what is known at run time fits all."""
    physical = physical_shape(shape)
    assert physical.element is not None
    *sizes, element = body.split("x", physical.rank)
    if len(sizes) != physical.rank or element != _declared_element(physical.element.mlir):
        return False
    known = [-1 if dynamic else size for size, dynamic in zip(physical.dimensions, physical.dynamic, strict=True)]
    return all(size == "?" or one < 0 or size == str(one) for size, one in zip(sizes, known, strict=True))


def _declared_element(name: str) -> str:
    """IREE's integers have no sign: ``i8`` for MLIR's ``ui8``."""
    return name.removeprefix("u")


def _member(shape: Shape, index: Sequence[int], alias: str) -> None:
    for number in index:
        if shape.elements is None or number >= len(shape.elements):
            raise LoadError(f"the manifest's alias {alias} is of no leaf of the signature", hint=_HINT)
        shape = shape.elements[number]


def _check_sharded(sharded: Sharded, signature: Signature) -> None:
    leaves = [*(leaf.shape for leaf in signature.flat_parameters), *signature.flat_results]
    given = [*sharded.parameters, *sharded.results]
    if len(given) != len(leaves) or len(sharded.parameters) != len(signature.flat_parameters) or not given:
        raise LoadError("the manifest's sharding is of another signature", hint=_HINT)
    devices = {len(one.places) for one in given}
    for shape, one in zip(leaves, given, strict=True):
        if len(devices) != 1 or not _is_sharding(one) or (crosses(shape) and not _is_part(one, shape)):
            raise LoadError(f"the manifest's sharding {one} is none of {shape}", hint=_HINT)


def _is_part(one: Sharding, shape: Shape) -> bool:
    """Whether an array is what a device has, or what all of them have: folded programs take parts as one array."""
    return shape.dimensions in (one.local, (len(one.places), *one.local))


def _is_sharding(one: Sharding) -> bool:
    numbers = (*one.sizes, *one.tiles, *one.places, *one.terms)
    if one.terms and len(one.terms) != len(one.places):
        return False
    if not one.places or len(one.sizes) != len(one.tiles) or not all(type(number) is int for number in numbers):
        return False
    return min((*one.tiles, 1)) > 0 and min(numbers) >= 0 and max(one.places) < prod(one.tiles)
