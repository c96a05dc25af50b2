"""Which buckets of sizes a user wants: ``all``, or sizes by name: ``1..512``, ``16,64,512`` or numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hloforge.dialect.errors import OptionError

# Every size that has bounds, cut at powers of two.
ALL = "all"


def powers(least: int, most: int) -> tuple[int, ...]:
    """Powers of two from a size on, and the largest size: padding is at most a factor of two."""
    found = [1 << power for power in range((least - 1).bit_length(), most.bit_length())]
    return tuple(dict.fromkeys([*(size for size in found if size < most), most]))


def sizes_of(name: str, sizes: str | Sequence[int]) -> tuple[int, ...]:
    """The sizes of one size's buckets, ascending: of ``1..512`` powers of two. Raises OptionError."""
    try:
        if isinstance(sizes, str) and ".." in sizes:
            least, most = map(int, sizes.split(".."))
            found = powers(max(least, 1), most) if most >= least else ()
        else:
            found = tuple(sorted({int(size) for size in (sizes.split(",") if isinstance(sizes, str) else sizes)}))
    except (ValueError, TypeError):
        found = ()
    if not found or found[0] < 1:
        raise OptionError(f"no buckets of {name}: {sizes!r}", hint="1..512, or 16,64,512")
    return found


def normalized(buckets: Mapping[str, str | Sequence[int]] | str | bool) -> Mapping[str, Sequence[int]] | str:
    """What a user says in Python, with the sizes as numbers. Raises OptionError."""
    if isinstance(buckets, Mapping):
        return {name: sizes_of(name, sizes) for name, sizes in buckets.items()}
    if buckets in (True, ALL):
        return ALL
    if not buckets:
        return {}
    raise OptionError(f"no buckets: {buckets!r}", hint="'all', or sizes by name: {'x.0': '1..512'}")
