"""The physical form of an array at the border to IREE: the pipeline emits it, the session fills it.

A parameter ``f32[4,8]{0,1}`` crosses as ``tensor<8x4xf32>``: row-major, dimensions in major-to-minor order, so its
bytes are those that a caller of XLA passes. An array with tiles or padding crosses as its whole buffer, of one
dimension: ``f32[3,5]{1,0:T(2,2)}`` as ``tensor<24xf32>``. Sub-byte elements cross one to a byte, and floats of 4 and
8 bits as their codes: IREE 3.13 takes only five of the eight 8-bit types at its border. Tokens do not cross at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.layouts import Layout
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape

# What the message of a call begins with whose argument sizes violate an assertion of the program.
SHAPE_ASSERTION = "shape assertion: "


def major_to_minor(shape: Shape) -> tuple[int, ...]:
    """The permutation from logical to physical dimensions: identity for XLA's default layout."""
    if shape.layout is None:
        return tuple(range(shape.rank))
    return tuple(reversed(shape.layout.minor_to_major))


def buffer_layout(shape: Shape) -> Layout | None:
    """The layout of a buffer that holds padding or tiles; None where it holds the elements alone, in some order.

    It says where the elements are, not how many bits each takes (``E(4)``) nor where the buffer lives (``S(1)``): at
    this border every element has whole bytes, in host memory.
    """
    layout = shape.layout
    if layout is None or replace(layout, element_size_in_bits=0).is_plain:
        return None
    return replace(layout, element_size_in_bits=0, memory_space=0, extras=())


def crosses(shape: Shape) -> bool:
    """Whether a leaf of the signature is an argument or result of the compiled function: tokens carry no data."""
    return shape.is_array


def donated_arguments(signature: Signature) -> frozenset[int]:
    """The positions, among the arguments that cross, of the leaves that the caller gives away: these the program may
    overwrite (XLA's input_output_alias)."""
    given = {(alias.parameter_number, alias.parameter_index) for alias in signature.aliases}
    return frozenset(position for leaf, position in _arguments(signature).items() if leaf in given)


def aliased_results(signature: Signature) -> dict[int, int]:
    """The positions, among the results that cross, of those that may lie where an argument does, with that
    argument's."""
    arguments = _arguments(signature)
    leaves = (index for index, leaf in _leaves(signature.result, ()) if crosses(leaf))
    positions = {index: position for position, index in enumerate(leaves)}
    found: dict[int, int] = {}
    for alias in signature.aliases:
        argument = arguments.get((alias.parameter_number, alias.parameter_index))
        if alias.output_index in positions and argument is not None and argument not in found.values():
            found[positions[alias.output_index]] = argument
    return found


def _arguments(signature: Signature) -> dict[tuple[int, tuple[int, ...]], int]:
    """The positions, among the arguments that cross, of leaves of parameters."""
    leaves = [
        (number, index)
        for number, parameter in enumerate(signature.parameters)
        for index, leaf in _leaves(parameter.shape, ())
        if crosses(leaf)
    ]
    return {leaf: position for position, leaf in enumerate(leaves)}


def _leaves(shape: Shape, index: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Shape]]:
    """The leaves of a shape with their positions in its tuples."""
    if shape.elements is None:
        yield index, shape
        return
    for number, member in enumerate(shape.elements):
        yield from _leaves(member, (*index, number))


def physical_element(element: ElementType) -> ElementType:
    """Sub-byte integers widen to a byte with their value; floats of at most 8 bits become their code in a u8."""
    if element.is_float and element.bits <= 8:
        return element_type("u8")
    if not element.is_sub_byte:
        return element
    return element_type("s8" if element.kind is Kind.SIGNED else "u8")


def physical_shape(shape: Shape) -> Shape:
    """The row-major shape of ``shape`` at IREE's border. ``shape`` is an array.

    Raises:
        UnsupportedError: it has tiles or padding, and dynamic dimensions.
    """
    if shape.element is None:
        raise ValueError(f"{shape} is not an array")
    layout = buffer_layout(shape)
    if layout is not None and not shape.is_static:
        raise UnsupportedError(
            f"{shape}: the buffer of a tiled or padded array of dynamic size has no known size",
            hint="compile the program for static sizes, or without the tiles in its entry layout",
        )
    if layout is not None:
        return Shape(physical_element(shape.element), (layout.buffer_elements(shape.dimensions),))
    order = major_to_minor(shape)
    return replace(
        shape,
        element=physical_element(shape.element),
        dimensions=tuple(shape.dimensions[d] for d in order),
        dynamic=tuple(shape.dynamic[d] for d in order),
        layout=None,
    )
