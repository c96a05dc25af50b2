"""Infeed, outfeed and channels of ``hloforge run``.

One ``--infeed`` is one item, one ``--channel=N=`` one array of channel N. The program takes them from the queues of
``runtime/session/feeds.py``; where it asks for more, nobody could give it, and the run ends with an error instead of
waiting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import click
import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import ArgumentError, ExecutionError, OptionError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.marks import INFEED, OUTFEED, RECV, SEND
from hloforge.dialect.program import Parameter
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.inputs import parse_input
from hloforge.runtime.replicas.mpi import Rank
from hloforge.runtime.replicas.replicas import Replicas
from hloforge.runtime.session.feeds import Feeds, Queue
from hloforge.runtime.session.session import Session
from hloforge.tools.calling import Leaves, seeded

# The number of a channel; this one is the infeed's, and the outfeed's.
Way: TypeAlias = int
FEED: Way = -1
# The arrays of an item.
Item: TypeAlias = tuple[Shape, ...]


@dataclass
class Supply(Iterator[Any]):
    """The items of a queue, in order; an error where the program asks for more.

    Attributes:
        name: of the queue.
        option: of the command line, that gives an item.
        taken: how many the program has.
    """

    name: str
    option: str
    items: Sequence[Any]
    taken: int = field(default=0, init=False)

    def __next__(self) -> Any:
        count = len(self.items)
        if self.taken == count:
            raise ExecutionError(
                f"{self.name}: the program takes more items than were given: {count}",
                hint=f"every {self.option} gives one item",
            )
        self.taken += 1
        return self.items[self.taken - 1]


class Fed:
    """A program whose every call gets the same items.

    Args:
        session: what runs it; of a process of MPI its own device, to which the items' parts for it go.
        calls: its calls of the host for feeds and transfers.
        items: the arrays of every item, by its way; with a leading dimension of the devices where there are several.
    """

    def __init__(
        self, session: Session | Replicas | Rank, calls: Sequence[HostCall], items: Mapping[Way, list[Any]]
    ) -> None:
        self._session = session
        self._gives = sorted({way_of(call) for call in calls if call.target in (OUTFEED, SEND)})
        self._feeds = _by_name(session)
        self._supplies: list[Supply] = []
        for name, (device, feeds) in self._feeds.items():
            for way in sorted({way_of(call) for call in calls if call.target in (INFEED, RECV)}):
                own = [_part(item, device if name else None) for item in items.get(way, ())]
                supply = Supply(_title(way, "infeed") + name, _option(way), own)
                _queue(feeds, way, feeds.infeed).extend(supply)
                self._supplies.append(supply)

    @property
    def device(self) -> str:
        """Where it runs, for messages."""
        return self._session.device

    def __call__(self, *arguments: Any) -> Any:
        """Run it; arguments, results and errors as of the session. What the program gave before is forgotten."""
        self._taken()
        for supply in self._supplies:
            supply.taken = 0
        return self._session(*arguments)

    def given(self) -> Leaves:
        """What the program put on its outfeed and its channels, taken from there: ``outfeed[0]``, ``channel 7[0]``,
        ``outfeed[0]{1}`` of a tuple, ``outfeed[0] of replica 1`` of several devices. The first process of MPI has all,
        others nothing; all have to call."""
        return self._session.to_first(self._taken()) if isinstance(self._session, Rank) else self._taken()

    def _taken(self) -> Leaves:
        """What this process's devices put there."""
        found: Leaves = []
        for suffix, (_, feeds) in self._feeds.items():
            for way in self._gives:
                queue = _queue(feeds, way, feeds.outfeed)
                for number, item in enumerate([queue.get() for _ in range(len(queue))]):
                    name = f"{_title(way, 'outfeed')}[{number}]"
                    if isinstance(item, tuple):
                        found += [(f"{name}{{{index}}}{suffix}", array) for index, array in enumerate(item)]
                    else:
                        found.append((name + suffix, item))
        return found

    def report_left(self) -> None:
        """Say on standard error which items the last call did not take."""
        for supply in self._supplies:
            if supply.taken < len(supply.items):
                click.echo(
                    f"note: {supply.name}: the program took {supply.taken} of {len(supply.items)} items", err=True
                )


def fed(
    session: Session | Replicas | Rank, infeed: Sequence[str], channels: Sequence[tuple[Way, str]], seed: int
) -> Fed | None:
    """A program with its items; None if it exchanges nothing with its host while it runs.

    Args:
        infeed: a specification for each item, ``;`` between the arrays of one; grammar of ``runtime.inputs``.
        channels: the channel and the specification of each array that the program receives.
        seed: of ``random`` without a number.

    Raises:
        ArgumentError: the program has no such feed, or an item is not what it takes.
        OptionError: items for a program that is compiled when it is called.
    """
    specs: dict[Way, list[str]] = {FEED: list(infeed)} if infeed else {}
    for number, spec in channels:
        specs.setdefault(number, []).append(spec)
    if isinstance(session, Session) and session.is_specializing:
        if specs:
            raise OptionError(
                "--infeed and --channel need the sizes of the program's arguments before it runs",
                hint="name them: --shape NAME=8x4 for each argument",
            )
        return None
    calls = [call for call in session.manifest.host_calls if _is_with_host(call)]
    takes: dict[Way, dict[Item, None]] = {}
    for call in calls:
        if call.target in (INFEED, RECV):
            takes.setdefault(way_of(call), {})[tuple(leaf for leaf in call.result_leaves if crosses(leaf))] = None
    for way in specs:
        if way not in takes:
            raise _not_taken(way, sorted(takes))
    devices = (session.grid.devices,) if isinstance(session, Replicas | Rank) else ()
    items = {
        way: [
            _parsed(f"{_title(way, 'infeed')}[{number}]", spec, [_stacked(item, devices) for item in takes[way]], seed)
            for number, spec in enumerate(given)
        ]
        for way, given in specs.items()
    }
    return Fed(session, calls, items) if calls else None


def way_of(call: HostCall) -> Way:
    """Where a call of the host gives or takes."""
    return FEED if call.target in (INFEED, OUTFEED) else int(call.attributes["channel"])


def _is_with_host(call: HostCall) -> bool:
    """Transfers that name their sources are between devices of the grid."""
    return call.target in (INFEED, OUTFEED) or (call.target in (SEND, RECV) and "sources" not in call.attributes)


def _parsed(name: str, spec: str, choices: Sequence[Item], seed: int) -> list[Any]:
    """The arrays of an item, which is the one of the program's kinds of items that the specification fits."""
    if len(choices) == 1:
        return _arrays(name, spec, choices[0], seed)
    found = []
    for item in choices:
        try:
            found.append(_arrays(name, spec, item, seed))
        except ArgumentError:
            continue
    if len(found) != 1:
        kinds = " and ".join(_text(item) for item in choices)
        raise ArgumentError(
            f"{name}: {spec!r} fits {'several' if found else 'none'} of the items that the program takes: {kinds}",
            hint="write types, as in f32[3]=1 2 3",
        )
    return found[0]


def _arrays(name: str, spec: str, item: Item, seed: int) -> list[Any]:
    if len(item) == 1:
        return [parse_input(seeded(spec, seed), Parameter(name, item[0]), noun="item")]
    parts = spec.split(";") if spec.strip() else []
    if len(parts) != len(item):
        raise ArgumentError(
            f"{name}: {spec!r} has {len(parts)} arrays, and the item {len(item)}: {_text(item)}",
            hint="write ; between them, as in f32[3]=1 2 3; s32[]=4",
        )
    leaves = [Parameter(f"{name}{{{number}}}", shape) for number, shape in enumerate(item)]
    return [parse_input(seeded(part, seed), leaf, noun="item") for part, leaf in zip(parts, leaves, strict=True)]


def _part(arrays: Sequence[Any], device: int | None) -> Any:
    """An item as a queue takes it, of one device."""
    own = arrays if device is None else [np.asarray(array[device]) for array in arrays]
    return own[0] if len(own) == 1 else tuple(own)


def _stacked(item: Item, devices: tuple[int, ...]) -> Item:
    return tuple(Shape(leaf.element, (*devices, *leaf.dimensions)) for leaf in item)


def _by_name(session: Session | Replicas | Rank) -> dict[str, tuple[int, Feeds]]:
    """This process's devices with their feeds, by what distinguishes them in the names of items."""
    if isinstance(session, Replicas):
        return {f" of {session.grid.name(device)}": (device, feeds) for device, feeds in enumerate(session.feeds)}
    if isinstance(session, Rank):
        return {f" of {session.grid.name(session.rank)}": (session.rank, session.feeds)}
    return {"": (0, session.feeds)}


def _queue(feeds: Feeds, way: Way, feed: Queue) -> Queue:
    return feed if way == FEED else feeds.channel(way)


def _title(way: Way, feed: str) -> str:
    return feed if way == FEED else f"channel {way}"


def _option(way: Way) -> str:
    return "--infeed=…" if way == FEED else f"--channel={way}=…"


def _text(item: Item) -> str:
    return str(item[0]) if len(item) == 1 else f"({', '.join(map(str, item))})"


def _not_taken(way: Way, takes: Sequence[Way]) -> ArgumentError:
    what = "has no infeed" if way == FEED else f"receives nothing from its host on channel {way}"
    known = ", ".join(_option(other) for other in takes)
    return ArgumentError(f"the program {what}", hint=f"it takes {known}" if known else "it takes no items at all")
