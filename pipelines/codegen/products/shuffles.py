"""Rearrangements of vectors in registers."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, bits_of, element_of, lanes_of, vector_of


def joined(function: Function, vectors: Sequence[Value]) -> Value:
    """The lanes of as many vectors as a power of two, one after the other."""
    group = list(vectors)
    while len(group) > 1:
        group = [
            function.shuffle(left, right, range(2 * lanes_of(left.kind)))
            for left, right in zip(group[::2], group[1::2], strict=True)
        ]
    return group[0]


def interleaved(function: Function, vectors: Sequence[Value]) -> Value:
    """The first lanes of all of two or four vectors, then the second ones, and so on."""
    pairs = list(vectors)
    width = 1
    while len(pairs) > 1:
        # Vectors that are half of the others apart, so that lanes stay in order.
        half, lanes = len(pairs) // 2, lanes_of(pairs[0].kind)
        order = []
        for first in range(0, lanes, width):
            order += [*range(first, first + width), *range(lanes + first, lanes + first + width)]
        pairs = [function.shuffle(pairs[2 * place], pairs[2 * place + 1], order) for place in range(half)]
        width *= 2
    return pairs[0]


def transposed(function: Function, rows: Sequence[Value], width: int) -> list[Value]:
    """``width`` vectors of as many lanes as there are ``rows``, whose lanes count ``width``; both powers of two.

    Rows are first joined to whole vectors, each of rows that lie ``width`` apart, whose parts of ``width`` lanes are
    then transposed within the parts of the processor's registers, which is the cheapest shuffle.
    """
    count = len(rows)
    if width == 1:
        return [_gathered(function, rows)]
    if count == width and count * bits_of(element_of(rows[0].kind)) >= 128:
        return square_transposed(function, rows)
    if count <= width:
        whole = joined(function, rows)
        return [function.shuffle(whole, None, [row * width + term for row in range(count)]) for term in range(width)]
    vectors = [joined(function, rows[first::width]) for first in range(width)]
    # Bit by bit, a row's number within its part and a lane's number change places.
    bit = 1
    while bit < width:
        following = list(vectors)
        for place in range(width):
            if place & bit:
                continue
            left, right = vectors[place], vectors[place | bit]
            low = [lane if not lane & bit else count + (lane ^ bit) for lane in range(count)]
            high = [lane | bit if not lane & bit else count + lane for lane in range(count)]
            following[place] = function.shuffle(left, right, low)
            following[place | bit] = function.shuffle(left, right, high)
        vectors = following
        bit *= 2
    return vectors


def square_transposed(function: Function, rows: Sequence[Value]) -> list[Value]:
    """As many vectors as their lanes count, a power of two from 16 bytes on, with rows and lanes exchanged.

    By the instructions that processors have: pairs of rows are unpacked within 16 bytes, pairs of these in pairs, and
    in the end the 16 bytes themselves change places. LLVM finds none of them in an exchange bit by bit.
    """
    lanes = lanes_of(rows[0].kind)
    inner = min(lanes, 128 // bits_of(element_of(rows[0].kind)))
    groups = [[row] for row in rows]
    width = 1
    while width < inner:
        halves = [_unpacked(lanes, inner, width, start) for start in (0, inner // 2)]
        groups = [
            [function.shuffle(left, right, half) for left, right in zip(first, second, strict=True) for half in halves]
            for first, second in zip(groups[::2], groups[1::2], strict=True)
        ]
        width *= 2
    # Each group holds some rows; place n of it their lanes n, inner + n, 2 inner + n and so on.
    while len(groups) > 1:
        halves = [[lane for lane in range(2 * lanes) if lane // inner % 2 == parity] for parity in (0, 1)]
        groups = [
            [function.shuffle(left, right, half) for half in halves for left, right in zip(first, second, strict=True)]
            for first, second in zip(groups[::2], groups[1::2], strict=True)
        ]
    return _in_order(groups[0], inner, lanes)


def _unpacked(lanes: int, inner: int, width: int, start: int) -> list[int]:
    """The lanes of two vectors by turns, ``width`` at a time, of one half of each ``inner`` ones."""
    return [
        part * lanes + block + start + place + offset
        for block in range(0, lanes, inner)
        for place in range(0, inner // 2, width)
        for part in (0, 1)
        for offset in range(width)
    ]


def _in_order(vectors: Sequence[Value], inner: int, lanes: int) -> list[Value]:
    """Vectors of lanes whose numbers have even parts before odd ones, in their own order."""
    order = list(range(lanes // inner))
    blocks = [order]
    while len(blocks[0]) > 1:
        blocks = [part for half in (0, 1) for part in [block[half::2] for block in blocks]]
    found = [vectors[0]] * lanes
    for place, (block,) in enumerate(blocks):
        for number in range(inner):
            found[block * inner + number] = vectors[place * inner + number]
    return found


def sums_of(function: Function, vectors: Sequence[Value]) -> Value:
    """The sum of each vector's lanes, as a vector or, of one vector, a number; powers of two of both.

    Halves are added pair by pair, so that each shuffle serves two vectors.
    """
    lanes = lanes_of(vectors[0].kind)
    group, part = list(vectors), lanes
    while len(group) > 1 and part > 1:
        part //= 2
        low, high = _halves(2 * lanes, part)
        group = [
            function.shuffle(left, right, low) + function.shuffle(left, right, high)
            for left, right in zip(group[::2], group[1::2], strict=True)
        ]
    if len(group) > 1:
        return joined(function, group)
    total = group[0]
    while part > 1:
        part //= 2
        low, high = _halves(lanes_of(total.kind), part)
        total = function.shuffle(total, None, low) + function.shuffle(total, None, high)
    return total if lanes_of(total.kind) > 1 else function.extract(total, 0)


def _halves(lanes: int, part: int) -> tuple[list[int], list[int]]:
    """The lanes of the first and of the second halves of segments, each half of ``part`` lanes."""
    low = [lane for lane in range(lanes) if not lane // part % 2]
    return low, [lane + part for lane in low]


def _gathered(function: Function, numbers: Sequence[Value]) -> Value:
    kind = vector_of(numbers[0].kind, len(numbers))
    vector = Value(function, kind, "poison")
    for place, number in enumerate(numbers):
        vector = function.emit(f"insertelement {kind} {vector.text}, {number}, i64 {place}", kind)
    return vector


def exchanged_parts(function: Function, pairs: Value) -> Value:
    """Complex numbers with their parts exchanged: ``(b, a)`` of each ``(a, b)``."""
    return function.shuffle(pairs, None, [lane ^ 1 for lane in range(lanes_of(pairs.kind))])


def with_signs(function: Function, pairs: Value, *, first: bool) -> Value:
    """Complex numbers of which one part has the other sign, the ``first`` or the second one."""
    lanes, bits = lanes_of(pairs.kind), bits_of(element_of(pairs.kind))
    kind, element = vector_of(f"i{bits}", lanes), f"i{bits}"
    numbers = [-(1 << (bits - 1)) if bool(lane % 2) != first else 0 for lane in range(lanes)]
    mask = Value(function, kind, "<" + ", ".join(f"{element} {number}" for number in numbers) + ">")
    return function.emit(f"bitcast {pairs.bits() ^ mask} to {pairs.kind}", pairs.kind)
