"""Compare results with expected ones, for the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ArgumentError, MismatchError, OptionError
from hloforge.dialect.program import Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.inputs import parse_expected
from hloforge.runtime.reference.compare import Report, compare
from hloforge.tools.calling import result_shapes

if TYPE_CHECKING:
    from hloforge.runtime.reference.engines import ReferenceEngine

Array = np.ndarray[Any, Any]


def expected_results(
    signature: Signature, specs: Sequence[str], given: Sequence[tuple[str, Array]] = ()
) -> dict[str, Array]:
    """The expected arrays by the results' names; fewer than the results are the first ones.

    Args:
        given: what the program put on its outfeed and channels; it follows the results.

    Raises:
        ArgumentError: more than there are results, or one that does not fit.
    """
    fed = [(name, Shape.array(element_type(array.dtype), *array.shape)) for name, array in given]
    shapes = result_shapes(signature) + fed
    if len(specs) > len(shapes):
        raise ArgumentError(f"{len(specs)} expected outputs for {len(shapes)} results", hint=f"signature: {signature}")
    return {
        name: parse_expected(spec, number, shape)
        for number, (spec, (name, shape)) in enumerate(zip(specs, shapes, strict=False))
    }


def open_reference(name: str, program: Program | None, *, feeds: bool = False) -> ReferenceEngine:
    """A reference engine for a program.

    Raises:
        OptionError: there is no program, only a vmfb; or the program exchanges ``feeds`` with its host.
    """
    if feeds:
        raise OptionError(
            f"--reference={name} does not support programs with infeed, outfeed or channels",
            hint="compare with --expected-output: first the results, then outfeed items and channels",
        )
    if program is None:
        raise OptionError(
            f"--reference={name} needs the program, which a vmfb does not contain",
            hint="run the HLO or StableHLO file, or compare with --expected-output",
        )
    from hloforge.runtime.reference.engines import reference

    return reference(name)


def check_expected(results: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: float | None) -> None:
    """Print how results compare with the arrays of ``--expected-output``.

    Raises:
        MismatchError: one differs by more than the tolerance.
    """
    names = list(wanted)
    if left := [name for name in results if name not in wanted]:
        click.echo(f"not compared, for want of --expected-output: {', '.join(left)}")
    found = tuple(results[name] for name in names)
    conclude(compare(found, tuple(wanted.values()), names=names, tolerance=tolerance), "the expected output")


def conclude(report: Report, judge: str) -> None:
    """Print a report. Raises MismatchError if it has a disagreement."""
    click.echo(f"against {judge}:")
    click.echo(report.text())
    if report.agrees:
        return
    bad = [result.name for result in report.results if not result.agrees]
    raise MismatchError(f"{len(bad)} of {len(report.results)} results differ from {judge}: {', '.join(bad[:8])}")
