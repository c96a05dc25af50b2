"""The registry of library calls: which function of hloforge computes a custom call's results.

To add a target, write in a file of this folder (every file is imported) a function from the call to its results::

    @custom_call_target(*lapack("potrf"))
    def potrf(call: CustomCall) -> list[Value]:
        lower = call.choice("uplo", UPLO)
        ...
        return [factor, info]          # one value for each result, of the result's type

It is called at the call, with the call's location, and builds with the functions of ``dialect.ops``; operations that
the CPU lacks, such as cholesky and triangular_solve, are decomposed afterwards. Operands and results are logical
arrays: the layouts of a call say in which order the library finds the elements in memory, and nothing about which
element has which index. A setting that the function does not read is an error, because it may change what is computed.
Source: StableHLO "custom_call"; XLA "Custom calls", "FFI".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeAlias, TypeVar

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.marks import PREFIX
from hloforge.dialect.mlir import AnyOp, entries, ir
from hloforge.dialect.operations import string_attribute
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines import library_calls
from hloforge.pipelines.framework.passes import load_modules

Meaning = TypeVar("Meaning")

# Settings of LAPACK's functions, which are letters.
UPLO = {"L": True, "U": False}
_PREFIXES = ("s", "d", "c", "z")


@dataclass(frozen=True)
class CustomCall:
    """A ``stablehlo.custom_call``.

    Attributes:
        op: the operation.
        target: the name of the function that it calls.
        operands: its operands.
        settings: the entries of its backend configuration as Python values; empty where that is text.
        text: its backend configuration where that is text (API versions 1 to 3).
    """

    op: Any
    target: str
    operands: tuple[Value, ...]
    settings: Mapping[str, Any]
    text: str
    _read: set[str] = field(default_factory=set)

    @staticmethod
    def of(op: Any) -> CustomCall:
        """Read an operation."""
        configuration = op.attributes.get("backend_config")
        settings, text = {}, ""
        if isinstance(configuration, ir.DictAttr):
            settings = {name: _python(value) for name, value in entries(configuration).items()}
        elif configuration is not None:
            text = str(configuration.value)
        return CustomCall(op, target_of(op), tuple(map(Value, op.operands)), settings, text)

    def configuration(self, name: str) -> dict[str, Any]:
        """A part of a backend configuration that is JSON, or all of it where older programs do not have the part.

        Raises UnsupportedError for another text.
        """
        try:
            parsed = json.loads(self.text)
        except json.JSONDecodeError:
            parsed = None
        if not isinstance(parsed, dict):
            raise UnsupportedError(f"@{self.target} has a backend configuration that is no JSON object")
        part = parsed.get(name, parsed)
        return part if isinstance(part, dict) else parsed

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the results."""
        return [Value(result).shape for result in self.op.results]

    @property
    def computations(self) -> list[str]:
        """The symbols of the functions that it calls."""
        if "called_computations" not in self.op.attributes:
            return []
        return [symbol.value for symbol in self.op.attributes["called_computations"]]

    def is_read(self, number: int) -> bool:
        """Whether anything that is kept reads a result, directly or by elementwise operations that are not kept."""
        return _is_read(self.op.results[number])

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting's value. Raises UnsupportedError if there is neither one nor a default."""
        self._read.add(name)
        found = self.settings.get(name, default)
        if found is None:
            raise UnsupportedError(f"@{self.target} has no setting {name!r}")
        return found

    def choice(self, name: str, meanings: Mapping[str, Meaning]) -> Meaning:
        """What the letter of a setting means. Raises UnsupportedError for no or another letter."""
        value = self.setting(name)
        letter = chr(value) if isinstance(value, int) and 0 <= value < 0x110000 else str(value)
        if letter not in meanings:
            raise UnsupportedError(f"@{self.target} has {name} = {letter!r}, which is none of {', '.join(meanings)}")
        return meanings[letter]

    @property
    def lower(self) -> bool:
        """Whether it reads the lower triangle, by LAPACK's letter or cuSOLVER's flag; errors as of ``choice``."""
        return bool(self.setting("lower")) if "lower" in self.settings else self.choice("uplo", UPLO)

    def check_read(self) -> None:
        """Raises UnsupportedError if a setting was not read."""
        unknown = sorted(self.settings.keys() - self._read)
        if unknown:
            raise UnsupportedError(f"@{self.target} has a setting {unknown[0]!r}, which hloforge does not know")


# What programs do with a result before they drop it: JAX's eigenvalues choose between eigenvectors and NaN.
_DROPPED = frozenset({"stablehlo.select", "stablehlo.transpose", "stablehlo.reshape"})


def _is_read(value: Any) -> bool:
    return any(use.owner.name not in _DROPPED or any(map(_is_read, use.owner.results)) for use in value.uses)


Decomposition: TypeAlias = Callable[[CustomCall], list[Value]]
DecompositionType = TypeVar("DecompositionType", bound=Decomposition)
_REGISTRY: dict[str, Decomposition] = {}


def custom_call_target(*names: str) -> Callable[[DecompositionType], DecompositionType]:
    """Decorator: the function computes what calls of these targets compute. A second use of a name raises."""

    def register(function: DecompositionType) -> DecompositionType:
        for name in names:
            if name in _REGISTRY:
                raise ValueError(f"custom call target {name} is registered twice")
            _REGISTRY[name] = function
        return function

    return register


def lapack(*functions: str, prefixes: Iterable[str] = _PREFIXES) -> list[str]:
    """The targets that JAX calls a LAPACK or BLAS function by, one for each element type, and ours for all of them."""
    theirs = [f"lapack_{prefix}{function}_ffi" for function in functions for prefix in prefixes]
    return [*theirs, *(f"{PREFIX}{function}" for function in functions)]


def solver(*functions: str) -> list[str]:
    """The targets that JAX calls cuSOLVER's and hipSOLVER's functions by, one for all element types."""
    return [f"{library}solver_{function}_ffi" for function in functions for library in ("cu", "hip")]


def hybrid(*functions: str) -> list[str]:
    """The targets that JAX calls LAPACK's or MAGMA's functions by in programs for GPUs."""
    return [f"{library}hybrid_{function}" for function in functions for library in ("cu", "hip")]


def target_of(op: AnyOp) -> str:
    """The target of a custom call."""
    return string_attribute(op, "call_target_name")


@cache
def decompositions() -> Mapping[str, Decomposition]:
    """Every decomposition by its target; each file of this folder is imported once."""
    load_modules(library_calls)
    return dict(_REGISTRY)


def is_registered(op: ir.Operation) -> bool:
    """Whether a custom call has a decomposition."""
    return target_of(op) in decompositions()


def similar_targets(target: str) -> list[str]:
    """Targets with decompositions whose names are close to one without, the closest first."""
    return get_close_matches(target, decompositions(), cutoff=0.7)


def _python(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.ArrayAttr):
        return [_python(member) for member in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {name: _python(member) for name, member in entries(attribute).items()}
    return getattr(attribute, "value", attribute)
