"""Import archives of ``torch.export.save`` without running code that the file contains."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.export.pt2_archive._package import PT2ArchiveReader, _load_exported_programs
from torch.export.pt2_archive.constants import SAMPLE_INPUTS_DIR

from hloforge.dialect.bounded_sizes import BoundedSize
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.importers.freezing import freeze
from hloforge.torch.exported import convention_of, names_of, overwritten, prepared
from hloforge.torch.importer import Graph, graph_of
from hloforge.torch.structures import declare_types, input_names, output_names, result_names
from hloforge.torch.types import to_numpy

_UPDATES = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)


def program_of_archive(path: str, sizes: Sequence[Sequence[int]] | None = None) -> Program:
    """The program of an archive that was vetted; its weights are constants.

    What the program changes (running statistics, caches) are its first arguments, by their names, and their new values
    the first results.

    Args:
        sizes: of each argument; without them the program as far as it is known.

    Raises:
        ImporterError: PyTorch cannot read the archive.
        UnsupportedError: operators that are not imported, each named with its lines; numbers that decide sizes.
    """
    exported = prepared(load(path))
    graph = graph_of(exported.graph_module, names=names_of(exported), name="")
    if graph.size_parameters:
        name = graph.parameters()[graph.size_parameters[0]].name
        raise UnsupportedError(
            f"the number {name!r} determines sizes, but programs take arrays only",
            hint="export the model with that number as a constant, or use hloforge.torch.compile(…)",
        )
    weights = _weights(exported, graph)
    shapes = graph.shapes
    if sizes is None and any(not shape.is_static for shape in shapes):
        # The weights are read with the sizes: zeros, one number each, represent them.
        zeros = {n: np.broadcast_to(np.zeros((), w.dtype), w.shape) for n, w in weights.items()}
        program = _named(freeze(graph.placeholder(), zeros), exported)
        # Whatever they are, the program can be made for each choice of sizes.
        with suppress(UnsupportedError):
            program.open_sizes = tuple(_without(weights, size) for size in graph.bounded_sizes())
        return program
    if sizes is not None:
        given = iter(sizes)
        shapes = [s if n in weights else Shape.array(s.element, *next(given)) for n, s in enumerate(shapes)]
    program = _named(freeze(graph.specialize(shapes, {}), weights), exported)
    program.describe(aliases=overwritten(exported, program))
    return program


def _without(weights: Collection[int], size: BoundedSize) -> BoundedSize:
    """A size whose places count the parameters that are left."""
    places = [replace(p, parameter=p.parameter - sum(n < p.parameter for n in weights)) for p in size.places]
    return replace(size, places=tuple(places))


def _named(program: Program, exported: ExportedProgram) -> Program:
    """The program with names of its results: paths in what the module returns."""
    names = result_names(convention_of(exported), input_names(exported), output_names(exported))
    if len(names) == len(program.signature.flat_results):
        program.describe(result_names=names)
    return program


class _Reader(PT2ArchiveReader):  # type: ignore[misc]
    """Reads an archive but for the sample inputs: no program needs them, and what is pickled in them may run code."""

    def read_bytes(self, file_name: str) -> bytes:
        return b"" if file_name.startswith(SAMPLE_INPUTS_DIR) else super().read_bytes(file_name)


def load(path: str) -> ExportedProgram:
    """``torch.export.load`` of an archive that was vetted, without its sample inputs.

    Raises:
        ImporterError: PyTorch cannot read the archive.
    """
    try:
        declare_types(path)
        with _Reader(path) as reader:
            names = reader.get_file_names()
            if b"torch.ops.quantized_decomposed." in reader.read_bytes("models/model.json"):
                # It registers these operators.
                import_module("torch.ao.quantization.fx._decomposed")
            exported = _load_exported_programs(reader, names, None)["model"]
    except Exception as error:  # of any kind: PyTorch asserts and looks up what the file says
        raise ImporterError(
            f"PyTorch {torch.__version__} cannot read the archive: {type(error).__name__}: {error}".splitlines()[0],
            hint="it is damaged, or was written by another version of PyTorch",
        ) from None
    # Python code; it is not needed, because sizes are checked here.
    exported._guards_code = []
    return exported


def _weights(exported: ExportedProgram, graph: Graph) -> dict[int, np.ndarray[Any, Any]]:
    """The state that the program does not change, by the numbers of its parameters."""
    changed = {spec.target for spec in exported.graph_signature.output_specs if spec.kind in _UPDATES}
    convention = convention_of(exported)
    state = dict(zip(convention.names, convention.state, strict=True))
    specs = exported.graph_signature.input_specs
    found = {}
    for number, place in enumerate(graph.taken):
        spec = specs[place]
        if spec.kind is not InputKind.USER_INPUT and spec.target is not None and spec.target not in changed:
            array = to_numpy(state[spec.target])
            found[number] = np.ascontiguousarray(array).reshape(array.shape)
    return found
