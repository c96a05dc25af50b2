"""Programs written in Python: ``Builder``, ``@program``, and the ``Computation`` that both give."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from hloforge.dialect.builder import Builder as _Builder
from hloforge.dialect.errors import Location, OperationError
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.reference.engines import reference


class Computation(Program):
    """A verified program. ``str`` is its StableHLO; other operations take it as a sub-computation."""

    def __str__(self) -> str:
        return self.text()

    def compile(self, target: Target | str = "cpu", **options: Any) -> Executable:
        """Compile it; the result is called with arrays. Arguments and errors as of ``hloforge.compile``."""
        from hloforge.api import compile

        return compile(self, target, **options)

    def evaluate(self, *arguments: Any, engine: str = "interpreter") -> Any:
        """What a reference engine computes.

        Args:
            arguments: as of a session.
            engine: ``interpreter`` (StableHLO's) or ``xla`` (XLA's CPU client); it runs in a process of its own.

        Raises:
            ReferenceEngineError: the engine cannot evaluate the program.
            OptionError: no such engine.
        """
        referee = reference(engine)
        try:
            return referee.prepare(self)(*arguments)
        finally:
            referee.close()


class Builder(_Builder[Computation]):
    """A program under construction::

    with hloforge.Builder("double") as builder:
        x = builder.parameter(0, "f32[4]", "x")
        program = builder.build(x + x)
    """

    def __init__(self, name: str = "program") -> None:
        super().__init__(name, Computation)


def program(function: Callable[..., Any]) -> Computation:
    """Decorator: trace a function into the program that it describes.

    Args:
        function: takes Values, and returns one or several nested in tuples. Each parameter is annotated with its Shape:
            ``x: Shape.parse("f32[4,8]")``, or ``x: Annotated[Value, Shape.parse("f32[4,8]")]`` for type checkers.

    Raises:
        OperationError: a parameter lacks its Shape, or an operation inside is malformed.
    """
    with Builder(function.__name__) as builder:
        parameters = [
            builder.parameter(number, _annotated_shape(function, parameter), parameter.name)
            for number, parameter in enumerate(inspect.signature(function, eval_str=True).parameters.values())
        ]
        return builder.build(function(*parameters))


def _annotated_shape(function: Callable[..., Any], parameter: inspect.Parameter) -> Shape:
    annotation = parameter.annotation
    candidates = get_args(annotation)[1:] if get_origin(annotation) is Annotated else (annotation,)
    shape = next((candidate for candidate in candidates if isinstance(candidate, Shape)), None)
    if shape is None:
        code = inspect.unwrap(function).__code__
        raise OperationError(
            f"parameter {parameter.name!r} of {function.__name__} is not annotated with a Shape",
            location=Location(code.co_filename, code.co_firstlineno),
            hint=f'write {parameter.name}: Shape.parse("f32[4,8]")',
        )
    return shape
