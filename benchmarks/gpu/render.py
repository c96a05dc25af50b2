"""The document of a check: tables with the device's name and the date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.gpu.measure import Row, geometric_mean


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
        *_conformance(found.get("conformance")),
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
        "|  | time | of the roofline | TFLOP/s | GB/s | to XLA | to PyTorch |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['name']} | {row['error']} | | | | | |")
            continue
        time = row["seconds"]["hloforge"]
        share = f"{100 * row['bound'] / time:.0f} %" if "bound" in row else "–"
        cells = (_time(time), share, f"{row['tflops']:.3g}", f"{row['gigabytes']:.3g}", _ratio(row, "xla"))
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {_ratio(row, 'torch')} |")
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
        agrees = {True: "yes", False: f"no: {row.get('difference', '')}", None: "not compared"}[row.get("agrees")]
        lines.append(f"| {row['name']} | {_time(row['seconds']['hloforge'])} | {_ratio(row, 'xla')} | {agrees} |")
    ratios = [row["ratios"]["xla"] for row in rows if "xla" in row.get("ratios", {})]
    mean = [f"Geometric mean of the ratios to XLA: {geometric_mean(ratios):.2f}."] if ratios else []
    return ["## Programs", *mean, "\n".join(lines)]


def _conformance(found: dict[str, Any] | None) -> list[str]:
    if not found:
        return []
    lines = [f"{found['right']} of {found['rows']} rows of a sample are right."]
    lines += [f"- `{row['name']}` ({row['stage']}): {row['reason']}" for row in found["failures"]]
    return ["## Conformance", "\n".join(lines)]


def _ratio(row: Row, engine: str) -> str:
    if engine in row["ratios"]:
        return f"{row['ratios'][engine]:.2f}"
    return f"– ({row['failures'][engine]})" if engine in row["failures"] else "–"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError(seconds)
