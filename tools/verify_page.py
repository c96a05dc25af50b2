"""A verification as one page of HTML that needs no other file."""

from __future__ import annotations

from html import escape

from hloforge.runtime.debug.judging import Verdict
from hloforge.runtime.debug.statistics import Bin
from hloforge.runtime.debug.verification import Trial, Verification

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.4 }
body { max-width: 60rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
code, td.n { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
table { border-collapse: collapse; margin: .5rem 0 } th, td { padding: .15rem .6rem .15rem 0; text-align: left }
.scroll { overflow-x: auto } .good { color: #197b30 } .bad { color: #c22525; font-weight: 600 }
.bar { background: #4779c4; height: .8rem; min-width: 1px } .track { width: 14rem; max-width: 40vw }
details { margin: .6rem 0; padding-left: .6rem; border-left: 3px solid #8886 }
"""


def verification_page(found: Verification) -> str:
    """The page: a table of the trials, and under each its results with error statistics and histogram."""
    state = _state(found.agrees, "agrees with the references", "DIFFERS")
    rows = "".join(
        f"<tr><td>{trial.number}</td><td>{trial.kind}</td><td>{trial.seed}</td>"
        f"<td>{_state(trial.agrees, 'agrees', 'differs')}</td></tr>"
        for trial in found.trials
    )
    title = escape(found.program)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>hloforge verify: {title}</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{title}: {state}</h1>\n"
        f"<p>Target <code>{escape(found.target)}</code>, references {escape(', '.join(found.references))}.</p>\n"
        f"<p><code>{escape(found.signature)}</code></p>\n"
        f"<table><tr><th>trial</th><th>values</th><th>seed</th><th></th></tr>{rows}</table>\n"
        + "\n".join(map(_trial, found.trials))
        + "\n</body></html>\n"
    )


def _state(good: bool, yes: str, no: str) -> str:
    return f'<span class="{"good" if good else "bad"}">{yes if good else no}</span>'


def _trial(trial: Trial) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in trial.notes)
    failure = f'<p class="bad">{escape(trial.failure)}</p>' if trial.failure else ""
    return f"<h2>Trial {trial.number}: {trial.kind} values</h2>{failure}{notes}" + "".join(map(_result, trial.verdicts))


def _result(verdict: Verdict) -> str:
    found = verdict.comparison
    head = f"<code>{escape(found.name)} {escape(found.type)}</code>: {_state(verdict.agrees, 'agrees', 'differs')}"
    parts = [f"<details{'' if verdict.agrees else ' open'}><summary>{head}</summary>"]
    if found.problem:
        parts.append(f"<p>{escape(found.problem)}</p>")
    if found.accepted:
        parts.append(f"<p>{escape(found.accepted)}</p>")
    if verdict.statistics is not None:
        parts.append(_numbers(verdict))
        parts.append(_histogram(verdict.statistics.histogram))
    if found.mismatches:
        rows = "".join(
            f'<tr><td class="n">{list(entry.index)}</td><td class="n">{escape(entry.got)}</td>'
            f'<td class="n">{escape(entry.want)}</td></tr>'
            for entry in found.mismatches
        )
        parts.append(f'<div class="scroll"><table><tr><th>index</th><th>got</th><th>want</th></tr>{rows}</table></div>')
    return "".join([*parts, "</details>"])


def _numbers(verdict: Verdict) -> str:
    found, means = verdict.comparison, verdict.statistics
    if means is None:
        return ""
    rows = (
        ("absolute", found.max_absolute, means.mean_absolute),
        ("relative", found.max_relative, means.mean_relative),
        ("ulp", found.max_ulp, means.mean_ulp),
    )
    cells = "".join(
        f'<tr><td>{name}</td><td class="n">{a:.4g}</td><td class="n">{b:.4g}</td></tr>' for name, a, b in rows
    )
    count = f"{found.mismatch_count} of {found.count} elements leave the tolerance ({escape(str(found.tolerance))})"
    one_sided = f"; {means.one_sided} are NaN or infinite on one side alone" if means.one_sided else ""
    against = f" against {escape(verdict.engine)}"
    return (
        f"<p>{count}{one_sided}{against}.</p><table><tr><th>error</th><th>largest</th><th>mean</th></tr>{cells}</table>"
    )


def _histogram(bins: tuple[Bin, ...]) -> str:
    most = max((entry.count for entry in bins), default=0)
    rows = "".join(
        f'<tr><td class="n">{escape(entry.label)}</td><td class="n">{entry.count}</td>'
        f'<td class="track"><div class="bar" style="width:{100 * entry.count / most:.1f}%"></div></td></tr>'
        for entry in bins
        if entry.count
    )
    return (
        f'<div class="scroll"><table><tr><th>ulp</th><th>elements</th><th></th></tr>{rows}</table></div>'
        if rows
        else ""
    )
