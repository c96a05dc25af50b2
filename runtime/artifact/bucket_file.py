"""One file of all buckets of a program: a function for each, weights once, and a table that says which is for what.

It is a file of functions (``functions.py``), whose zip has two more entries: the table as JSON, and the weights, stored
as they are in memory, so that they are mapped from the file and no bucket has a copy of its own.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hloforge.dialect.bounded_sizes import BoundedSize
from hloforge.dialect.errors import LoadError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.functions import joined
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.data.integrity import DAMAGE
from hloforge.runtime.data.stored_entries import HEADER, entry_bytes
from hloforge.runtime.session.arrays import ALIGNMENT

_TABLE, _WEIGHTS = "buckets.json", "buckets.weights"
_FORMAT = 1
_NO_TIME = (1980, 1, 1, 0, 0, 0)
# A field that readers skip.
_PADDING_ID = 0xD935


@dataclass(frozen=True)
class BucketProgram:
    """A bucket in a file.

    Attributes:
        function: the name of its function.
        sizes: the largest ones, in the order of the table's sizes.
        cuts: of its results, as of ``Padded``.
    """

    function: str
    sizes: tuple[int, ...]
    cuts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BucketTable:
    """What a file of buckets is.

    Attributes:
        manifest: of the program for all sizes.
        sizes: the open sizes.
        buckets: the programs.
        weights: the place of each array among the weights, and its bytes, by name.
    """

    manifest: Manifest
    sizes: tuple[BoundedSize, ...]
    buckets: tuple[BucketProgram, ...]
    weights: Mapping[str, tuple[int, int]]

    def to_json(self) -> str:
        buckets = [[each.function, each.sizes, each.cuts] for each in self.buckets]
        return json.dumps(
            {
                "format": _FORMAT,
                "manifest": self.manifest.to_json(),
                "sizes": [size.to_json() for size in self.sizes],
                "buckets": buckets,
                "weights": {name: list(place) for name, place in self.weights.items()},
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> BucketTable:
        """Read back ``to_json``. Raises LoadError for damaged text or a newer format."""
        try:
            found = json.loads(text)
            if found["format"] > _FORMAT:
                raise LoadError(
                    "this file of buckets was made by a newer hloforge", hint="upgrade it, or compile again"
                )
            return cls(
                Manifest.from_json(found["manifest"]),
                tuple(map(BoundedSize.from_json, found["sizes"])),
                tuple(
                    BucketProgram(str(name), tuple(map(int, sizes)), tuple((int(n), int(d)) for n, d in cuts))
                    for name, sizes, cuts in found["buckets"]
                ),
                {str(name): (int(start), int(size)) for name, (start, size) in found["weights"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise LoadError(f"the table of buckets is damaged: {error}", hint="compile again") from None


def bucket_name(sizes: Sequence[int]) -> str:
    """The name of a bucket's function."""
    return "bucket-" + "x".join(map(str, sizes))


def in_one_file(
    manifest: Manifest,
    sizes: Sequence[BoundedSize],
    programs: Mapping[tuple[int, ...], tuple[Executable, tuple[tuple[int, int], ...]]],
    weights: Mapping[str, np.ndarray[Any, Any]],
) -> Executable:
    """A file of compiled buckets.

    Args:
        manifest: of the program for all sizes.
        programs: by their sizes, with the cuts of their results.
        weights: that the programs look up.
    """
    whole = joined({bucket_name(key): executable for key, (executable, _) in programs.items()})
    places: dict[str, tuple[int, int]] = {}
    end = 0
    for name, array in weights.items():
        places[name] = end, array.nbytes
        end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    first = next(iter(programs.values()))[0].manifest
    public = replace(
        first, name=manifest.name, signature=manifest.signature, source=manifest.source, weights=(), weights_file=""
    )
    buckets = [BucketProgram(bucket_name(key), key, cuts) for key, (_, cuts) in programs.items()]
    table = BucketTable(public, tuple(sizes), tuple(buckets), places)
    stream = io.BytesIO()
    stream.write(whole.vmfb)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_TABLE, _NO_TIME), table.to_json())
        if weights:
            entry = zipfile.ZipInfo(_WEIGHTS, _NO_TIME)
            # A field of no meaning, so that the arrays begin where they may be read in place.
            start = archive.start_dir + HEADER + len(_WEIGHTS) + 4
            room = -start % ALIGNMENT
            entry.extra = struct.pack("<HH", _PADDING_ID, room) + bytes(room)
            with archive.open(entry, "w", force_zip64=False) as file:
                for array in weights.values():
                    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                    file.write(data.data)
                    file.write(bytes(-data.nbytes % ALIGNMENT))
    return replace(
        whole, vmfb=stream.getvalue(), manifest=replace(public, functions=tuple(b.function for b in buckets))
    )


def table_of(source: str | PathLike[str] | bytes) -> BucketTable | None:
    """The table of a file; None if it is none of buckets. Raises LoadError for a damaged one."""
    if not isinstance(source, bytes) and not Path(source).is_file():
        return None  # a pipe, which can be read once
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            if _TABLE not in archive.namelist():
                return None
            text = archive.read(_TABLE).decode()
    except DAMAGE:
        return None  # damaged, or no zip: whoever loads it says so
    except UnicodeDecodeError as error:
        raise LoadError(f"the table of buckets is damaged: {error}", hint="compile again") from None
    return BucketTable.from_json(text)


def weights_in(source: str | PathLike[str] | bytes, table: BucketTable) -> dict[str, np.ndarray[Any, Any]]:
    """The weights in a file, by name, as bytes: mapped where it is one on disk. Raises LoadError for a damaged file."""
    if not table.weights:
        return {}
    try:
        whole = entry_bytes(source, _WEIGHTS)
    except DAMAGE as error:
        raise LoadError(f"the file's weights are damaged: {error}", hint="compile again") from None
    if any(begin < 0 or size < 0 or begin + size > whole.size for begin, size in table.weights.values()):
        raise LoadError("the file's weights are damaged: an array is outside of them", hint="compile again")
    return {name: whole[begin : begin + size] for name, (begin, size) in table.weights.items()}
