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
        "the L1 data cache of a core; half of it holds a strip of a factor, or a workgroup's sums",
        "Zen 3 has 32 KiB, Zen 5 48: the smaller one is written for",
    )
    l2_bytes: int = _given(
        1 << 19,
        "bytes",
        "the L2 cache of a core: IREE's code reads a larger right factor from memory again for every few rows",
        "Zen 3's, 512 KiB; from this size of the right factor on IREE's product is slower than ours",
    )
    workers: int = _given(
        2,
        "workers",
        "that workgroups are shared out evenly for",
        "all measurements were made on two cores",
    )
    dispatch_ns: int = _given(
        5000, "ns", "a further dispatch of a call on one thread", "sorts by digits and by insertion, compared (Zen 3)"
    )
    dispatch_work: int = _given(
        1 << 16,
        "multiplications",
        "made in vectors in the time of a further dispatch; as many bytes are copied in it",
        "13 in a nanosecond of `dispatch-ns`, of the 10 to 20 that a Zen 3 makes (`loop_cost.py`)",
    )
    element_work: int = _given(
        16,
        "multiplications",
        "in the time of moving one number by itself",
        "what an element costs in `dispatch-gathers` and `dispatch-concatenations`; no further record is left",
    )
    memory_work: int = _given(
        32,
        "multiplications and additions",
        "that a core makes in registers in the time of one element to and from memory",
        "a product of two 256x256 matrices gains by threads about as an elementwise pass of a million elements",
    )
    group_elements: int = _given(
        1 << 16,
        "elements",
        "that a workgroup copies or sums",
        "256 KiB of f32, half of the L2 cache; no further record is left",
    )
    least_terms: int = _given(
        32,
        "terms",
        "of a sum from which a product has loops of its own, and features from which these read windows in an image",
        "shorter sums are left to IREE, and narrower windows are laid out; no further record is left",
    )
    deep_terms: int = _given(
        128,
        "terms",
        "of a sum from which IREE's product is slower than ours where the L2 cache holds the right factor as well",
        "products of 4 million multiplications and more, one core of a Zen 3",
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
    def has_wide_vectors(self) -> bool:
        """Whether a register holds a line, and there are registers for blocks of twice as many sums."""
        return self.vector_bytes >= 64 and self.vector_count >= 32

    @property
    def half_line(self) -> int:
        """The bytes of a vector in kernels that were written for a register of AVX2; wider ones were not tried."""
        return self.line_bytes // 2

    @property
    def unrolled_bytes(self) -> int:
        """What an iteration computes at once: eight registers of AVX2, whose instructions hide how long one takes."""
        return 4 * self.line_bytes

    @property
    def summed_lines(self) -> int:
        """The lines of sums that attention keeps in registers.

        In AVX2 they are 12 registers of 16. In AVX-512 a register is a line, and 16 are twice as many as hide an
        addition's latency: 12x128x64 takes 0.97 to 1.02 of XLA's time with them, and 1.17 with six (a Zen 5). Other
        processors have six as well, because nobody has measured them.
        """
        return 16 if self.has_wide_vectors else 6

    @property
    def packed_bytes(self) -> int:
        """What a kernel copies for itself: half of the L1 data cache, so that what it is combined with fits as well."""
        return self.l1_bytes // 2

    @property
    def computed_elements(self) -> int:
        """The elements of a workgroup that computes much for each, or looks at each several times."""
        return self.group_elements // 4

    @property
    def dispatch_bytes(self) -> int:
        """The bytes that are copied in the time of a further dispatch."""
        return self.dispatch_work

    @property
    def dispatch_elements(self) -> int:
        """The elements that are moved one by one in the time of a further dispatch."""
        return self.dispatch_work // self.element_work

    def work_of(self, dispatches: int) -> int:
        """The multiplications that are made in the time of so many further dispatches."""
        return dispatches * self.dispatch_work

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
    "dispatch-work": (1 << 14, 1 << 16, 1 << 18),
    "group-elements": (1 << 14, 1 << 16, 1 << 18),
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
