"""Locate a pass's fault: which pass, at which line of the user's file, and the IR before it.

Verifying after every pass takes as long as the passes, so the manager verifies now and then. When something is invalid,
or a pass fails by an exception of Python's, the passes run again over a copy of the module, one by one, each verified:
MLIR's own ones too, which otherwise run as one pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hloforge.dialect.errors import Error, Location, PassError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.pipelines.framework.passes import NativePass, Pass, diagnostic_text, place

_HINT = "this is a defect of hloforge: please report it, with the program"


class DefectError(PassError):
    """A pass left invalid IR, or failed by an exception that is no error of hloforge's.

    Args:
        pipeline: the text of the pass, for ``hloforge opt --pipeline``; of several if no one of them is to blame.
        before: the module before it, as MLIR text with locations.
    """

    def __init__(self, message: str, *, pipeline: str, before: str, location: Location | None = None) -> None:
        super().__init__(message, location=location, hint=_HINT)
        self.pipeline = pipeline
        self.before = before

    def __reduce__(self) -> Any:
        return _restored, (self.message, self.pipeline, self.before, self.location, self.notes, self.op)


def _restored(
    message: str, pipeline: str, before: str, location: Location | None, notes: tuple[str, ...], op: str
) -> DefectError:
    error = DefectError(message, pipeline=pipeline, before=before, location=location)
    error.notes, error.op = notes, op
    return error


def copy_of(module: ir.Module) -> ir.Module:
    """A copy of a module in its own context: constants are shared, so that it takes no more than its operations."""
    with in_context(module):
        copy = ir.Module.create(module.operation.location)
        for name in module.operation.attributes:
            copy.operation.attributes[name] = module.operation.attributes[name]
        with ir.InsertionPoint(copy.body):
            for op in module.body.operations:
                op.operation.clone()
    return copy


def find_defect(module: ir.Module, passes: Sequence[Pass], seen: Exception) -> DefectError:
    """Run passes again, and blame the first that leaves invalid IR or fails.

    Args:
        module: as it was before the first of them; it is rewritten.
        passes: those that ran, the last of which may have failed.
        seen: what was raised: an MLIRError of the verifier, or an exception of a pass.
    """
    for entry in _singly(passes):
        before = copy_of(module)
        try:
            entry.run(module)
            with in_context(module):
                module.operation.verify()
        except ir.MLIRError as error:
            return _of_ir(entry, before, error)
        except Error as error:
            # MLIR's own pass says so itself; one of ours that is meant for the user has been raised by the first run.
            return _defect(entry, before, error.message.removeprefix(f"pass {entry}: "), error.location)
        except Exception as error:
            return _defect(entry, before, f"{type(error).__name__}: {_first_line(error)}", None)
    names = ", ".join(map(str, passes))
    what = diagnostic_text(seen) if isinstance(seen, ir.MLIRError) else _first_line(seen)
    return DefectError(
        f"one of the passes {names} left invalid IR, which a second run did not: {what}",
        pipeline=names,
        before=_text(module),
        location=place(seen),
    )


def _of_ir(entry: Pass, before: ir.Module, error: Any) -> DefectError:
    return _defect(entry, before, diagnostic_text(error), place(error), "left invalid IR")


def _defect(
    entry: Pass, before: ir.Module, reason: str, location: Location | None, what: str = "failed"
) -> DefectError:
    return DefectError(
        f"pass {entry} {what}: {reason}", pipeline=str(entry), before=_text(before), location=location or _main(before)
    )


def _main(module: ir.Module) -> Location | None:
    """Where the program begins, if nothing tells more."""
    return next((found for op in operations(module) if (found := location_of(op))), None)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or "no message"


def _text(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=True))


def _singly(passes: Sequence[Pass]) -> Iterator[Pass]:
    """Each pass alone, those of MLIR's pipelines too; what is around several of them is around each."""
    for entry in passes:
        if isinstance(entry, NativePass):
            yield from map(NativePass, _single_texts(entry.pipeline))
        else:
            yield entry


def _single_texts(pipeline: str) -> list[str]:
    """``a,func.func(b,c{x=1,2})`` to ``a``, ``func.func(b)``, ``func.func(c{x=1,2})``."""
    found: list[str] = []
    for part in _split(pipeline):
        anchor, opened, rest = part.partition("(")
        if opened and rest.endswith(")") and "{" not in anchor:
            found += [f"{anchor}({inner})" for inner in _single_texts(rest[:-1])]
        else:
            found.append(part)
    return found


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char in "({[") - (char in ")}]")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]
