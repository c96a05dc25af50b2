"""Sizes of dimensions that belong together, and the equations between those that do not.

Each dimension of each value is a ``Size``. Sizes that an operation makes equal are one (a union-find). What is not
equal is an ``Equation``: a product (reshape), a sum (concatenate), a function (windows), a part (slice). ``solve``
decides what the user left open, first where an equation leaves one choice, then in program order by what changes least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from hloforge.dialect.errors import OptionError
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import location_of
from hloforge.pipelines.framework.manager import op_text

# What an old size becomes elsewhere in the program; None where that is not one size.
Known: TypeAlias = Callable[[int], "int | None"]


@dataclass(eq=False)
class Size:
    """A size: ``old`` in the given program, ``new`` in the smaller one; None while that is open.

    Attributes:
        reason: what decided ``new``, for messages.
    """

    old: int
    new: int | None = None
    reason: str = ""
    parent: Size | None = None

    def root(self) -> Size:
        """The size that stands for all that are equal to this one."""
        root = self
        while root.parent is not None:
            root = root.parent
        while self is not root:  # paths are shortened, so that chains of equal sizes cost no time twice
            assert self.parent is not None
            self.parent, self = root, self.parent
        return root

    def value(self) -> int:
        """The new size; the old one while it is open."""
        root = self.root()
        return root.old if root.new is None else root.new

    def is_open(self) -> bool:
        return self.root().new is None

    def is_changed(self) -> bool:
        return self.value() != self.root().old


def refusal(message: str, op: ir.Operation) -> OptionError:
    """An error at an operation whose sizes do not fit."""
    return OptionError(
        message,
        location=location_of(op),
        op=op_text(op),
        hint="give --dims for the sizes that belong together, such as --dims=4096=64,32=2, or for one dimension of a "
        "parameter: --dims='x[1]=64'; OLD=OLD keeps a size",
    )


def decide(size: Size, new: int, reason: str, op: ir.Operation) -> None:
    """Give an open size its new value. Raises OptionError where another one was decided, or none is left."""
    root = size.root()
    if new < (1 if root.old > 0 else 0):
        raise refusal(f"size {root.old} would become {new} here", op)
    if root.new is not None and root.new != new:
        raise refusal(f"size {root.old} becomes {root.new} ({root.reason}), and this operation needs {new}", op)
    root.new, root.reason = new, reason


def unite(one: Size, other: Size, op: ir.Operation) -> None:
    """Let two sizes be one. Raises OptionError where they became different."""
    first, second = one.root(), other.root()
    if first is second:
        return
    if first.new is not None and second.new is not None and first.new != second.new:
        raise refusal(f"size {first.old} becomes both {first.new} ({first.reason}) and {second.new}", op)
    if first.new is None:
        first.new, first.reason = second.new, second.reason
    second.parent = first


@dataclass(eq=False)
class Equation:
    """What an operation says of sizes that are not equal."""

    op: ir.Operation

    def sizes(self) -> Sequence[Size]:
        raise AssertionError("each kind of equation has sizes")

    def is_affected(self) -> bool:
        return any(size.is_changed() for size in self.sizes())

    def open(self) -> list[Size]:
        """The open sizes, each once."""
        return list({size.root(): None for size in self.sizes() if size.is_open()})

    def follow(self) -> bool:
        """Decide an open size that the others determine; whether one was."""
        return False

    def choose(self, known: Known) -> None:
        """Decide what is open by what changes least. Raises OptionError where that is not one choice.

        Args:
            known: what an old size becomes elsewhere.
        """

    def check(self) -> None:
        """Raises OptionError where the decided sizes do not fit."""


@dataclass(eq=False)
class Product(Equation):
    """The product of some sizes is that of others."""

    left: list[Size]
    right: list[Size]

    def sizes(self) -> list[Size]:
        return [*self.left, *self.right]

    def _solved(self, unknown: Size) -> int:
        """What an open size has to be; 0 if no integer fits."""
        sides = []
        for side in (self.left, self.right):
            others = [size.value() for size in side if size.root() is not unknown]
            sides.append((prod(others), len(side) - len(others)))
        (left, on_left), (right, on_right) = sides
        known, other = (left, right) if on_left else (right, left)
        if on_left + on_right != 1 or known <= 0 or other % known:
            return 0
        return other // known

    def follow(self) -> bool:
        unknown = self.open()
        if len(unknown) != 1 or not self.is_affected():
            return False
        decide(unknown[0], self._solved(unknown[0]), "by a product", self.op)
        return True

    def choose(self, known: Known) -> None:
        if not self.open() or prod(s.value() for s in self.left) == prod(s.value() for s in self.right):
            return
        whole = next((side[0] for side in (self.left, self.right) if len(side) == 1 and side[0].is_open()), None)
        fitting = [size for size in self.open() if self._solved(size)]
        if whole is None and len(fitting) != 1:
            if self._choose_as_elsewhere(known):
                return
            raise refusal(f"{self._text()} does not say which of its sizes shrink", self.op)
        chosen = fitting[0] if whole is None else whole
        decide(chosen, self._solved(chosen.root()), "by a product", self.op)

    def _choose_as_elsewhere(self, known: Known) -> bool:
        """Give open sizes what equal ones became in another place (a gradient's reshape, its forward part's)."""
        news = {size: known(size.old) or size.old for size in self.open()}
        left, right = (prod(news.get(s.root(), s.value()) for s in side) for side in (self.left, self.right))
        if left != right:
            return False
        for size, new in news.items():
            decide(size, new, "as elsewhere", self.op)
        return True

    def check(self) -> None:
        if prod(s.value() for s in self.left) != prod(s.value() for s in self.right):
            raise refusal(f"{self._text()} does not hold", self.op)

    def _text(self) -> str:
        left, right = (" × ".join(_change(size) for size in side) or "1" for side in (self.left, self.right))
        return f"{left} = {right}"


def _change(size: Size) -> str:
    root = size.root()
    return str(root.old) if root.new is None else f"{root.new} (of {root.old})"


@dataclass(eq=False)
class Sum(Equation):
    """Some sizes add up to another one."""

    parts: list[Size]
    total: Size

    def sizes(self) -> list[Size]:
        return [*self.parts, self.total]

    def follow(self) -> bool:
        unknown = self.open()
        if len(unknown) != 1 or not self.is_affected():
            return False
        if self.total.is_open():
            decide(self.total, sum(part.value() for part in self.parts), "by a concatenation", self.op)
            return True
        count = sum(part.root() is unknown[0] for part in self.parts)
        rest = self.total.value() - sum(part.value() for part in self.parts if part.root() is not unknown[0])
        decide(unknown[0], rest // count if rest % count == 0 else 0, "by a concatenation", self.op)
        return True

    def choose(self, known: Known) -> None:
        if self.total.is_open():
            decide(self.total, sum(part.value() for part in self.parts), "by a concatenation", self.op)
            return
        unknown = [part for part in self.open() if part is not self.total.root()]
        if sum(part.value() for part in self.parts) == self.total.value():
            return
        old = self.total.root().old
        for part in unknown:
            scaled, rest = divmod(part.old * self.total.value(), old)
            if rest:
                raise refusal(f"{old} becomes {self.total.value()}, of which {part.old}/{old} is no integer", self.op)
            decide(part, scaled, "by a concatenation", self.op)

    def check(self) -> None:
        found = sum(part.value() for part in self.parts)
        if found != self.total.value():
            raise refusal(f"the parts have {found} together, and the whole {_change(self.total)}", self.op)


@dataclass(eq=False)
class Function(Equation):
    """A size is a function of others, as of a window's.

    Attributes:
        inverse: the usual argument of a function of one, where several have the same result.
    """

    given: list[Size]
    result: Size
    function: Callable[..., int]
    inverse: Callable[[int], int] | None = None

    def sizes(self) -> list[Size]:
        return [*self.given, self.result]

    def follow(self) -> bool:
        if self.result.is_open() and not any(size.is_open() for size in self.given) and self.is_affected():
            decide(self.result, self.function(*(size.value() for size in self.given)), "by a window", self.op)
            return True
        return False

    def choose(self, known: Known) -> None:
        made = self.function(*(size.value() for size in self.given))
        if self.result.is_open():
            decide(self.result, made, "by a window", self.op)
        elif made != self.result.value() and self.given[0].is_open() and (found := self._argument()):
            decide(self.given[0], found, "by a window", self.op)

    def _argument(self) -> int:
        """The first argument that gives the decided result, in the old proportion if it can be; 0 for none."""
        old, rest = self.given[0].root().old, [size.value() for size in self.given[1:]]
        if self.inverse is not None:
            return self.inverse(self.result.value())
        fitting = [size for size in range(1, 2 * old) if self.function(size, *rest) == self.result.value()]
        scaled = old * self.result.value() / max(self.result.root().old, 1)
        return min(fitting, key=lambda size: abs(size - scaled), default=0)

    def check(self) -> None:
        found = self.function(*(size.value() for size in self.given))
        if found != self.result.value():
            given = ", ".join(map(_change, self.given))
            raise refusal(f"of sizes {given} this operation makes {found}, not {_change(self.result)}", self.op)


@dataclass(eq=False)
class Part(Equation):
    """A size of which another one is a part, with bounds that follow both, as of slices and paddings.

    Attributes:
        usual: the part where nothing else decides it, of the old and the new size of the whole.
    """

    whole: Size
    part: Size
    usual: Callable[[int, int], int]

    def sizes(self) -> list[Size]:
        return [self.whole, self.part]

    def follow(self) -> bool:
        if self.part.is_open() and self.whole.is_changed():
            decide(self.part, self.usual(self.whole.root().old, self.whole.value()), "as a part", self.op)
            return True
        return False

    def check(self) -> None:
        if self.part.value() > self.whole.value():
            raise refusal(f"the part {_change(self.part)} exceeds the whole {_change(self.whole)}", self.op)


@dataclass
class System:
    """All equations of a program, in its order."""

    equations: list[Equation] = field(default_factory=list)

    def solve(self) -> None:
        """Decide the sizes that the user left open. Raises OptionError, located, where they do not fit."""
        concerned: dict[Size, list[Equation]] = {}
        for equation in self.equations:
            for size in {size.root(): None for size in equation.sizes()}:
                concerned.setdefault(size, []).append(equation)
        # Parts last: what else decides their sizes comes first.
        self._follow([one for one in self.equations if not isinstance(one, Part)], concerned)
        for equation in self.equations:
            if equation.is_affected() and (before := equation.open()):
                if not equation.follow():
                    equation.choose(lambda old: _elsewhere(concerned, old))
                self._follow(_concerned(before, concerned), concerned)
        for equation in self.equations:
            if equation.is_affected():
                equation.check()

    @staticmethod
    def _follow(first: Sequence[Equation], concerned: dict[Size, list[Equation]]) -> None:
        waiting = list(reversed(first))
        while waiting:
            equation = waiting.pop()
            before = equation.open()
            if before and equation.follow():
                waiting += _concerned(before, concerned)


def _elsewhere(sizes: Iterable[Size], old: int) -> int | None:
    """What the decided sizes of that old value became, if that is one."""
    found = {size.new for size in sizes if size.old == old and size.new is not None}
    return found.pop() if len(found) == 1 else None


def _concerned(before: Sequence[Size], concerned: dict[Size, list[Equation]]) -> list[Equation]:
    """The equations, parts left out, of the sizes that were open before and are not now."""
    decided = [size for size in before if not size.is_open()]
    return [one for size in decided for one in concerned[size] if not isinstance(one, Part)]
