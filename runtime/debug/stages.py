"""Compilations that can be repeated in part: without some passes, without any of ours, or up to one of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hloforge.dialect.errors import OptionError
from hloforge.dialect.program import Program
from hloforge.pipelines.catalogue import passes_by_name
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import Pass
from hloforge.pipelines.named import pipeline
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.by_iree import compile_module, compile_unoptimized
from hloforge.runtime.compile.generated import generated
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.compile.weight_placement import place_weights
from hloforge.runtime.options import CompileOptions

if TYPE_CHECKING:
    from hloforge.dialect.mlir import ir

# What ``compile_recipe`` says before our own code generator runs.
CODE_GENERATION = "code generation"


@dataclass(frozen=True)
class Recipe:
    """How to compile a program.

    Attributes:
        target: as of ``Target.parse``.
        without: passes to leave out.
        plain: IREE's compiler alone, on the normalized program.
        upto: how many passes of the target's pipeline to run; None for all.
        quick: only with the flags that IREE's compiler gets last, when it failed with all others.
        by_iree: IREE's compiler makes the code, also of what our own code generator takes.
    """

    target: str = "cpu"
    options: CompileOptions = field(default_factory=CompileOptions)
    without: frozenset[str] = frozenset()
    plain: bool = False
    upto: int | None = None
    quick: bool = False
    by_iree: bool = False

    @property
    def may_generate(self) -> bool:
        """Whether our own code generator is asked, as it is for a program that nobody examines."""
        return not (self.by_iree or self.plain or self.quick or self.without) and self.upto is None

    def to_json(self) -> dict[str, Any]:
        own = {"target": self.target, "plain": self.plain, "upto": self.upto, "quick": self.quick}
        own |= {"by_iree": self.by_iree, "without": sorted(self.without)}
        return own | {"options": options_json(self.options)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Recipe:
        return cls(**(found | {"options": options_of(found["options"]), "without": frozenset(found["without"])}))

    def passes(self) -> list[Pass]:
        """The passes of the target's pipeline that run."""
        chosen = [entry for entry in _pipeline(self.target) if self._runs(entry)]
        return chosen if self.upto is None else chosen[: self.upto]

    def _runs(self, entry: Pass) -> bool:
        return not {entry.name, str(entry)} & self.without


def _pipeline(target: str) -> list[Pass]:
    return pipeline(Target.parse(target).pipeline)


def options_json(options: CompileOptions) -> dict[str, Any]:
    """The options as JSON, without what is no data; ``options_of`` reads them back."""
    return {entry.name: _plain(getattr(options, entry.name)) for entry in fields(options) if entry.compare}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | frozenset):
        return [_plain(member) for member in value]
    return dict(value) if hasattr(value, "items") else value


def options_of(found: dict[str, Any]) -> CompileOptions:
    """``CompileOptions`` that ``options_json`` wrote."""
    sets = {name: frozenset(found[name]) for name in ("host_calls", "dump_after")}
    tuples = {name: tuple(found[name]) for name in ("flags", "machine")}
    tuples["libraries"] = tuple(map(Path, found["libraries"]))
    shapes = {name: tuple(sizes) for name, sizes in found["shapes"].items()}
    return CompileOptions(**(found | sets | tuples | {"shapes": shapes}))


def compile_recipe(program: Program, recipe: Recipe, say: Callable[[str], None] = lambda _: None) -> Executable:
    """Compile a program of static shapes for one device; it is left as it was.

    Args:
        say: told of each pass before it runs (``pass NAME``), of ``iree-compile``, and of ``code generation``.

    Raises:
        Error: what a pass or IREE's compiler raises.
    """
    program, options = place_weights(program, recipe.options)
    target = Target.parse(recipe.target)
    if recipe.may_generate:
        say(CODE_GENERATION)
        if (made := generated(program, target, options)) is not None:
            return made

    lowered = program.clone()
    if recipe.plain:
        say("pass normalize")
        normalize(lowered.module)
    else:
        PassManager(recipe.passes(), on_pass=lambda entry: say(f"pass {entry}")).run(lowered.module)
    say("iree-compile")
    if recipe.plain or recipe.quick:
        return compile_unoptimized(lowered, target, options, last=not recipe.plain)
    return compile_module(lowered, target, options)


@dataclass(frozen=True)
class Stage:
    """What a pass that changed something has left: the module as bytecode, and how many passes had run by then."""

    name: str
    upto: int
    module: bytes


def check_passes(recipe: Recipe) -> None:
    """Raises OptionError if a pass shall be left out that does not exist."""
    known = {name for entry in _pipeline(recipe.target) for name in (entry.name, str(entry))}
    for name in sorted(recipe.without - known - passes_by_name().keys()):
        raise OptionError(f"--without: no pass is called {name!r}", hint="hloforge opt --list-passes shows all")


def stages_of(program: Program, recipe: Recipe) -> Iterator[Stage]:
    """Every pass that changes the program."""
    copy = program.clone()
    before = bytecode(copy.module)
    for number, entry in enumerate(recipe.passes()):
        PassManager([entry]).run(copy.module)
        after = bytecode(copy.module)
        if after != before:
            yield Stage(str(entry), number + 1, after)
        before = after


def bytecode(module: ir.Module) -> bytes:
    """A module as MLIR bytecode, with its locations."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()
