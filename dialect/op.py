"""``@op``: what makes a function one of XLA's operations.

The decorator registers the function under its heading, gives what it emits the user's source line, and completes the
errors that it raises with the heading, the operands' shapes and that line.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import TABLE, ElementType, Kind
from hloforge.dialect.errors import Location, OperationError, UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import OPEN, Value, leaves

P = ParamSpec("P")
R = TypeVar("R")


def _names(*kinds: Kind) -> frozenset[str]:
    return frozenset(row.name for row in TABLE if row.kind in kinds)


# What an operation takes as its first operand: names of element types, "token", "tuple".
PRED = _names(Kind.PRED)
SIGNED = _names(Kind.SIGNED)
UNSIGNED = _names(Kind.UNSIGNED)
INTEGER = SIGNED | UNSIGNED
FLOAT = _names(Kind.FLOAT)
COMPLEX = _names(Kind.COMPLEX)
NUMERIC = INTEGER | FLOAT | COMPLEX
ARRAY = NUMERIC | PRED
TOKEN = frozenset({"token"})
TUPLE = frozenset({"tuple"})
NOTHING: frozenset[str] = frozenset()

# Wording for error messages, largest set first.
_WORDS = (
    ("numbers", NUMERIC),
    ("integers", INTEGER),
    ("floats", FLOAT),
    ("signed integers", SIGNED),
    ("unsigned integers", UNSIGNED),
    ("complex numbers", COMPLEX),
    ("pred", PRED),
    ("tokens", TOKEN),
    ("tuples", TUPLE),
)


@dataclass(frozen=True)
class Op:
    """One of XLA's operations.

    Attributes:
        heading: its title in XLA's Operation Semantics.
        name: the function's name.
        emits: the names of the operations that represent it in StableHLO.
        hlo: the opcode of its HLO instruction.
        on: what it takes as its first operand.
        function: the public function.
        category: the module that defines it.
    """

    heading: str
    name: str
    emits: tuple[str, ...]
    hlo: str
    on: frozenset[str]
    function: Callable[..., Any]
    category: str


_REGISTRY: dict[str, Op] = {}


def registry() -> dict[str, Op]:
    """All operations by heading, in the order of their definition."""
    import hloforge.dialect.ops

    assert hloforge.dialect.ops
    return dict(_REGISTRY)


def op(
    heading: str, *, emits: str | Sequence[str], on: Iterable[str], hlo: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare the decorated function to be XLA's operation ``heading``.

    Args:
        emits: the operation of StableHLO (or several, for a composition or variants).
        on: the element types of the first operand, of ``dialect/op.py``'s sets.
        hlo: the opcode of the HLO instruction; by default StableHLO's name with hyphens.

    Raises:
        ValueError: the heading has a function already.
    """
    emitted = (emits,) if isinstance(emits, str) else tuple(emits)
    opcode = hlo or emitted[0].removeprefix("stablehlo.").replace("_", "-")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        if heading in _REGISTRY:
            raise ValueError(f"{heading} is defined twice: {_REGISTRY[heading].name} and {name}")
        signature = inspect.signature(function)
        arrays = {key: str(p.annotation) for key, p in signature.parameters.items() if _is_operand(p.annotation)}
        names = tuple(signature.parameters)

        @functools.wraps(function)
        def build(*args: P.args, **kwargs: P.kwargs) -> R:
            if _state.inside:
                return function(*args, **kwargs)
            opener = _opener((*args, *kwargs.values()))
            with _Entered(opener):
                try:
                    given = [_operand(a, n, arrays) for n, a in zip(names, args, strict=False)] + list(
                        args[len(names) :]
                    )
                    named = {name: _operand(argument, name, arrays) for name, argument in kwargs.items()}
                    _check_first(given, accepted)
                    return function(*given, **named)  # operands became Values
                except (OperationError, UnsupportedError) as error:
                    location = user_location() if opener else None
                    raise _complete(error, heading, signature.bind(*args, **kwargs), location) from error.__cause__

        accepted = frozenset(on)
        _REGISTRY[heading] = Op(heading, name, emitted, opcode, accepted, build, function.__module__)
        return build

    return decorate


class _State(threading.local):
    """Per thread: whether an operation's own body runs."""

    inside: bool = False


_state = _State()


@contextmanager
def user_code() -> Iterator[None]:
    """While a user's computation is traced inside an operation: its operations are the user's own again."""
    before, _state.inside = _state.inside, False
    try:
        yield
    finally:
        _state.inside = before


def _opener(arguments: Sequence[Any]) -> Any:
    """The builder of the operands' program, or else of the one that is entered; None inside a pass."""
    entered = _current_context()
    # A tuple's own type would need the context that is looked for.
    found = (leaf.type.context for value in _values(arguments) for leaf in leaves(value))
    context = next(found, entered)
    if context in OPEN:
        return OPEN[context]
    if context is None:
        raise OperationError(
            "no program is open", location=user_location(), hint="call it inside `with Builder(...) as builder:`"
        )
    if context is not entered:
        raise OperationError("the operands belong to a program that is built already", location=user_location())
    return None


def _current_context() -> Any:
    try:
        return ir.Context.current
    except ValueError:
        return None


class _Entered:
    """Enters a builder's program at the user's line.

    Inside a pass there is an insertion point and the location of the operation that is replaced: both stay.
    """

    __slots__ = ("scopes",)

    def __init__(self, builder: Any) -> None:
        self.scopes: list[Any] = builder.scopes(user_location(), _current_context()) if builder else []

    def __enter__(self) -> None:
        for scope in self.scopes:
            scope.__enter__()
        _state.inside = True

    def __exit__(self, *exception: Any) -> None:
        _state.inside = False
        for scope in reversed(self.scopes):
            scope.__exit__(*exception)


def _values(arguments: Iterable[Any]) -> Iterator[Value]:
    for argument in arguments:
        if isinstance(argument, Value):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from _values(argument)


_PACKAGE = __name__.partition(".")[0] + "."


def user_location() -> Location:
    """The line that called into hloforge."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno)


def _is_operand(annotation: Any) -> bool:
    """Whether a parameter, by its annotation's text, takes Values alone, one or several."""
    return str(annotation).startswith("Value")


def _operand(argument: Any, name: str, arrays: Mapping[str, str]) -> Any:
    """An argument as the operation takes it: numpy's arrays as constants.

    Raises:
        OperationError: a number or anything else that is no array, where a Value belongs.
    """
    if isinstance(argument, Value) or name not in arrays:
        return argument
    if isinstance(argument, list | tuple) and "Sequence" in arrays[name]:
        return [_operand(part, name, arrays) for part in argument]
    if isinstance(argument, np.ndarray | np.generic):
        return constant(argument)
    if type(argument).__name__ in arrays[name].replace("None", "NoneType"):
        return argument
    raise OperationError(
        f"{name} must be a Value or a numpy array, not {argument!r}", hint=f"{name}=constant({argument!r}, …) makes one"
    )


def _check_first(args: Sequence[Any], accepted: frozenset[str]) -> None:
    first = args[0] if args else None
    for value in _values(first if isinstance(first, list | tuple) else (first,)):
        kind = _kind(value.shape)
        if kind not in accepted:
            raise OperationError(f"it takes {describe(accepted)}, not {kind}")


def _kind(shape: Shape) -> str:
    if shape.is_tuple:
        return "tuple"
    return "token" if shape.element is None else shape.element.name


def describe(accepted: frozenset[str]) -> str:
    """A set of element types in words."""
    left, words = accepted, []
    for word, members in _WORDS:
        if members <= left:
            words.append(word)
            left -= members
    return " or ".join([*words, *sorted(left)]) or "no operands"


def _complete(
    error: OperationError | UnsupportedError, heading: str, call: inspect.BoundArguments, location: Location | None
) -> Exception:
    """The error with what its raiser could not know. One from a nested computation is complete already."""
    if error.op:
        return error
    arguments = ", ".join(f"{name}={_short(argument)}" for name, argument in call.arguments.items())
    return type(error)(
        f"{heading}: {error.message}",
        location=error.location or location,
        op=f"{heading}({arguments})",
        hint=error.hint,
        notes=error.notes,
    )


def _short(argument: Any) -> str:
    if isinstance(argument, Value):
        return str(argument.shape)
    if isinstance(argument, list | tuple):
        return "[" + ", ".join(map(_short, argument)) + "]"
    if callable(argument):
        return getattr(argument, "__name__", type(argument).__name__)
    if isinstance(argument, ElementType):
        return argument.name
    return repr(argument) if len(repr(argument)) <= 60 else type(argument).__name__
