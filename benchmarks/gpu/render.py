"""The document of a check: tables with the device's name and the date."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.gpu.rows import Row

# Of the names in a list.
_MOST = 20


def document(found: dict[str, Any]) -> str:
    """Markdown of what ``python -m benchmarks.gpu`` found."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    parts = [
        f"# On {machine['name']}",
        f"Measured by `make gpu-check` on {found['date']}, target `{machine['target']}`; {versions}. Times are medians "
        "of calls on arrays that lie on the device, until their results are there; a ratio below 1 means that hloforge "
        "is faster.",
        *_roofline(found.get("kernels", []), machine),
        *_programs(found.get("programs", [])),
        *_conformance(found.get("conformance", [])),
        *_unreached(found.get("unreached", [])),
    ]
    return "\n\n".join(parts) + "\n"


def _roofline(rows: Sequence[Row], machine: dict[str, Any]) -> list[str]:
    if not rows:
        return []
    bounds = machine["peaks"]
    said = (
        f"The roofline is {bounds['source']}: {_rates(bounds)}." if bounds else "Its peaks are not known: no roofline."
    )
    lines = [
        "|  | time | of the roofline | TFLOP/s | GB/s | to XLA | to PyTorch | right |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['name']} | – | – | – | – | – | – | {row['error']} |")
            continue
        time = row["seconds"]["hloforge"]
        share = f"{100 * row['bound'] / time:.0f} %" if "bound" in row else "–"
        cells = (_time(time), share, f"{row['tflops']:.3g}", f"{row['gigabytes']:.3g}", _ratio(row, "xla"))
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {_ratio(row, 'torch')} | {_agrees(row)} |")
    return ["## Roofline", said, "\n".join(lines)]


def _rates(bounds: dict[str, Any]) -> str:
    flops = ", ".join(f"{rate / 1e12:.4g} TFLOP/s of {element}" for element, rate in bounds["flops"].items())
    return f"{flops}, {bounds['bandwidth'] / 1e9:.4g} GB/s"


def _programs(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    lines = ["|  | time | to XLA | as XLA's CPU client |", "|---|---:|---:|---|"]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['name']} | – | – | {row['error']} |")
            continue
        lines.append(f"| {row['name']} | {_time(row['seconds']['hloforge'])} | {_ratio(row, 'xla')} | {_agrees(row)} |")
    ratios = [row["ratios"]["xla"] for row in rows if "xla" in row.get("ratios", {})]
    mean = [f"Geometric mean of the ratios to XLA: {geometric_mean(ratios):.2f}."] if ratios else []
    return ["## Programs", *mean, "\n".join(lines)]


def _conformance(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    failures = [row for row in rows if "error" in row or row["stage"]]
    lines = [f"{len(rows) - len(failures)} of {len(rows)} rows of a sample are right."]
    lines += [f"- `{row['name']}` ({row.get('stage', 'run')}): {row.get('error') or row['reason']}" for row in failures]
    return ["## Conformance", "\n".join(lines)]


def _unreached(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    lines = [f"The check's time ended before {len(names)} rows; `--resume` goes on with them:"]
    return [
        "## Not reached",
        "\n".join([*lines, *(f"- {name}" for name in names[:_MOST]), *["- …"][: len(names) > _MOST]]),
    ]


def _agrees(row: Row) -> str:
    return {True: "yes", False: f"no: {row.get('difference', '')}", None: "not compared"}[row.get("agrees")]


def _ratio(row: Row, engine: str) -> str:
    if engine in row["ratios"]:
        return f"{row['ratios'][engine]:.2f}"
    return f"– ({row['failures'][engine]})" if engine in row["failures"] else "–"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError(seconds)
