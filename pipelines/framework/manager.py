"""The pass manager: runs Python and native passes in order, verifies, audits, times and dumps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hloforge.dialect import budget
from hloforge.dialect.errors import Error, PassError
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import counted, is_large, location_of, operations
from hloforge.dialect.shapes import remembered_shapes
from hloforge.pipelines.framework.defects import copy_of, find_defect
from hloforge.pipelines.framework.passes import NativePass, NativePassError, Pass


@dataclass(frozen=True)
class Timing:
    """Seconds of wall time that one pass took, verification left out."""

    name: str
    seconds: float


@dataclass
class PassManager:
    """Runs passes over a module in place.

    Attributes:
        passes: in order.
        verify: check the IR at the end, and before MLIR's own passes, which crash on what is invalid. A check takes as
            long as most passes of ours.
        dump_after: names of passes after which the module is written (``all`` for every one).
        dump_to: a folder for the dumps (``003-canonicalize.mlir``); None writes to standard error.
        timings: filled by ``run``.
    """

    passes: Sequence[Pass]
    verify: bool = True
    dump_after: frozenset[str] = frozenset()
    dump_to: Path | None = None
    timings: list[Timing] = field(default_factory=list)
    on_pass: Callable[[Pass], None] | None = None

    def run(self, module: ir.Module) -> None:
        """Run every pass.

        Raises:
            Error: what a pass raises.
            DefectError: a pass left invalid IR, or failed by another exception.
            PassError: a pass left what it promised to remove.
        """
        # What passes got, to find out which of them is to blame.
        given = copy_of(module) if self.verify else None
        done: list[Pass] = []
        try:
            with counted(module), remembered_shapes():
                self._run(module, done)
        except NativePassError as error:
            raise (error if given is None else find_defect(given, done, error)) from None
        except (Error, MemoryError):
            raise
        except Exception as error:
            if given is None:
                raise
            raise find_defect(given, done, error) from error

    def _run(self, module: ir.Module, done: list[Pass]) -> None:
        is_checked = True
        # The names of what is in the module; None after a pass, which may have changed it.
        present: frozenset[str] | None = None
        for number, entry in enumerate(self.passes):
            # In a large module, passes look for single names in less time than names take to collect.
            concerned = entry.concerned()
            if concerned is not None and not is_large(module):
                present = present or names_below(module)
                if present.isdisjoint(concerned):
                    self.timings.append(Timing(str(entry), 0.0))
                    self._dump_if_asked(module, number, entry)
                    continue
            present = None
            # MLIR's own passes crash on what is invalid.
            if isinstance(entry, NativePass) and not is_checked:
                self._check(module)
            done.append(entry)
            budget.enter(f"the pass {entry}")
            if self.on_pass:
                self.on_pass(entry)
            start = time.perf_counter()
            entry.run(module)
            self.timings.append(Timing(str(entry), time.perf_counter() - start))
            is_checked = False
            _audit(module, entry)
            self._dump_if_asked(module, number, entry)
        self._check(module)

    def _check(self, module: ir.Module) -> None:
        """Raise an MLIRError if what passes left is invalid."""
        if self.verify:
            with in_context(module):
                module.operation.verify()

    def _dump_if_asked(self, module: ir.Module, number: int, entry: Pass) -> None:
        if not self.dump_after & {"all", entry.name, str(entry)}:
            return
        text = str(module.operation.get_asm(large_elements_limit=16))
        if self.dump_to is None:
            sys.stderr.write(f"// -----// IR after {entry} //----- //\n{text}\n")
            return
        self.dump_to.mkdir(parents=True, exist_ok=True)
        label = "".join(char if char.isalnum() or char in "-_" else "_" for char in str(entry))[:60]
        (self.dump_to / f"{number:03d}-{label}.mlir").write_text(text)


def names_below(module: ir.Module) -> frozenset[str]:
    """Names of operations, and of their dialects with a point."""
    names = {op.name for op in operations(module)}
    return frozenset(names | {name[: name.index(".") + 1] for name in names})


def _audit(module: ir.Module, entry: Pass) -> None:
    if not entry.removes:
        return
    left = operations(module, entry.removes)
    if left:
        raise PassError(
            f"pass {entry} promised to remove {left[0].name} and left {len(left)}",
            location=location_of(left[0]),
            op=op_text(left[0]),
        )


def op_text(op: AnyOp) -> str:
    """An operation on one line, constants and regions shortened; of a long one the beginning and the types."""
    text = " ".join(str(op.get_asm(large_elements_limit=4, skip_regions=True)).split())
    return text if len(text) <= 240 else f"{text[:120]} … {text[-117:]}"
