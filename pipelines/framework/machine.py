"""A model of a processor: its registers, caches and workers, and from which sizes code of our own pays on it.

Every number of a machine that decides which code is written is here, with the measurement that set it. Limits of
IREE (its stack, the arrays of a dispatch) and of the time of compilation are where they are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any


def _given(default: int, unit: str, meaning: str, measured: str) -> Any:
    """A field of a machine: its number where nothing else is known, its unit and meaning, and what set the number."""
    return field(default=default, metadata={"unit": unit, "meaning": meaning, "measured": measured})


@dataclass(frozen=True)
class Machine:
    """A processor as the passes see it; ``docs/machine.md`` lists the fields with their units and measurements.

    Raises:
        ValueError: a number below 1.
    """

    vector_bytes: int = _given(32, "bytes", "a vector register", "the instruction set")
    vector_count: int = _given(16, "registers", "vector registers", "the instruction set")
    line_bytes: int = _given(
        64,
        "bytes",
        "a line of the caches, and what is moved at once: two registers of AVX2, one of AVX-512",
        "the processors' manuals",
    )
    l1_bytes: int = _given(
        1 << 15,
        "bytes",
        "the L1 data cache of a core; half of it holds a strip of a factor",
        "Zen 3 has 32 KiB, Zen 5 48: the smaller one is written for",
    )
    l2_bytes: int = _given(
        1 << 19,
        "bytes",
        "the L2 cache of a core: what passes over it again and again fits into it",
        "Zen 3's, 512 KiB: the smallest of the processors that were measured",
    )
    l3_bytes: int = _given(
        1 << 25,
        "bytes",
        "the cache that cores share: loops that go over more write large arrays past the caches",
        "32 MiB of a complex of cores since Zen 3; arrays of 16 MiB fit there two by two, not three by three",
    )
    workers: int = _given(
        2,
        "workers",
        "that workgroups are shared out evenly for",
        "all measurements were made on two cores",
    )
    dispatch_work: int = _given(
        1 << 16,
        "multiplications",
        "made in vectors in the time of a further dispatch; as many bytes are copied in it",
        "13 in each of its 5,000 ns, of the 10 to 20 in a nanosecond that a Zen 3 makes",
    )
    memory_work: int = _given(
        32,
        "multiplications and additions",
        "that a core makes in registers in the time of one element to and from memory",
        "a product of two 256x256 matrices gains by threads about as an elementwise pass of a million elements",
    )
    wake_ns: int = _given(
        150_000, "ns", "handing a call to threads", "0.15 to 0.2 ms, two cores of a Zen 3 and of a Zen 5"
    )
    handover_ns: int = _given(
        25_000,
        "ns",
        "handing a further dispatch of a running call to them",
        "24 to 36 µs, two cores of a Zen 3 and of a Zen 5",
    )
    thread_elements: int = _given(
        1_550_000,
        "elements",
        "that the heaviest operation of a program counts for, from which a call is handed to threads",
        "two cores of a Zen 5, of which one makes a million in 0.10 to 0.18 ms: below 0.3 ms threads gain nothing",
    )
    loop_elements: int = _given(
        250_000,
        "elements",
        "of the heaviest operation of a loop's iteration, from which its dispatches are handed to threads",
        "two cores of a Zen 5: a further dispatch costs a fifth of the first, and so many are enough",
    )

    def __post_init__(self) -> None:
        for entry in fields(self):
            if getattr(self, entry.name) < 1:
                raise ValueError(f"{_spelled(entry.name)} must be positive, not {getattr(self, entry.name)}")

    @property
    def unrolled_bytes(self) -> int:
        """What an iteration computes at once: eight registers of AVX2, whose instructions hide how long one takes."""
        return 4 * self.line_bytes

    @property
    def packed_bytes(self) -> int:
        """What a kernel copies for itself: half of the L1 data cache, so that what it is combined with fits as well."""
        return self.l1_bytes // 2

    def settings(self) -> dict[str, int]:
        """Every number by its name in settings."""
        return {_spelled(entry.name): getattr(self, entry.name) for entry in fields(self)}

    def with_settings(self, settings: Sequence[str]) -> Machine:
        """The machine with other numbers: ``("l2-bytes=1048576",)``. Raises ValueError for what is no such setting."""
        return replace(self, **dict(map(_setting, settings)))


# What code is made for where nothing else is known: any processor runs it, by several registers for one if need be.
AVX2 = Machine()
AVX512 = Machine(vector_bytes=64, vector_count=32)
NEON = Machine(vector_bytes=16, vector_count=32)
# A browser's compiler gives v128 the 16 registers of SSE on x86-64.
WASM = Machine(vector_bytes=16, vector_count=16)
MACHINES: Mapping[str, Machine] = {"AVX2": AVX2, "AVX512": AVX512, "NEON": NEON, "WASM": WASM}

# What a profile may set, and ``hloforge tune`` tries: these decide the most, and no value makes a program wrong.
TUNABLE: Mapping[str, tuple[int, ...]] = {
    "l2-bytes": (1 << 18, 1 << 19, 1 << 20, 1 << 21),
}


def check_settings(settings: Sequence[str]) -> None:
    """Raise ValueError for a setting that is not of ``TUNABLE``."""
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in TUNABLE:
            raise ValueError(f"{name!r} is no number of a machine to set; these are: {', '.join(TUNABLE)}")
        if value not in map(str, TUNABLE[name]):
            raise ValueError(f"{name} may not be {value!r}; its values: {', '.join(map(str, TUNABLE[name]))}")


def _setting(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    known = {_spelled(entry.name): entry.name for entry in fields(Machine)}
    if name not in known:
        raise ValueError(f"unknown number of a machine {name!r}; it has: {', '.join(known)}")
    return known[name], int(value)


def _spelled(name: str) -> str:
    return name.replace("_", "-")
