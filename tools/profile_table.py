"""A profile as text: a table of the slowest entries, and the rest of a call."""

from __future__ import annotations

import io
import shutil
import sys

from rich.console import Console
from rich.table import Table

from hloforge.runtime.profiling.groups import Group, grouped, short_place
from hloforge.runtime.profiling.result import TimeProfile

# Where nobody says how wide the lines may be.
_WIDTH = 150
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def profile_text(profile: TimeProfile, by: str, top: int) -> str:
    """The table and the lines below it.

    Args:
        by: what a line of the table is, as of ``grouped``.
        top: how many lines at most.
    """
    groups = grouped(profile, by)
    stream = io.StringIO()
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    console = Console(file=stream, width=width, highlight=False, markup=False)
    console.print(_table(profile, groups[:top], by))
    rest = groups[top:]
    if rest:
        share = profile.share(sum(group.seconds for group in rest))
        console.print(f"{len(rest)} more: {100 * share:.1f} %; --top={len(groups)} shows them")
    for line in _summary(profile):
        console.print(line, soft_wrap=True)
    return stream.getvalue()


def _table(profile: TimeProfile, groups: list[Group], by: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("share", "time", "runs", "each"):
        table.add_column(name, justify="right", no_wrap=True)
    known = profile.attributed
    titles = (("scope",) if by == "scope" else ("operations", "where")) if known and by != "dispatch" else ("dispatch",)
    for title in titles:
        table.add_column(title, overflow="fold", ratio=1)
    if known:
        for name in ("flop", "bytes", "flop/s", "B/s", *(("roof",) if profile.roofline else ())):
            table.add_column(name, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(*_cells(profile, group, titles))
    return table


def _cells(profile: TimeProfile, group: Group, titles: tuple[str, ...]) -> list[str]:
    told = {
        "operations": group.kinds or group.dispatches[0],
        "where": short_place(group.location) or "–",
        "scope": group.scope or "–",
        "dispatch": group.dispatches[0],
    }
    cells = [
        f"{100 * profile.share(group.seconds):.1f} %",
        duration(group.seconds),
        f"{group.count:g}",
        duration(group.seconds / (group.count or 1)),
        *(told[title] for title in titles),
    ]
    if not profile.attributed:
        return cells
    work = group.cost.flops + group.cost.transcendentals
    rates = [value / group.seconds if group.seconds else 0.0 for value in (work, group.cost.bytes)]
    cells += map(quantity, (work, group.cost.bytes, *rates))
    if profile.roofline:
        cells.append("–" if group.fraction is None else f"{100 * group.fraction:.0f} %")
    return cells


def _summary(profile: TimeProfile) -> list[str]:
    parts = (
        ("dispatches", profile.dispatch_seconds),
        ("fills and copies", profile.transfer_seconds),
        ("host", profile.host_seconds),
    )
    shares = ", ".join(f"{name} {100 * profile.share(seconds):.1f} %" for name, seconds in parts)
    count = len(profile.calls)
    lines = [
        "",
        f"call: {duration(profile.seconds)} with measuring, the mean of {count}: {shares}",
        f"      {duration(profile.unprofiled_seconds)} without, the median, on {profile.device}",
    ]
    if profile.attributed:
        cost = profile.cost
        functions = f"{quantity(cost.transcendentals)} transcendental functions"
        lines.append(f"counts: {quantity(cost.flops)} flop, {functions}, {quantity(cost.bytes)} bytes")
    if profile.roofline:
        roof = profile.roofline
        rates = f"{quantity(1e9 * roof.gflops)} flop/s, {quantity(1e9 * roof.bandwidth)} B/s"
        lines.append(f"roofline: {rates}, {roof.origin}; above 100 %: data that stayed in caches, or a noisy probe")
    return lines + [f"note: {note}" for note in profile.notes]


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.2f} {unit}"
    return f"{1e9 * seconds:.0f} ns"


def quantity(value: float) -> str:
    """A count in thousands, millions and so on."""
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g}"
