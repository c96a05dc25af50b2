"""Programs of bounded sizes: one for each bucket, chosen by the sizes of a call, whose arrays are padded and cut.

A bucket is compiled when a call first needs it. It computes on arrays of its own sizes, and takes the real ones as
numbers, so that padding changes no result. Where an operator has no rule for padding, the program is compiled for the
sizes of each call instead, and says which operator.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hloforge.dialect.bounded_sizes import BoundedSize, Padded
from hloforge.dialect.errors import OptionError, UnsupportedError
from hloforge.runtime.bucket_sizes import powers
from hloforge.runtime.compile.specialize import SpecializingExecutable, SpecializingSession
from hloforge.runtime.session.convention import leaf_values
from hloforge.runtime.session.session import Session


@dataclass
class Bucket:
    """The sizes up to which one program computes.

    Attributes:
        sizes: the largest ones, by the names of the bounded sizes (``x.0``: dimension 0 of ``x``).
        calls: how many it has computed.
        is_compiled: whether a call has needed it.
    """

    sizes: dict[str, int]
    calls: int = 0
    is_compiled: bool = False


def bucket_sizes(size: BoundedSize, wanted: Mapping[str, Sequence[int]] | str) -> tuple[int, ...]:
    """The sizes at which a bound is cut, ascending.

    Args:
        wanted: ``ALL``, or sizes by the name of a bounded size.

    Raises:
        OptionError: nothing bounds the size.
    """
    named = {} if isinstance(wanted, str) else wanted
    if size.name in named:
        return tuple(named[size.name])
    if size.most is None:
        raise OptionError(
            f"nothing bounds the size {size.name}",
            hint=f"torch.export.Dim(…, max=…), or buckets={{{size.name!r}: '1..512'}}",
        )
    return powers(max(size.least, 1), size.most)


@dataclass(frozen=True)
class BucketedExecutable(SpecializingExecutable):
    """A program that is compiled for buckets of sizes.

    Attributes:
        bounded: its sizes that have bounds.
        cuts: for each, the sizes of its buckets, ascending.
    """

    bounded: tuple[BoundedSize, ...] = field(kw_only=True)
    cuts: tuple[tuple[int, ...], ...] = field(kw_only=True)

    def load(self, *, device: str | None = None, threads: int | Sequence[int] | None = None, **options: Any) -> Session:
        return BucketSession(self, device, threads, options)


def bucketed(executable: SpecializingExecutable, wanted: Mapping[str, Sequence[int]] | str) -> SpecializingExecutable:
    """The executable with buckets; as it is, with a warning and a note of the reason, where padding may not be.

    Raises:
        OptionError: unknown names; sizes without bounds; more than a program's sizes allow.
    """
    template: Any = executable.program.template
    names = {} if isinstance(wanted, str) else wanted
    if not hasattr(template, "padded"):
        raise OptionError(
            "buckets are for modules and exports of PyTorch",
            hint="hloforge.torch.compile(…), or hloforge.compile(torch.export.load(path), buckets=…)",
        )
    try:
        bounded = tuple(template.bounded_sizes())
        unknown = sorted(set(names) - {size.name for size in bounded})
        if unknown:
            known = ", ".join(size.name for size in bounded)
            raise OptionError(f"no open size is called {unknown[0]!r}", hint=f"open sizes: {known}")
        cuts = tuple(bucket_sizes(size, wanted) for size in bounded)
        # Whether all operators have rules: what is traced for one bucket is for all.
        template.padded([sizes[-1] for sizes in cuts])
    except UnsupportedError as error:
        what = f"{error.op}: " if error.op else ""
        refusal = f"no buckets, because padding might change results: {what}{error.message}"
        at = f" ({error.location})" if error.location else ""
        warnings.warn(f"compiled for the sizes of each call; {refusal}{at}", stacklevel=2)
        return replace(executable, refusal=refusal)
    fields = {name: getattr(executable, name) for name in SpecializingExecutable.__dataclass_fields__}
    return BucketedExecutable(**fields, bounded=bounded, cuts=cuts)


@dataclass(frozen=True)
class _Plan:
    """How calls of one choice of sizes go.

    Attributes:
        bucket: whose program computes.
        shapes: of the arguments that are padded, by their numbers.
        reals: the real sizes, as the program takes them.
    """

    bucket: Bucket
    form: Session
    cuts: tuple[tuple[int, int], ...]
    shapes: tuple[tuple[int, tuple[int, ...]], ...]
    reals: tuple[np.ndarray[Any, Any], ...]


# Choices of sizes that a session remembers.
_KEPT = 4096


class BucketSession(SpecializingSession):
    """A session that computes in the smallest bucket in which the sizes of a call fit.

    Sizes of 0, and calls that leave results on a device, are compiled for themselves.

    Attributes:
        buckets: all of them, with how many calls each has computed.
    """

    def __init__(
        self,
        executable: BucketedExecutable,
        driver: str | None,
        threads: int | Sequence[int] | None,
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(executable, driver, threads, options)
        names = [size.name for size in executable.bounded]
        self._bounded, self._cuts = executable.bounded, executable.cuts
        self._buckets = {
            sizes: Bucket(dict(zip(names, sizes, strict=True))) for sizes in itertools.product(*self._cuts)
        }
        self._programs: dict[tuple[int, ...], tuple[Session, tuple[tuple[int, int], ...]]] = {}
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan | None] = {}

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        return tuple(self._buckets.values())

    def close(self) -> None:
        super().close()
        with self._lock:
            programs = [form for form, _ in self._programs.values()]
            self._programs.clear()
            self._plans.clear()
        for form in programs:
            form.close()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        ordered = self._in_order(arguments, named)
        flat = leaf_values(self.signature, ordered)
        sizes = tuple(codec.sizes(value) for codec, value in zip(self._parameters, flat, strict=True))
        try:
            plan = self._plans[sizes]
        except KeyError:
            plan = self._planned(sizes)
        if plan is None or self._is_closed:
            return super().__call__(*ordered)
        given = list(flat)
        for number, shape in plan.shapes:
            given[number] = _padded(given[number], shape)
        found = plan.form(*given, *plan.reals)
        plan.bucket.calls += 1
        return self._nested(_cut(found if isinstance(found, tuple) else (found,), plan.cuts))

    def _planned(self, sizes: tuple[tuple[int, ...], ...]) -> _Plan | None:
        """How calls of these sizes go; None if they are compiled for themselves. Raises ArgumentError."""
        template: Any = self._executable.program.template
        numbers = [size.number(sizes) for size in self._bounded]
        template.check_sizes(sizes)
        places = [next((c for c in cuts if c >= n), 0) for n, cuts in zip(numbers, self._cuts, strict=True)]
        plan = None
        if 0 not in places and 0 not in numbers:
            key = tuple(places)
            form, cuts = self._program(key)
            shapes = [list(dims) for dims in sizes]
            for size, extent in zip(self._bounded, key, strict=True):
                for place in size.places:
                    shapes[place.parameter][place.dimension] = place.factor * extent + place.rest
            padded = [(n, tuple(shape)) for n, shape in enumerate(shapes) if tuple(shape) != sizes[n]]
            reals = tuple(np.array(number, np.int64) for number in numbers)
            plan = _Plan(self._buckets[key], form, cuts, tuple(padded), reals)
        with self._lock:
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            self._plans[sizes] = plan
        return plan

    def _program(self, key: tuple[int, ...]) -> tuple[Session, tuple[tuple[int, int], ...]]:
        """The session of a bucket, compiled by whichever thread comes first."""
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                template: Any = self._executable.program.template
                padded: Padded = template.padded(key)
                form = self._executable.compile_form(padded.program)
                session = form.load(device=self.device or None, threads=self._threads, **self._options)
                self.device, self._device = session.device, session._device
                found = self._programs[key] = session, padded.cuts
                self._buckets[key].is_compiled = True
        return found


def _padded(value: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An argument in a larger array. Zeros are valid indices, and no NaN slows arithmetic down."""
    array = np.asarray(value)
    whole = np.zeros(shape, array.dtype)
    whole[tuple(slice(0, size) for size in array.shape)] = array
    return whole


def _cut(found: Sequence[Any], cuts: Sequence[tuple[int, int]]) -> list[Any]:
    """The results without their padding; the last ones are the real sizes."""
    count = len(found) - len(cuts)
    results = list(found[:count])
    sizes: dict[int, dict[int, int]] = {}
    for (number, dimension), size in zip(cuts, found[count:], strict=True):
        sizes.setdefault(number, {})[dimension] = int(size)
    for number, real in sizes.items():
        array = results[number]
        wanted = tuple(slice(0, real.get(d, size)) for d, size in enumerate(array.shape))
        results[number] = np.ascontiguousarray(array[wanted]).reshape(
            [real.get(d, size) for d, size in enumerate(array.shape)]
        )
    return results
