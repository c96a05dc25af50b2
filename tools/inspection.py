"""The facts that ``hloforge inspect`` shows, as plain data, and their tables."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.capability.audit import describe
from hloforge.pipelines.capability.capabilities import Verdict, capability
from hloforge.pipelines.named import lower
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.artifact.bucket_file import table_of
from hloforge.runtime.artifact.functions import function
from hloforge.runtime.compile.limits import check_elements
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.debug.lowering_record import LoweringRecord, computing, count_operations
from hloforge.runtime.debug.memory_estimate import shape_bytes
from hloforge.runtime.replicas.calls import grid_of_manifest
from hloforge.runtime.session.modules import read_manifest
from hloforge.tools import terminal
from hloforge.tools.quantities import bytes_text

Facts: TypeAlias = dict[str, Any]


def vmfb_facts(source: str | bytes) -> Facts:
    """What a vmfb says of itself. Raises LoadError."""
    manifest = read_manifest(source)
    buckets = _buckets(source)
    return {
        "kind": "vmfb",
        "name": manifest.name,
        "bytes": len(source) if isinstance(source, bytes) else Path(source).stat().st_size,
        **_signature_facts(manifest.signature),
        "source": manifest.source,
        "target": manifest.target,
        "targets": list(manifest.targets or (manifest.target,)),
        "functions": {
            name: str(read_manifest(function(source, name)).signature) for name in manifest.functions if not buckets
        },
        "buckets": buckets,
        "code_generator": "hloforge's kernels" if manifest.is_generated else "IREE's compiler",
        "instructions": list(manifest.instructions),
        "flags": list(manifest.flags),
        "weights": {name: str(shape) for name, shape in manifest.weights},
        "weights_file": manifest.weights_file,
        "host_calls": [str(call) for call in manifest.host_calls],
        "grid": str(grid_of_manifest(manifest) or ""),
        "whole": str(manifest.sharded.whole(manifest.signature)) if manifest.sharded else "",
        "versions": dict(manifest.versions),
        "compiled_at": str(manifest.attempts),
        "failed_attempts": [{"attempt": name, "reason": reason} for name, reason in manifest.attempts.failed],
    }


def _buckets(source: str | bytes) -> Facts:
    """The largest sizes of each bucket by the name of its function; nothing of a file that has none."""
    table = table_of(source)
    if table is None:
        return {}
    names = [size.name for size in table.sizes]
    return {each.function: dict(zip(names, each.sizes, strict=True)) for each in table.buckets}


def _signature_facts(signature: Signature) -> Facts:
    results = signature.flat_results
    names = signature.result_names or [""] * len(results)
    return {
        "parameters": [
            {"name": leaf.name, "shape": str(leaf.shape), "bytes": shape_bytes(leaf.shape)}
            for leaf in signature.flat_parameters
        ],
        "results": [
            {**({"name": name} if name else {}), "shape": str(shape), "bytes": shape_bytes(shape)}
            for name, shape in zip(names, results, strict=True)
        ],
        "result": str(signature.result),
        "aliases": [str(alias) for alias in signature.aliases],
    }


def program_facts(program: Program, target: str, record: LoweringRecord | None = None) -> Facts:
    """What a program holds, and what compiling it for a target will take; the program is left as it was.

    Args:
        record: of the target's passes and of what the device lacks, where they ran already.

    Raises:
        OptionError: a malformed target.
    """
    chosen = Target.parse(target)
    kind, pipeline = chosen.kind, chosen.pipeline
    facts: Facts = {
        "kind": "program",
        "name": program.name,
        "source": program.source,
        **_signature_facts(program.signature),
        "imported_operations": _histogram(program.module),
    }
    normal = program.clone()
    try:
        normalize(normal.module)
    except Error as error:
        return facts | {"target": kind, "decomposed": [], "refused": _refusal(error)}
    return facts | {
        "operations": _histogram(normal.module),
        "element_types": _element_types(normal.module),
        "constant_bytes": _constant_bytes(normal.module),
        "target": kind,
        "decomposed": _decomposed(normal.module, pipeline),
        "refused": _refused(normal, pipeline, _stop(normal, chosen) if record is None else record.error),
    }


def _histogram(module: ir.Module) -> dict[str, int]:
    return dict(count_operations(module).most_common())


def _element_types(module: ir.Module) -> dict[str, int]:
    """How many results have each element type."""
    types = [result.type for op in computing(module) for result in op.results]
    return dict(Counter(_element(type_) for type_ in types).most_common())


def _element(type_: Any) -> str:
    if not isinstance(type_, ir.RankedTensorType):
        return "token" if "token" in str(type_) else str(type_)
    try:
        return str(Shape.of_type(type_).element)
    except ValueError:
        return str(type_.element_type)


def _constant_bytes(module: ir.Module) -> int:
    found = operations(module, ["stablehlo.constant"])
    return sum(
        shape_bytes(Shape.of_type(op.results[0].type)) or 0 for op in found if _element(op.results[0].type)[0] != "!"
    )


def _decomposed(module: ir.Module, target: str) -> list[Facts]:
    """A row for each operation and pass of ours that will replace it."""
    rows: Counter[tuple[str, str, str]] = Counter()
    for op in computing(module):
        row = capability(op, target)
        if row.verdict is Verdict.DECOMPOSE:
            rows[describe(op), row.by, row.reason] += 1
    return [
        {"operation": name, "count": count, "by": by, "reason": reason}
        for (name, by, reason), count in rows.most_common()
    ]


def _stop(program: Program, target: Target) -> Error | None:
    """What stops the passes of the target, or what its device lacks for the code that they made."""
    lowered = program.clone()
    try:
        lower(lowered.module, target=target.pipeline, verify=False)
        check_elements(lowered.module, target)
    except Error as error:
        return error
    return None


def _refused(program: Program, target: str, stop: Error | None) -> list[Facts]:
    """What stops a compilation, which names all that the audit found, and what the table rejects beside it."""
    return [] if stop is None else _refusal(stop) + _rejected(program.module, target, stop)


def _refusal(error: Error) -> list[Facts]:
    where = str(error.location) if error.location else ""
    return [{"location": where, "reason": error.message, "hint": error.hint, "notes": list(error.notes)}]


def _rejected(module: ir.Module, target: str, known: Error) -> list[Facts]:
    """Operations that the table rejects outright, beside the one that the error names."""
    found = []
    for op in computing(module):
        row = capability(op, target)
        where = str(location_of(op) or "")
        if row.verdict is Verdict.REJECT and where != str(known.location or ""):
            text = f"{describe(op)} is not supported: {row.reason}"
            found.append({"location": where, "reason": text, "hint": row.hint, "notes": []})
    return found


def show(facts: Facts) -> None:
    """Print the facts as tables on standard output."""
    console = terminal.console(highlight=False, soft_wrap=not sys.stdout.isatty())
    lines = [
        ("name", facts["name"]),
        ("source", facts.get("source", "")),
        ("target", ", ".join(facts.get("targets", ())) or facts.get("target", "")),
    ]
    if "bytes" in facts:
        lines.append(("size", bytes_text(facts["bytes"])))
    lines += [("result", facts["result"]), ("aliases", "; ".join(facts["aliases"]))]
    if facts["kind"] == "vmfb":
        lines += [
            ("runs on", facts["grid"]),
            ("called with", facts["whole"]),
            *((f"function {name}", signature) for name, signature in facts["functions"].items()),
            ("host calls", ", ".join(facts["host_calls"]) or "none"),
            ("buckets", "; ".join(_bucket_text(sizes) for sizes in facts["buckets"].values())),
            ("weights", f"{len(facts['weights'])} in {facts['weights_file']}" if facts["weights"] else ""),
            ("code of", facts["code_generator"]),
            ("needs", ", ".join(facts["instructions"])),
            ("flags", " ".join(facts["flags"])),
            ("compiled at", facts["compiled_at"] if facts["failed_attempts"] else ""),
            ("versions", ", ".join(f"{name} {version}" for name, version in facts["versions"].items())),
        ]
    else:
        lines.append(("constants", bytes_text(facts.get("constant_bytes"))))
        lines.append(("element types", _counts(facts.get("element_types", {}))))
    for label, value in lines:
        if value:
            console.print(Text(f"{label + ':':<15}{terminal.one_line(value)}"))
    _print(console, "parameters", [[p["name"], p["shape"], bytes_text(p["bytes"])] for p in facts["parameters"]])
    rows = [[r.get("name", ""), r["shape"], bytes_text(r["bytes"])] for r in facts["results"]]
    _print(console, "results", [row if any(r[0] for r in rows) else row[1:] for row in rows])
    if facts["kind"] == "vmfb":
        _print(console, "failed attempts", [[row["attempt"], row["reason"]] for row in facts["failed_attempts"]])
    if facts["kind"] == "program":
        _show_operations(console, facts)


def _bucket_text(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} <= {size}" for name, size in sizes.items())


def _show_operations(console: Console, facts: Facts) -> None:
    histogram: dict[str, int] = facts["operations" if "operations" in facts else "imported_operations"]
    _print(console, "operations", [[str(count), name] for name, count in histogram.items()])
    _print(
        console,
        "decomposed by hloforge",
        [[str(row["count"]), row["operation"], row["by"], row["reason"]] for row in facts["decomposed"]],
    )
    _print(console, "refused", [[row["location"], row["reason"], row["hint"]] for row in facts["refused"]])
    if not facts["refused"]:
        console.print(Text(f"nothing is refused: hloforge compile will take it for {facts['target']}"))


def _print(console: Console, title: str, rows: list[list[str]]) -> None:
    """A table without a frame, so that it can be grepped."""
    if not rows:
        return
    console.print(Text(f"\n{title}:", style="bold"))
    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 2, 0, 2))
    for row in rows:
        table.add_row(*(Text(terminal.one_line(cell), overflow="fold") for cell in row))
    console.print(table)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
