"""A program as plain objects: operations, the arrays between them, and who reads these."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.parts import Part
    from hloforge.pipelines.codegen.products.strips import Strips

# Operations that change what lives longer than a call.
_EFFECTS = frozenset({"util.call"})


@dataclass(eq=False, repr=False)
class Array:
    """The result of an operation, or an argument of a block.

    Attributes:
        element: the element type, as MLIR spells it.
        shape: static sizes.
        op: what makes it; None for an argument.
        readers: operations that read it, once for each operand; those in inner blocks too.
        is_result: whether its block gives it back.
    """

    element: str
    shape: tuple[int, ...]
    op: Op | None
    block: Block
    readers: list[Op] = field(default_factory=list)
    is_result: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(eq=False, repr=False)
class Op:
    """An operation.

    Attributes:
        name: without its dialect.
        mlir: the operation, for its attributes.
        inner: the blocks of its regions.
        captured: arrays from outside that these read, each once.
        panel: of a product, the number of the factor that it computes as it goes; None where both are in memory.
        packed: of a product, the number of the factor that is packed before the loop that the product stands in.
        strips: of a product, how its right factor was packed, which is a constant (``known_factors.py``).
        apart: of a product, whether its right factor is packed by a kernel of the program before it.
        parts: of a product, how factors lie in other arrays; None for what lies in memory of its own.
        stage: of a transform of several dimensions (``transforms.py``), the number of the one that it is along.
        streamed: of a sort, the operands whose elements it reads about once each, and can compute as it goes.
    """

    name: str
    operands: tuple[Array, ...]
    mlir: Any
    block: Block
    results: tuple[Array, ...] = ()
    inner: tuple[Block, ...] = ()
    captured: tuple[Array, ...] = ()
    panel: int | None = None
    packed: int | None = None
    strips: Strips | None = None
    apart: bool = False
    parts: tuple[Part | None, ...] = (None, None)
    stage: int = 0
    streamed: tuple[Array, ...] = ()

    @property
    def result(self) -> Array:
        (only,) = self.results
        return only

    @cached_property
    def is_splat(self) -> bool:
        """Whether a constant repeats one element."""
        if self.result.elements == 1:
            return True
        if self.result.element.startswith("complex"):
            # The bindings know nothing of its attribute.
            text = self.mlir.get_asm(print_generic_op_form=True)
            text = text[text.index("dense<") :]
        else:
            text = str(self.mlir.attributes["value"])
        return not text.startswith(("dense<[", 'dense<"'))

    @cached_property
    def has_effects(self) -> bool:
        """Whether it does more than make its results, so that how often and in which order it runs is the program's."""
        if self.name == "host_call":
            return bool(self.mlir.attributes["has_side_effect"].value)
        return self.name in _EFFECTS or any(op.has_effects for block in self.inner for op in block.ops)

    def attribute(self, name: str) -> Any:
        return self.mlir.attributes[name]

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(self.mlir.attributes[name])


@dataclass(eq=False, repr=False)
class Block:
    """Operations in order, and what they give back.

    Attributes:
        owner: the operation that has this block; None for a function's.
        weights: arrays of a function's that a file of weights has, by name.
    """

    owner: Op | None
    arguments: tuple[Array, ...] = ()
    weights: dict[str, Array] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    results: tuple[Array, ...] = ()

    def inside(self, other: Block) -> bool:
        """Whether this is the other block, or one in it."""
        block: Block | None = self
        while block is not None:
            if block is other:
                return True
            block = block.owner.block if block.owner else None
        return False
