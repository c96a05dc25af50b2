"""What a pass is: a frozen dataclass whose fields are its options."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, Final, TypeVar

from hloforge.dialect.errors import Location, PassError, PipelineError
from hloforge.dialect.mlir import in_context, ir, passmanager
from hloforge.dialect.operations import file_location
from hloforge.pipelines.framework.facts import NORMALIZED, NOTHING, REWRITES, Contract, Fact, Facts
from hloforge.pipelines.framework.machine import AVX2, Machine
from hloforge.pipelines.framework.patterns import Pattern, apply_patterns

CPU: Final = frozenset({"cpu"})
VULKAN: Final = frozenset({"vulkan"})
CUDA: Final = frozenset({"cuda"})
TARGETS: Final = CPU | VULKAN | CUDA


@dataclass(frozen=True)
class Pass(ABC):
    """A rewriting of a module in place: valid IR in, valid IR out.

    Attributes:
        name: kebab-case; the file, class and test are spelled alike.
        removes: names of operations that are gone afterwards; a leftover is an error (checked by the manager).
        needs: names of operations, or dialects with a point (``sdy.``), without which the pass leaves a module as it
            is, so that the manager may skip it; None if it looks itself.
        targets: the kinds of targets whose pipelines run the pass. Code for a processor's registers and caches is of
            use on processors alone.
        requires: what holds of every module that the pass takes.
        establishes: what holds of every module that it leaves.
        breaks: what may no longer hold of a module that it leaves. A pass that keeps the decision who may overwrite
            what (``Fact.UPDATES_DECIDED``) says so here, with a comment why.
    """

    name: ClassVar[str]
    removes: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[str] | None] = None
    targets: ClassVar[frozenset[str]] = TARGETS
    requires: ClassVar[Facts] = NORMALIZED
    establishes: ClassVar[Facts] = NOTHING
    breaks: ClassVar[Facts] = REWRITES

    @abstractmethod
    def run(self, module: ir.Module) -> None:
        """Rewrite the module. Raises a located ``hloforge.Error`` for what it cannot do."""

    def concerned(self) -> frozenset[str] | None:
        """``needs``, of this instance."""
        return self.needs

    def contract(self) -> Contract:
        """What the order of a pipeline is checked by."""
        return Contract(str(self), self.requires, self.establishes, self.breaks)

    def __str__(self) -> str:
        """The pass in the grammar of textual pipelines: ``name{option=value}``."""
        return self._text

    @cached_property
    def _text(self) -> str:
        options = [
            f"{name}={_option_text(value)}" for name, (value, default) in self.options().items() if value != default
        ]
        return self.name + ("{" + " ".join(options) + "}" if options else "")

    def options(self) -> dict[str, tuple[Any, Any]]:
        """The options in kebab-case, each with its value and its default; of a machine, its numbers."""
        found: dict[str, tuple[Any, Any]] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Machine):
                found |= {name: (number, _USUAL[name]) for name, number in value.settings().items()}
            else:
                found[field.name.replace("_", "-")] = value, field.default
        return found


_USUAL: Final = AVX2.settings()


def _option_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


@dataclass(frozen=True)
class PatternPass(Pass):
    """A pass that applies patterns, and nothing else.

    Attributes:
        patterns: as of ``apply_patterns``.
    """

    patterns: ClassVar[tuple[Pattern, ...]]

    def __init_subclass__(cls) -> None:
        cls.needs = frozenset(entry.root for entry in cls.patterns)

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, self.patterns)


# Of MLIR's and StableHLO's passes, those that establish or break something.
NATIVE_CONTRACTS: Final[dict[str, Contract]] = {
    entry.name: entry
    for entry in (
        Contract("canonicalize", breaks=frozenset({Fact.SAFE_FILLS, Fact.SPLIT_CONSTANTS, Fact.COUNTED_CARRIES})),
        Contract("chlo-legalize-to-stablehlo", establishes=frozenset({Fact.NO_CHLO})),
    )
}


# Operations that StableHLO's own pass replaces or refuses.
_DEPRECATED: Final = (
    *("broadcast", "create_token", "cross-replica-sum", "dot", "einsum", "map", "rng"),
    *("torch_index_select", "unary_einsum"),
)
# And those that only read operations of some names.
NATIVE_NEEDS: Final[dict[str, frozenset[str]]] = {
    "func.func(chlo-legalize-to-stablehlo)": frozenset({"chlo."}),
    "func.func(stablehlo-legalize-deprecated-ops)": frozenset(f"stablehlo.{name}" for name in _DEPRECATED),
}


class NativePassError(PassError):
    """A pass of MLIR's or StableHLO's does not take the program."""


@dataclass(frozen=True)
class NativePass(Pass):
    """Passes of MLIR and StableHLO, by MLIR's own pipeline text (``canonicalize``, ``func.func(cse)``)."""

    name: ClassVar[str] = "native"
    pipeline: str = ""

    def concerned(self) -> frozenset[str] | None:
        return NATIVE_NEEDS.get(self.pipeline)

    def contract(self) -> Contract:
        """A contract for each pass that the text names; their order inside it is MLIR's to check."""
        stated = [NATIVE_CONTRACTS[name] for name in NATIVE_CONTRACTS if name in re.findall(r"[\w-]+", self.pipeline)]
        return Contract(
            self.pipeline,
            NORMALIZED.union(*(each.requires for each in stated)),
            NOTHING.union(*(each.establishes for each in stated)),
            REWRITES.union(*(each.breaks for each in stated)),
        )

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            manager = parse_native(self.pipeline)
            # The manager verifies before and after native passes.
            manager.enable_verifier(False)
            try:
                manager.run(module.operation)
            except ir.MLIRError as error:
                raise NativePassError(
                    f"pass {self.pipeline}: {diagnostic_text(error)}", location=place(error)
                ) from None

    def __str__(self) -> str:
        return self.pipeline


def parse_native(pipeline: str) -> Any:
    """MLIR's own parser of ``builtin.module(pipeline)``, in the current context. Raises PipelineError."""
    try:
        return passmanager.PassManager.parse(f"builtin.module({pipeline})")
    except ValueError as error:
        message = str(error).strip().splitlines()[0]
        raise PipelineError(message.rpartition("error: ")[2].removeprefix("<Pass-Options-Parser>: ")) from None


def diagnostic_text(error: Any) -> str:
    """The first diagnostic of an MLIRError, on one line."""
    diagnostics = getattr(error, "error_diagnostics", None)
    return str(diagnostics[0].message if diagnostics else error).strip().splitlines()[0]


def place(error: Any) -> Location | None:
    """Where the operation is that an MLIRError names first, in its diagnostics or their notes."""
    for diagnostic in getattr(error, "error_diagnostics", None) or ():
        for one in (diagnostic, *diagnostic.notes):
            # Diagnostics have locations of no class, which tell nothing.
            if found := file_location(ir.Location.from_attr(one.location.attr, one.location.context)):
                return found
    return None


PassType = TypeVar("PassType", bound=type[Pass])
_REGISTRY: dict[str, type[Pass]] = {}


def register(cls: PassType) -> PassType:
    """Class decorator: make the pass known by its name to textual pipelines. A second use of a name raises."""
    if cls.name in _REGISTRY:
        raise ValueError(f"pass {cls.name} is registered twice")
    _REGISTRY[cls.name] = cls
    return cls


def registered() -> dict[str, type[Pass]]:
    """Every registered pass by name."""
    return dict(_REGISTRY)


def load_modules(package: ModuleType) -> None:
    """Import every module of a folder of passes, so that each registers what it defines."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
