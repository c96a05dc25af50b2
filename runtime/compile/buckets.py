"""Programs of bounded sizes: one for each bucket, compiled when a call first needs it, or all into one file.

Where an operation has no rule for padding, the program is compiled for the sizes of each call instead, and says which.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import Any, Protocol, TypeAlias

from hloforge.dialect.bounded_sizes import BoundedSize, Padded
from hloforge.dialect.errors import OptionError, UnsupportedError
from hloforge.dialect.program import Program
from hloforge.pipelines.padding.open_sizes import names_of, open_sizes
from hloforge.pipelines.weights import take_constants
from hloforge.runtime.artifact.bucket_file import in_one_file
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.bucket_sizes import powers
from hloforge.runtime.compile.families import padding_of
from hloforge.runtime.compile.specialize import SpecializingExecutable, SpecializingSession
from hloforge.runtime.session.bucketed import Bucketed, Loaded
from hloforge.runtime.session.session import Session, load

# A compiled bucket, and the cuts of its results.
Made: TypeAlias = tuple[Executable, tuple[tuple[int, int], ...]]
# Each takes its time to compile, and its room in a file.
MOST_IN_FILE = 64


def bucket_sizes(size: BoundedSize, wanted: Mapping[str, Sequence[int]] | str) -> tuple[int, ...]:
    """The sizes at which a bound is cut, ascending.

    Args:
        wanted: ``ALL``, or sizes by the name of a bounded size.

    Raises:
        OptionError: nothing bounds the size.
    """
    named = {} if isinstance(wanted, str) else wanted
    if size.name in named:
        if size.most is not None and max(named[size.name]) > size.most:
            raise OptionError(f"the size {size.name} is at most {size.most}", hint=f"{size.name}=1..{size.most}")
        return tuple(named[size.name])
    if size.most is None:
        raise OptionError(
            f"nothing bounds the size {size.name}",
            hint=f"buckets={{{size.name!r}: '1..512'}}, --buckets={size.name}=1..512, or bounds of the export itself",
        )
    return powers(max(size.least, 1), size.most)


@dataclass(frozen=True)
class BucketedExecutable(SpecializingExecutable):
    """A program that is compiled for buckets of sizes.

    Attributes:
        bounded: its sizes that have bounds.
        cuts: for each, the sizes of its buckets, ascending.
        source: makes the buckets' programs.
        weights_by_name: large constants of all buckets, equal ones once.
    """

    bounded: tuple[BoundedSize, ...] = field(kw_only=True)
    cuts: tuple[tuple[int, ...], ...] = field(kw_only=True)
    source: Source = field(kw_only=True, repr=False)
    weights_by_name: dict[str, Any] = field(default_factory=dict, kw_only=True, repr=False)
    _made: dict[tuple[int, ...], Made] = field(default_factory=dict, kw_only=True, repr=False)

    def load(self, *, device: str | None = None, threads: int | Sequence[int] | None = None, **options: Any) -> Session:
        return BucketSession(self, device, threads, options)

    def compiled(self, key: tuple[int, ...]) -> Made:
        """The program of a bucket, compiled once. Raises UnsupportedError as of ``Source.padded``."""
        if key not in self._made:
            padded = self.source.padded(key)
            program = padded.program.clone()
            inline_dense_resources(program.module)
            self._made[key] = self.compile_form(take_constants(program, self.weights_by_name)), padded.cuts
        return self._made[key]

    def in_one_file(self) -> Executable:
        """A vmfb that holds all buckets, and the weights once.

        Raises:
            OptionError: there are too many of them.
            UnsupportedError: the largest bucket is refused; others are left out with a warning.
        """
        keys = list(itertools.product(*self.cuts))
        if len(keys) > MOST_IN_FILE:
            counts = ", ".join(f"{size.name}: {len(cuts)}" for size, cuts in zip(self.bounded, self.cuts, strict=True))
            raise OptionError(
                f"{len(keys)} buckets for one file, more than {MOST_IN_FILE} ({counts})",
                hint="name fewer sizes: buckets={'x.0': [1, 8, 64]}, --buckets=x.0=1,8,64",
            )
        # The largest first: any tool of IREE runs it.
        programs: dict[tuple[int, ...], Made] = {}
        for key in sorted(keys, reverse=True):
            try:
                programs[key] = self.compiled(key)
            except UnsupportedError as error:
                # Such as a size of 1, which PyTorch's exports may refuse.
                if not programs:
                    raise
                warnings.warn(f"the file has no bucket of {key}: {error.message}", stacklevel=3)
        made = in_one_file(self.manifest, self.bounded, programs, self.weights_by_name)
        return replace(made, host=self.host, libraries=self.libraries)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one vmfb of all buckets; errors as of ``in_one_file``."""
        self.in_one_file().save(path)


def bucketed(executable: SpecializingExecutable, wanted: Mapping[str, Sequence[int]] | str) -> SpecializingExecutable:
    """The executable with buckets; as it is, with a warning and a note of the reason, where padding may not be.

    Raises:
        OptionError: unknown names; sizes without bounds; more than a program's sizes allow.
    """
    names = {} if isinstance(wanted, str) else wanted
    try:
        source = _source_of(executable.program, names, wanted)
    except UnsupportedError as error:
        what = f"{error.op}: " if error.op else ""
        refusal = f"no buckets, because padding might change results: {what}{error.message}"
        at = f" ({error.location})" if error.location else ""
        hint = f"; {error.hint}" if error.hint else ""
        warnings.warn(f"compiled for the sizes of each call; {refusal}{at}{hint}", stacklevel=2)
        return replace(executable, refusal=refusal)
    own = {each.name: getattr(executable, each.name) for each in fields(SpecializingExecutable)}
    return BucketedExecutable(**own, bounded=source.sizes, cuts=source.cuts, source=source)


def _source_of(
    program: Program, names: Mapping[str, Sequence[int]], wanted: Mapping[str, Sequence[int]] | str
) -> Source:
    """What makes the programs of buckets, with rules for all operations. Raises UnsupportedError, OptionError."""
    template: Any = program.template
    of_operators = hasattr(template, "padded")
    bounded = tuple(template.bounded_sizes()) if of_operators else open_sizes(program, names)
    known = names_of(bounded, program)
    cuts: dict[str, Sequence[int]] = {}
    for name, sizes in names.items():
        first = name.split("=")[0].strip()
        if first not in known:
            raise OptionError(
                f"no open size is called {name!r}", hint=f"open sizes: {', '.join(s.name for s in bounded)}"
            )
        cuts[known[first]] = sizes
    chosen = tuple(bucket_sizes(size, cuts if names else wanted) for size in bounded)
    largest = [sizes[-1] for sizes in chosen]
    if of_operators:
        try:
            # Whether all operators have rules: what is traced for one bucket is for all.
            template.padded(largest)
            return OfOperators(template, bounded, chosen)
        except UnsupportedError:
            pass
    return padding_of(program, bounded, chosen, getattr(template, "check_sizes", None))


class Source(Protocol):
    """What makes the programs of buckets.

    Attributes:
        sizes: the open sizes.
        cuts: for each the sizes of its buckets, ascending.
    """

    @property
    def sizes(self) -> tuple[BoundedSize, ...]: ...

    @property
    def cuts(self) -> tuple[tuple[int, ...], ...]: ...

    def padded(self, extents: Sequence[int]) -> Padded:
        """The program of a bucket."""

    def check_sizes(self, dimensions: Sequence[Sequence[int]]) -> None:
        """Refuse sizes that the program does not take. Raises ArgumentError."""


@dataclass(frozen=True)
class OfOperators:
    """A graph whose own operators have rules for padding (``hloforge.torch.bounded``)."""

    template: Any
    sizes: tuple[BoundedSize, ...]
    cuts: tuple[tuple[int, ...], ...]

    def padded(self, extents: Sequence[int]) -> Padded:
        found: Padded = self.template.padded(extents)
        return found

    def check_sizes(self, dimensions: Sequence[Sequence[int]]) -> None:
        self.template.check_sizes(dimensions)


class BucketSession(Bucketed, SpecializingSession):
    """A session that compiles the program of a bucket when a call first needs it.

    Sizes that no bucket holds, those of 0, and calls that leave results on a device are compiled for themselves.
    """

    def __init__(
        self,
        executable: BucketedExecutable,
        driver: str | None,
        threads: int | Sequence[int] | None,
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(executable, driver, threads, options)
        self._bucketed = executable
        self._prepare(executable.bounded, list(itertools.product(*executable.cuts)))

    def _check(self, sizes: Sequence[Sequence[int]]) -> None:
        self._bucketed.source.check_sizes(sizes)

    def _for_itself(self, arguments: Sequence[Any]) -> Any:
        return SpecializingSession.__call__(self, *arguments)

    def _load_bucket(self, key: tuple[int, ...]) -> Loaded:
        made, cuts = self._bucketed.compiled(key)
        # All buckets look them up in the same arrays.
        own = {"weights": self._bucketed.weights_by_name} if made.manifest.weights else {}
        session = load(made, device=self._asked, threads=self._threads, **{**self._options, **own})
        self.device, self._device = session.device, session._device
        return session, cuts
