"""What the importers of graphs (ONNX, TFLite) share: the position of an import in a graph."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hloforge.dialect.builder import Builder
from hloforge.dialect.errors import Error, ImporterError, Location
from hloforge.dialect.mlir import ir
from hloforge.dialect.program import Program

# Functions that call each other for ever would otherwise end in a RecursionError.
_DEEPEST = 64


@dataclass
class Importing:
    """One import of a model.

    Attributes:
        file: what to call the model in messages and locations.
        entry: the block of ``main``.
        where: the names of the nodes that are being imported with their numbers, outermost first.
        columns: what the columns of a tensor stand for, by its name.
        ranges: the least and the greatest number of scalars that loops count, by their ``ir.Value``.
    """

    file: str
    entry: Any
    where: list[tuple[str, int]] = field(default_factory=list)
    columns: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    ranges: dict[Any, tuple[int, int]] = field(default_factory=dict)

    def location(self) -> Any:
        """The MLIR location of the node that is being imported: its name, and its number for a line."""
        number = self.where[0][1] if self.where else 0
        here: ir.Location = ir.Location.file(self.file, number, 0)
        for name, _ in self.where:
            here = ir.Location.name(name, here)
        return here

    @contextmanager
    def at(self, label: str, number: int) -> Iterator[None]:
        """While a node is imported: operations carry its label, and so do errors."""
        if len(self.where) > _DEEPEST:
            raise ImporterError(f"functions and graphs nest deeper than {_DEEPEST}")
        self.where.append((label, number))
        try:
            with self.location():
                yield
        except Error as error:
            if error.location is None or error.location.file != self.file:
                error.location = Location(self.file)
                error.notes = (*error.notes, f"in {error.op}") if error.op else error.notes
                error.op = self._path()
            raise
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError, struct.error) as error:
            path = self._path()
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ImporterError(f"a malformed node: {reason}", location=Location(self.file), op=path) from error
        finally:
            self.where.pop()

    def _path(self) -> str:
        return " in ".join(name for name, _ in reversed(self.where))


class GraphBuilder(Builder[Program]):
    """A builder whose operations are at nodes, not at lines of Python."""

    importing: Importing

    def __init__(self, name: str, file: str) -> None:
        super().__init__(name, Program)
        self.importing = Importing(file, self._block)

    def scopes(self, location: Location, entered: Any) -> list[Any]:
        if entered is self._context:
            return [self.importing.location()]
        return super().scopes(location, entered)
