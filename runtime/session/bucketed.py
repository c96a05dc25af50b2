"""Sessions of programs in buckets: the smallest in which a call's sizes fit computes it, on arrays of its own sizes.

The program of a bucket takes the real sizes as numbers, so that padding changes no result.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NoReturn, TypeAlias

import numpy as np

from hloforge.dialect.bounded_sizes import BoundedSize
from hloforge.dialect.errors import ArgumentError, ExecutionError, UnsupportedError
from hloforge.runtime.artifact.bucket_file import BucketTable, weights_in
from hloforge.runtime.artifact.functions import function as named
from hloforge.runtime.session.convention import leaf_values
from hloforge.runtime.session.feeds import Feeds
from hloforge.runtime.session.modules import weights_near
from hloforge.runtime.session.session import Session, loaded

# The program of a bucket, and the cuts of its results.
Loaded: TypeAlias = tuple[Session, tuple[tuple[int, int], ...]]
# Choices of sizes that a session remembers.
_KEPT = 4096


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


class Bucketed(Session):
    """What sessions of buckets have in common.

    Attributes:
        buckets: all of them, with how many calls each has computed.
    """

    _lock: threading.Lock
    _is_closed: bool

    def _prepare(self, sizes: Sequence[BoundedSize], keys: Sequence[tuple[int, ...]]) -> None:
        """Take the open sizes, and those of the buckets."""
        names = [size.name for size in sizes]
        self._bounded = tuple(sizes)
        self._extents = tuple(tuple(sorted({key[n] for key in keys})) for n in range(len(names)))
        self._buckets = {key: Bucket(dict(zip(names, key, strict=True))) for key in keys}
        self._loaded: dict[tuple[int, ...], Loaded] = {}
        self._refused: set[tuple[int, ...]] = set()
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan | None] = {}
        self.last_bucket: Bucket | None = None

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        return tuple(self._buckets.values())

    def _check(self, sizes: Sequence[Sequence[int]]) -> None:
        """Refuse sizes that the program does not take. Raises ArgumentError."""
        raise NotImplementedError

    def _for_itself(self, arguments: Sequence[Any]) -> Any:
        """The results of a call of which no bucket holds the sizes."""
        raise NotImplementedError

    def _load_bucket(self, key: tuple[int, ...]) -> Loaded:
        """The session of a bucket. Raises UnsupportedError."""
        raise NotImplementedError

    def close(self) -> None:
        super().close()
        with self._lock:
            programs = [form for form, _ in self._loaded.values()]
            self._loaded.clear()
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
            self.last_bucket = None
            return self._for_itself(ordered)
        given = list(flat)
        for number, shape in plan.shapes:
            given[number] = _padded(given[number], shape)
        found = plan.form(*given, *plan.reals)
        plan.bucket.calls += 1
        self.last_bucket = plan.bucket
        return self._nested(_cut(found if isinstance(found, tuple) else (found,), plan.cuts))

    def _planned(self, sizes: tuple[tuple[int, ...], ...]) -> _Plan | None:
        """How calls of these sizes go; None if they are compiled for themselves. Raises ArgumentError."""
        numbers = [size.number(sizes) for size in self._bounded]
        self._check(sizes)
        places = [next((c for c in cuts if c >= n), 0) for n, cuts in zip(numbers, self._extents, strict=True)]
        plan = found = None
        key = tuple(places)
        if 0 not in places and 0 not in numbers:
            found = self._loaded_or_none(key)
        if found is not None:
            form, cuts = found
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

    def _loaded_or_none(self, key: tuple[int, ...]) -> Loaded | None:
        """The session of a bucket, made by whichever thread comes first; None if its programs have no padded form."""
        with self._lock:
            if key in self._refused or key not in self._buckets:
                return None
            if key not in self._loaded:
                try:
                    self._loaded[key] = self._load_bucket(key)
                except UnsupportedError as error:
                    self._refused.add(key)
                    what = f"{error.op}: " if error.op else ""
                    at = f" ({error.location})" if error.location else ""
                    warnings.warn(f"compiled for the sizes of each call: {what}{error.message}{at}", stacklevel=5)
                    return None
                self._buckets[key].is_compiled = True
            return self._loaded[key]


class BucketFileSession(Bucketed):
    """A session of a file of buckets, whose programs are loaded when a call first needs them."""

    def __init__(
        self,
        source: str | PathLike[str] | bytes,
        table: BucketTable,
        driver: str | None,
        threads: int | Sequence[int] | None,
        feeds: Feeds,
        options: Mapping[str, Any],
    ) -> None:
        """Arguments as of ``load``; ``options`` are further ones of ``loaded``."""
        self._take_manifest(table.manifest)
        self.device, self._asked, self._threads = driver or "", driver, threads
        self.feeds = feeds
        self._source, self._options = source, options
        self._weights_by_name = weights_in(source, table)
        self._lock = threading.Lock()
        self._is_closed = False
        self._by_key = {each.sizes: each for each in table.buckets}
        self._prepare(table.sizes, list(self._by_key))

    def close(self) -> None:
        self._is_closed = True
        with self._lock:
            programs = [form for form, _ in self._loaded.values()]
            self._loaded.clear()
            self._plans.clear()
        for form in programs:
            form.close()

    @property
    def closed(self) -> bool:
        return self._is_closed

    def _check(self, sizes: Sequence[Sequence[int]]) -> None:
        free = {(place.parameter, place.dimension) for size in self._bounded for place in size.places}
        for number, (codec, given) in enumerate(zip(self._parameters, sizes, strict=True)):
            wanted = codec.shape.dimensions
            fixed = [d for d in range(len(wanted)) if (number, d) not in free]
            if len(given) != len(wanted) or any(given[d] != wanted[d] for d in fixed):
                raise ArgumentError(f"argument {codec.name!r}: expected {codec.shape}, got sizes {list(given)}")

    def _for_itself(self, arguments: Sequence[Any]) -> NoReturn:
        if self._is_closed:
            raise ExecutionError(f"the session of {self.manifest.name} is closed", hint="load the program again")
        largest = ", ".join(
            f"{size.name} <= {cuts[-1]}" for size, cuts in zip(self._bounded, self._extents, strict=True)
        )
        raise ArgumentError(f"no bucket of the file holds the sizes; it is for {largest}, from 1 on")

    def call_device(self, *arguments: Any, **named: Any) -> NoReturn:
        raise ExecutionError(
            "a program in buckets cuts its results on the host", hint="call it, or load one function of the file"
        )

    def _load_bucket(self, key: tuple[int, ...]) -> Loaded:
        program = self._by_key[key]
        # A part of a file that was let in; the first function is the file itself.
        part = named(self._source, program.function)
        weights = self._weights_by_name or weights_near(self._source)
        session = loaded(part, True, weights, self.feeds, device=self._asked, threads=self._threads, **self._options)
        self.device = session.device
        return session, program.cuts


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
