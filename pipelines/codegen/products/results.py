"""What becomes of finished sums: an epilogue, a conversion, and their place in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.products.operands import Matrix, split_index, strided

# Given sums (a number or a vector along columns) and [batch, row, first column], what is stored instead.
Epilogue = Callable[[Value, Sequence[Value]], Value]
# Given what is to be stored and the same indices, stores it.
Store = Callable[[Value, Sequence[Value]], None]


@dataclass(frozen=True)
class Results:
    """Where and how sums are stored.

    Attributes:
        out: the address of the results.
        matrix: their strides and type.
        batch: sizes of the batch.
        exchanged: whether rows are columns to the hooks, which are then given numbers one by one.
    """

    function: Function
    out: Value
    matrix: Matrix
    batch: tuple[int, ...]
    epilogue: Epilogue | None = None
    store: Store | None = None
    exchanged: bool = False

    @property
    def takes_vectors(self) -> bool:
        """Whether a vector of columns can be stored at once."""
        if self.exchanged and not self.is_plain:
            return False
        return self.store is not None or self.matrix.column == 1

    @property
    def is_plain(self) -> bool:
        """Whether sums are stored as they are, except for their type."""
        return self.epilogue is None and self.store is None

    @property
    def stores_tiles(self) -> bool:
        """Whether sums are stored as they are, at distances that do not depend on the row."""
        return self.is_plain

    def put(
        self,
        value: Value,
        batch: Value,
        row: Value,
        column: Value,
        address: Value | None = None,
        pixel: Sequence[Value] | None = None,
    ) -> None:
        """Finish a number, or a vector of columns that follow each other in memory.

        Args:
            address: of the result, where it is known; divisions to find it again would take LLVM long.
            pixel: of a convolution, its spatial indices where these are known.
        """
        if not self.is_plain:
            places = self.places(batch, row, column, pixel)
            if self.epilogue is not None:
                value = self.epilogue(value, places)
            if self.store is not None:
                self.store(value, places)
                return
        if address is None:
            address = self.address_of(batch, row, column)
        self.function.store(value.as_(self.matrix.kind), address)

    def places(self, batch: Value, row: Value, column: Value, pixel: Sequence[Value] | None = None) -> list[Value]:
        """What hooks are told."""
        return [batch, column, row] if self.exchanged else [batch, row, column]

    def address_of(self, batch: Value, row: Value, column: Value, pixel: Sequence[Value] | None = None) -> Value:
        matrix = self.matrix
        return strided(self.function, self.address(batch), matrix.kind, [row, column], [matrix.row, matrix.column])

    def address(self, batch: Value) -> Value:
        """Of the first result of a matrix."""
        places = split_index(self.function, batch, self.batch)
        return strided(self.function, self.out, self.matrix.kind, places, self.matrix.batch)
