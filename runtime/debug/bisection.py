"""Reduce a failing program to the smallest one that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import AnyOp, in_context
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.delta_debugging.edits import edits, resizes
from hloforge.pipelines.delta_debugging.outline import as_flat_program, body, computing, outline
from hloforge.pipelines.delta_debugging.search import minimized
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.debug.observation import Suspect, Values, cone, suspects
from hloforge.runtime.debug.oracle import DIFFERS, Candidate, Oracle, OutOfBudgetError, Symptom
from hloforge.runtime.debug.target_process import TargetError
from hloforge.runtime.session.convention import leaf_values

Say = Callable[[str], None]

# Of the operations that go wrong first, and how many steps before them are taken along.
_SUSPECTS = 3
_DEPTHS = (0, 1, 3, 8)
# Constants of more elements become parameters where they may.
_LARGE = 16
_STRUCTURE = frozenset({"func.func", "func.return", "stablehlo.return", "builtin.module"})


@dataclass
class Bisection:
    """A search; ``best`` is what it has come to, whenever it is stopped.

    Attributes:
        symptom: what goes wrong, in the same way all the while.
        suspects: operations that go wrong on right operands.
        notes: what was found out on the way.
        finished: whether the search came to its end.
        interrupted: whether Ctrl-C ended it.
    """

    oracle: Oracle
    symptom: Symptom
    best: Candidate
    say: Say = lambda _: None
    suspects: list[Suspect] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    finished: bool = False
    interrupted: bool = False
    _worst: tuple[int, ...] = ()

    def run(self) -> None:
        """Search; returns when nothing more can be left out, when the time is over, or at Ctrl-C."""
        try:
            self._search()
            self.finished = True
        except OutOfBudgetError:
            self.notes.append("the time was over before the search: --budget=SECONDS gives it more")
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.append("stopped by Ctrl-C before the search ended")

    def confirm(self) -> None:
        """Compile the best program with all attempts for speed too, if the search left them out."""
        recipe = self.oracle.recipe
        if not recipe.quick or self.interrupted:
            return
        self.oracle.recipe = replace(recipe, quick=False)
        try:
            if not self.symptom.is_like(self.oracle.symptom(self.best)):
                self.notes.append(
                    "the small program compiles in the end, with other flags of IREE's compiler than the last"
                )
        except OutOfBudgetError:
            self.oracle.recipe = recipe

    @property
    def count(self) -> int:
        """Operations of the best program, those of regions included; constants and terminators are none."""
        return operation_count(self.best.program)

    def _search(self) -> None:
        if self.symptom.kind == DIFFERS:
            self._localize()
        self._leave_out()
        # What got smaller may get smaller in another way; two rounds find nearly all.
        for _ in range(3):
            before = self.best
            if self._edit():
                self._leave_out()
            self._resize()
            self._constants_to_parameters()
            if self.best is before:
                break
        self._simplify_arguments()

    def _still(self, candidate: Candidate | None, what: str) -> bool:
        """Whether a candidate fails in the same way; then it is the best so far."""
        if candidate is None:
            return False
        self.say(f"{self.count} operations, {self.oracle.tried} tried: {what}")
        found = self.oracle.symptom(candidate)
        if found is None or not self.symptom.is_like(found):
            return False
        self.best, self._worst = candidate, found.worst
        return True

    def _values(self) -> Values | None:
        return Values(self.best, self.oracle) if self.best.arguments is not None else None

    def _part(self, values: Values | None, program: Program, keep: Iterable[int]) -> Candidate | None:
        try:
            part = outline(program, set(keep))
        except Error:
            return None
        return Candidate(part.program) if values is None else values.of(part)

    def _localize(self) -> None:
        """Look at all values at once, and try the operations that go wrong first alone."""
        self.say("comparing the values of all operations")
        values = Values(self.best, self.oracle)
        try:
            self.suspects = suspects(values, self.oracle)
        except (TargetError, Error) as error:
            self.notes.append(f"inner values could not be compared: {error.message}")
            return
        if not self.suspects:
            self.notes.append(
                "a program that returns its inner values has them all right: returning them hides the fault"
            )
        whole = self.best.program
        for suspect in self.suspects[:_SUSPECTS]:
            for depth in _DEPTHS:
                part = self._part(values, whole, cone(whole, suspect.number, depth))
                if self._still(part, f"{suspect.op[:60]} with {depth} steps before it"):
                    return

    def _leave_out(self) -> None:
        """Delta debugging of the operations of ``main``."""
        whole = self.best.program
        values = self._values()
        numbers = computing(whole)

        def holds(keep: list[int]) -> bool:
            return self._still(self._part(values, whole, keep), f"{len(keep)} of {len(numbers)} in main")

        if len(numbers) > 1:
            minimized(numbers, holds)

    def _edit(self) -> bool:
        """Bypass operations, take branches and iterations out of control flow. Whether anything helped."""
        helped = False
        while self._edited_once():
            helped = True
        return helped

    def _edited_once(self) -> bool:
        for edit in edits(self.best.program):
            changed = edit(self.best.program)
            if changed is None or operation_count(changed) >= self.count:
                continue
            if self._still(self._without_unused(changed), edit.what):
                return True
        return False

    def _without_unused(self, changed: Program) -> Candidate | None:
        """Without the parameters that nothing uses any more."""
        try:
            part = outline(changed, computing(changed))
        except Error:
            return None
        if self.best.arguments is None:
            return Candidate(part.program)
        return Candidate(part.program, tuple(self.best.arguments[number] for _, number in part.parameters))

    def _resize(self) -> None:
        while any(self._smaller(edit(self.best.program), edit.what) for edit in resizes(self.best.program)):
            pass

    def _smaller(self, changed: Program | None, what: str) -> bool:
        """With the first elements of the arguments, or those around the worst one."""
        if changed is None:
            return False
        starts = dict.fromkeys(((), self._worst))
        return any(self._still(self._resized(changed, start), what) for start in starts)

    def _resized(self, changed: Program, start: tuple[int, ...]) -> Candidate | None:
        if self.best.arguments is None:
            return Candidate(changed)
        leaves = [leaf.shape.dimensions for leaf in changed.signature.flat_parameters]
        cut = [_cut(array, sizes, start) for array, sizes in zip(self.best.arguments, leaves, strict=True)]
        if any(array.shape != sizes for array, sizes in zip(cut, leaves, strict=True)):
            return None
        return Candidate(changed, tuple(cut))

    def _constants_to_parameters(self) -> None:
        """Large constants make a reproducer unreadable; a program that needs them keeps them."""
        for number in reversed(range(len(body(self.best.program)))):
            ops = body(self.best.program)
            if number < len(ops) and _is_large(ops[number]):
                self._still(self._with_parameter(number), "a constant as a parameter")

    def _with_parameter(self, number: int) -> Candidate | None:
        copy = self.best.program.clone()
        op = body(copy)[number]
        value: Any = None
        if self.best.arguments is not None:
            value = self._value_of_constant(number)
            if value is None:
                return None
        with in_context(copy.module):
            block = op.block
            op.results[0].replace_all_uses_with(block.add_argument(op.results[0].type, op.location))
            op.erase()
            flat = as_flat_program(copy)
        if self.best.arguments is None:
            return Candidate(flat)
        return Candidate(flat, (*self.best.arguments, value))

    def _value_of_constant(self, number: int) -> Any:
        try:
            part = outline(self.best.program, {number}, results=[(number, 0)])
            return np.asarray(self.oracle.engines[0].prepare(part.program)())
        except Error:
            return None

    def _simplify_arguments(self) -> None:
        """Zeros, ones, and round numbers, where they do."""
        for number in range(len(self.best.arguments or ())):
            for array in _simpler((self.best.arguments or ())[number]):
                given = list(self.best.arguments or ())
                given[number] = array
                if self._still(replace(self.best, arguments=tuple(given)), f"simpler values of argument {number}"):
                    break


def _cut(array: np.ndarray[Any, Any], sizes: Sequence[int], start: Sequence[int]) -> np.ndarray[Any, Any]:
    """So many elements of an array, from ``start`` on if that is an index of it, else from the first on."""
    begins = start if len(start) == array.ndim else [0] * array.ndim
    rows = zip(array.shape, sizes, begins, strict=True)
    parts = [slice(begin := max(0, min(first, have - size)), begin + size) for have, size, first in rows]
    return np.ascontiguousarray(array[tuple(parts)])


def _is_large(op: AnyOp) -> bool:
    if op.name != "stablehlo.constant":
        return False
    type_ = op.results[0].type
    return type_.has_static_shape and int(np.prod(type_.shape)) > _LARGE


def _simpler(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    with np.errstate(all="ignore"):
        found = [np.zeros_like(array), np.ones_like(array)]
        if array.dtype.kind == "f":
            found += [np.round(array), np.round(array * 8) / array.dtype.type(8)]
    yield from (simple for simple in found if simple.tobytes() != array.tobytes())


def operation_count(program: Program) -> int:
    """Operations of a program, those in regions included; constants, functions and terminators are none."""
    with in_context(program.module):
        return sum(op.name not in _STRUCTURE and op.name != "stablehlo.constant" for op in operations(program.module))


def flattened(program: Program, arguments: Sequence[Any] | None) -> Candidate:
    """A program normalized and without names, layouts, tuples and donation at its border, with the arguments' leaves.

    Raises:
        Error: normalization fails, or nothing that is computed is returned.
    """
    copy = program.clone()
    normalize(copy.module)
    part = outline(copy, computing(copy))
    if arguments is None:
        return Candidate(part.program)
    leaves = leaf_values(program.signature, arguments)
    return Candidate(part.program, tuple(np.asarray(leaves[number]) for _, number in part.parameters))
