"""Arguments of a call from the command line, and its results as text, files or latencies."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import ArgumentError, OptionError
from hloforge.dialect.program import Parameter, Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.inputs import is_archive, named_inputs, parse_input, write_archive, write_output
from hloforge.runtime.replicas.mpi import Rank
from hloforge.runtime.replicas.replicas import Replicas
from hloforge.runtime.session.convention import nest_results
from hloforge.runtime.session.session import Session

if TYPE_CHECKING:
    from hloforge.tools.feeding import Fed

Leaves: TypeAlias = list[tuple[str, np.ndarray[Any, Any]]]

REPEAT = 20
# Specifications that fit any parameter: one of them represents all.
PLAUSIBLE = "plausible"
_FOR_ALL = re.compile(r"random(:\d+)?|zeros|iota")


def arguments(signature: Signature, specs: Sequence[str], seed: int, program: Program | None) -> tuple[Any, ...]:
    """One argument a parameter, nested like it, from one specification a leaf.

    Args:
        specs: grammar of ``runtime.inputs``; a single ``random``, ``zeros`` or ``iota`` serves every leaf, and
            ``plausible`` draws them by ``runtime.plausible_inputs``. Fewer ``.npz`` files than leaves hold them by
            name.
        seed: of ``random`` without a number.
        program: what ``plausible`` looks at; None for a vmfb.

    Raises:
        ArgumentError: a wrong number of specifications, or one that does not fit its parameter.
        OptionError: ``plausible`` without a program.
    """
    if [spec.strip() for spec in specs] == [PLAUSIBLE]:
        if program is None:
            raise OptionError(f"--input={PLAUSIBLE} needs the program, which a vmfb does not contain")
        from hloforge.runtime.data.plausible_inputs import plausible_inputs

        return plausible_inputs(program, seed)
    leaves = [leaf for leaf in signature.flat_parameters if crosses(leaf.shape)]
    if len(specs) == 1 and _FOR_ALL.fullmatch(specs[0].strip()):
        specs = [specs[0]] * len(leaves)
    if 0 < len(specs) < len(leaves) and all(map(is_archive, specs)):
        values = named_inputs(specs, leaves)
    elif len(specs) != len(leaves):
        raise _wrong_count(signature, leaves, len(specs))
    else:
        values = [parse_input(seeded(spec, seed), leaf) for spec, leaf in zip(specs, leaves, strict=True)]
    nested = nest_results(Shape.tuple_of(*(parameter.shape for parameter in signature.parameters)), values)
    return tuple(nested)


def _wrong_count(signature: Signature, leaves: Sequence[Parameter], given: int) -> ArgumentError:
    noun = "input" if len(leaves) == 1 else "inputs"
    return ArgumentError(
        f"the program takes {len(leaves)} {noun}, got {given}",
        notes=(f"signature: {signature}",),
        hint="--input=random gives every parameter random values, --input=@x.npz those of its names" if leaves else "",
    )


def seeded(spec: str, seed: int) -> str:
    """A specification whose ``random`` has a number."""
    return f"random:{seed}" if spec.strip() == "random" else spec


def leaves(signature: Signature, results: Any) -> Leaves:
    """The arrays of a result with their names: ``result``, or ``result{1,0}`` within tuples. Tokens are left out."""
    found: Leaves = []

    def visit(shape: Shape, value: Any, index: tuple[int, ...]) -> None:
        if shape.elements is not None:
            for number, (member, element) in enumerate(zip(shape.elements, value, strict=True)):
                visit(member, element, (*index, number))
        elif crosses(shape):
            found.append((_name(index), value))

    visit(signature.result, results, ())
    return found


def result_shapes(signature: Signature) -> list[tuple[str, Shape]]:
    """The names of ``leaves`` with their shapes."""
    found: list[tuple[str, Shape]] = []

    def visit(shape: Shape, index: tuple[int, ...]) -> None:
        if shape.elements is not None:
            for number, member in enumerate(shape.elements):
                visit(member, (*index, number))
        elif crosses(shape):
            found.append((_name(index), shape))

    visit(signature.result, ())
    return found


def _name(index: tuple[int, ...]) -> str:
    return "result" + ("{" + ",".join(map(str, index)) + "}" if index else "")


def _named(signature: Signature, results: Leaves) -> dict[str, Any]:
    """The results by the names that the program's source has for them, where these are known and differ."""
    names = signature.result_names
    tokens = [crosses(shape) for shape in signature.flat_results]
    known = len(names) == len(tokens) and len(set(names)) == len(names) and all(names)
    own = iter([name for name, is_array in zip(names, tokens, strict=True) if is_array] if known else ())
    return {next(own, name): array for name, array in results}


def write_results(signature: Signature, results: Leaves, outputs: Sequence[str]) -> None:
    """Print every result as a literal, with its name in the source, or write it where an ``--output`` says.

    One ``.npz`` file takes all.

    Raises:
        ArgumentError: more outputs than results, or a malformed one; nothing is written then.
    """
    if not outputs:
        for (name, array), own in zip(results, _named(signature, results), strict=True):
            if len(results) > 1:
                click.echo(f"{name}:" if own == name else f"{name} ({own}):")
            write_output("-", array)
        return
    if len(outputs) == 1 and is_archive(outputs[0]):
        write_archive(outputs[0], _named(signature, results))
        return
    if len(outputs) > len(results):
        raise ArgumentError(f"{len(outputs)} outputs for {len(results)} results")
    for spec, (_, array) in zip(outputs, results, strict=False):
        write_output(spec, array)


def report_latency(session: Session | Replicas | Rank | Fed, call_arguments: Sequence[Any], repeat: int) -> None:
    """Print the median and the spread of ``repeat`` calls on standard error; the program has run before."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session(*call_arguments)
        times.append(time.perf_counter() - start)
    low, middle, high = (float(np.quantile(times, share)) for share in (0.25, 0.5, 0.75))
    click.echo(
        f"latency: median {_seconds(middle)}, quartiles {_seconds(low)} to {_seconds(high)}, "
        f"least {_seconds(min(times))}, mean {_seconds(statistics.fmean(times))}; {repeat} calls on {session.device}",
        err=True,
    )


def report_bucket(session: Any) -> None:
    """Say on standard error which bucket has computed the last call, if the program has buckets."""
    buckets = getattr(session, "buckets", ())
    if not buckets:
        return
    bucket = session.last_bucket
    chosen = ", ".join(f"{name} <= {size}" for name, size in bucket.sizes.items()) if bucket else "none fits"
    click.echo(f"bucket: {chosen}; of {len(buckets)}", err=True)


def _seconds(value: float) -> str:
    return f"{1e6 * value:.1f} µs" if value < 1e-3 else f"{1e3 * value:.2f} ms"
