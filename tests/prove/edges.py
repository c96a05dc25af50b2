"""StableHLO text of one to four operations, with attributes at the edges of the specification.

Each program has operations whose windows, slices, paddings, dimension numbers and regions people write seldom: nothing
to compute, windows beyond the array, negative paddings, several operands, computations that are not commutative.
"""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import numpy as np

import hloforge
from hloforge.dialect.element_types import element_type
from tests.fuzz.generator import Case
from tests.fuzz.values import array_of

_TYPES = (
    "f32",
    "f32",
    "f32",
    "f64",
    "s32",
    "s32",
    "s64",
    "s8",
    "u8",
    "u32",
    "s16",
    "pred",
    "bf16",
    "f16",
    "u64",
    "c64",
)
_SIZES = (0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 16, 17)
_EXACT = ("s32", "s64", "s8", "u8", "u32", "s16", "u64")
_REAL = ("f32", "f64", *_EXACT)
Dims = tuple[int, ...]


class _Text:
    """A module that is being written, and what its parameters get."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"edges {seed}")
        self.parameters: list[tuple[str, Dims]] = []
        # Of products, whose sums would overflow in one order of their terms and not in another.
        self.factors: set[int] = set()
        self.lines: list[str] = []
        self.results: list[tuple[str, str]] = []
        self.count = 0

    def parameter(self, element: str, dims: Dims) -> str:
        self.parameters.append((element, dims))
        return f"%arg{len(self.parameters) - 1}"

    def add(self, line: str, *types: str) -> str:
        """An operation with results of these types."""
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"{name}{f':{len(types)}' if len(types) > 1 else ''} = {line}")
        for number, type_ in enumerate(types):
            self.results.append((f"{name}#{number}" if len(types) > 1 else name, type_))
        return name

    def dims(self, least: int = 0, most: int = 4) -> Dims:
        dims = [self.random.choice(_SIZES) for _ in range(self.random.randint(least, most))]
        while prod(dims) > 600:
            dims[dims.index(max(dims))] = self.random.choice((0, 1, 2, 3))
        return tuple(dims)

    def element(self, *names: str) -> str:
        return self.random.choice(names or _TYPES)

    def scalar(self, number: str, element: str) -> str:
        name = f"%c{self.count}"
        self.count += 1
        self.lines.append(f"{name} = stablehlo.constant dense<{number}> : {tensor(element, ())}")
        return name


def tensor(element: str, dims: Dims) -> str:
    return f"tensor<{''.join(f'{size}x' for size in dims)}{_mlir(element)}>"


def _mlir(element: str) -> str:
    row = element_type(element)
    if element == "pred":
        return "i1"
    if row.is_complex:
        return f"complex<f{row.bits // 2}>"
    if row.is_integer:
        return f"ui{row.bits}" if element.startswith("u") else f"i{row.bits}"
    return element


def _array(numbers: list[int] | tuple[int, ...]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def _pairs(pairs: list[tuple[int, int]]) -> str:
    return (
        f"dense<{[list(pair) for pair in pairs]}> : tensor<{len(pairs)}x2xi64>"
        if pairs
        else "dense<> : tensor<0x2xi64>"
    )


def _window(t: _Text) -> None:
    """``reduce_window`` of one or two operands, in any element type, with every attribute."""
    element = t.element(*_REAL)
    dims = t.dims(1, 3)
    window = [t.random.choice((1, 1, 2, 3, 5)) for _ in dims]
    strides = [t.random.choice((1, 1, 2, 3)) for _ in dims]
    holes = [t.random.choice((1, 1, 2, 3)) for _ in dims]
    spread = [t.random.choice((1, 1, 2)) for _ in dims]
    padding = [(t.random.randint(-1, 2), t.random.randint(-1, 2)) for _ in dims]
    sizes = []
    for d, size in enumerate(dims):
        whole = (0 if size == 0 else (size - 1) * holes[d] + 1) + sum(padding[d])
        if whole < 0:
            padding[d] = (0, 0)
            whole = 0 if size == 0 else (size - 1) * holes[d] + 1
        extent = (window[d] - 1) * spread[d] + 1
        sizes.append(0 if whole == 0 or extent > whole else (whole - extent) // strides[d] + 1)
    count = t.random.choice((1, 1, 2))
    operands = [t.parameter(element, dims) for _ in range(count)]
    body = t.random.choice(("maximum", "minimum") if "f" in element else ("maximum", "minimum", "add", "and", "or"))
    start = _identity(body, element)
    starts = [t.scalar(start, element) for _ in range(count)]
    names = [f"%l{n}: {tensor(element, ())}" for n in range(count)] + [
        f"%r{n}: {tensor(element, ())}" for n in range(count)
    ]
    inner = [f"%m{n} = stablehlo.{body} %l{n}, %r{n} : {tensor(element, ())}" for n in range(count)]
    types = ", ".join([tensor(element, ())] * count)
    results = [tensor(element, tuple(sizes))] * count
    t.add(
        f'"stablehlo.reduce_window"({", ".join(operands + starts)}) <{{base_dilations = {_array(holes)}, '
        f"padding = {_pairs(padding)}, window_dilations = {_array(spread)}, window_dimensions = {_array(window)}, "
        f"window_strides = {_array(strides)}}}> ({{\n^bb0({', '.join(names)}):\n" + "\n".join(inner)
        + f"\nstablehlo.return {', '.join(f'%m{n}' for n in range(count))} : {types}\n}}) : "
        f"({', '.join([tensor(element, dims)] * count + [tensor(element, ())] * count)}) -> ({', '.join(results)})",
        *results,
    )  # fmt: skip


def _identity(body: str, element: str) -> str:
    row = element_type(element)
    low = f"{'0x' + ('FFF0000000000000' if row.bits == 64 else 'FF800000') if row.is_float else _least(element)}"
    high = f"{'0x' + ('7FF0000000000000' if row.bits == 64 else '7F800000') if row.is_float else _greatest(element)}"
    return {"maximum": low, "minimum": high, "add": "0", "or": "0", "and": str(_ones(element))}[body]


def _least(element: str) -> int:
    return 0 if element.startswith("u") else -(1 << (element_type(element).bits - 1))


def _greatest(element: str) -> int:
    return (1 << (element_type(element).bits - (not element.startswith("u")))) - 1


def _ones(element: str) -> int:
    return _greatest(element) if element.startswith("u") else -1


def _pair_reduction(t: _Text) -> None:
    """A number and its place, the first or the last of equal ones, as people write argmax; along any dimensions."""
    element, dims = t.element("f32", "s32", "u8", "s64", "f64", "s8"), t.dims(1, 3)
    over = sorted(t.random.sample(range(len(dims)), 1))
    value = t.parameter(element, dims)
    place = t.add(f"stablehlo.iota dim = {over[0]} : {tensor('s32', dims)}", tensor("s32", dims))
    least = _identity("maximum", element)
    start, zero = t.scalar(least, element), t.scalar("0", "s32")
    greater = t.random.choice(("GT", "GE"))
    compare = "SIGNED" if not element.startswith(("f", "u")) else "UNSIGNED" if element[0] == "u" else "FLOAT"
    kept = tuple(size for d, size in enumerate(dims) if d not in over)
    ties = t.random.random() < 0.5
    e, i, b = tensor(element, ()), tensor("s32", ()), tensor("pred", ())
    lines = [f"%g = stablehlo.compare {greater}, %a, %b, {compare} : ({e}, {e}) -> {b}"]
    if ties:
        lines += [f"%e = stablehlo.compare EQ, %a, %b, {compare} : ({e}, {e}) -> {b}",
                  f"%s = stablehlo.compare LT, %p, %q, SIGNED : ({i}, {i}) -> {b}",
                  f"%t = stablehlo.and %e, %s : {b}",
                  f"%w = stablehlo.compare GT, %a, %b, {compare} : ({e}, {e}) -> {b}",
                  f"%h = stablehlo.or %w, %t : {b}"]  # fmt: skip
    flag = "%h" if ties else "%g"
    # Without a rule for ties, the order of the pairs would decide: then only values are returned.
    lines += [f"%x = stablehlo.select {flag}, %a, %b : {b}, {e}", f"%y = stablehlo.select {flag}, %p, %q : {b}, {i}"]
    results = (tensor(element, kept), tensor("s32", kept))
    t.add(
        f'"stablehlo.reduce"({value}, {place}, {start}, {zero}) <{{dimensions = {_array(over)}}}> ({{\n'
        f"^bb0(%a: {e}, %p: {i}, %b: {e}, %q: {i}):\n" 
        + "\n".join(lines) + f"\nstablehlo.return %x, %y : {e}, {i}\n}}) : "
        f"({tensor(element, dims)}, {tensor('s32', dims)}, {e}, {i}) -> ({', '.join(results)})", *results,
    )  # fmt: skip
    if not ties:
        t.results.pop()


def _padded(t: _Text) -> None:
    element, dims = t.element(), t.dims(1, 4)
    low = [t.random.randint(-2, 3) for _ in dims]
    high = [t.random.randint(-2, 3) for _ in dims]
    inner = [t.random.choice((0, 0, 1, 2)) for _ in dims]
    sizes = [size + max(0, size - 1) * i + a + b for size, i, a, b in zip(dims, inner, low, high, strict=True)]
    for d, size in enumerate(sizes):
        if size < 0:
            sizes[d], high[d] = 0, high[d] - size
    operand, fill = t.parameter(element, dims), t.parameter(element, ())
    type_ = tensor(element, tuple(sizes))
    made = t.add(
        f"stablehlo.pad {operand}, {fill}, low = {low}, high = {high}, interior = {inner} : "
        f"({tensor(element, dims)}, {tensor(element, ())}) -> {type_}", type_,
    )  # fmt: skip
    _then_moved(t, made, element, tuple(sizes))


def _then_moved(t: _Text, value: str, element: str, dims: Dims) -> None:
    """A slice, a reversal or a transposition of what was made."""
    kind = t.random.choice(("slice", "reverse", "transpose", "concatenate"))
    if not dims:
        return
    if kind == "slice":
        ends = [sorted((t.random.randint(0, size), t.random.randint(0, size))) for size in dims]
        steps = [t.random.choice((1, 2, 3, size or 1)) for size in dims]
        sizes = tuple(-(-(stop - start) // step) for (start, stop), step in zip(ends, steps, strict=True))
        text = ", ".join(f"{start}:{stop}:{step}" for (start, stop), step in zip(ends, steps, strict=True))
        type_ = tensor(element, sizes)
        t.add(f"stablehlo.slice {value} [{text}] : ({tensor(element, dims)}) -> {type_}", type_)
    elif kind == "reverse":
        over = t.random.sample(range(len(dims)), t.random.randint(0, len(dims)))
        t.add(f"stablehlo.reverse {value}, dims = {over} : {tensor(element, dims)}", tensor(element, dims))
    elif kind == "transpose":
        order = t.random.sample(range(len(dims)), len(dims))
        type_ = tensor(element, tuple(dims[d] for d in order))
        t.add(f"stablehlo.transpose {value}, dims = {order} : ({tensor(element, dims)}) -> {type_}", type_)
    else:
        along = t.random.randrange(len(dims))
        type_ = tensor(element, (*dims[:along], 3 * dims[along], *dims[along + 1 :]))
        t.add(
            f"stablehlo.concatenate {value}, {value}, {value}, dim = {along} : "
            f"({', '.join([tensor(element, dims)] * 3)}) -> {type_}", type_,
        )  # fmt: skip


def _gathered(t: _Text) -> None:
    """With batching dimensions, an index vector anywhere, windows of any size."""
    element = t.element()
    batch = t.random.choice((0, 0, 1, 2))
    batches = tuple(t.random.choice((1, 2, 3)) for _ in range(batch))
    rest = tuple(t.random.choice((1, 2, 4, 5)) for _ in range(t.random.randint(1, 2)))
    operand_dims = (*batches, *rest)
    more = tuple(t.random.choice((1, 3, 0)) for _ in range(t.random.choice((0, 1, 1))))
    indexed = t.random.sample(range(batch, len(operand_dims)), t.random.randint(1, len(rest)))
    index_dims = [*batches, *more]
    position = t.random.randint(0, len(index_dims))
    index_dims.insert(position, len(indexed))
    starts_batching = [d if d < position else d + 1 for d in range(batch)]
    sizes = [1] * batch + [t.random.randint(1, size) for size in rest]
    gone = [d for d in range(batch, len(operand_dims)) if sizes[d] == 1 and t.random.random() < 0.6]
    window = [sizes[d] for d in range(len(operand_dims)) if d not in gone and d >= batch]
    outer = [size for d, size in enumerate(index_dims) if d != position]
    rank = len(outer) + len(window)
    offsets = sorted(t.random.sample(range(rank), len(window)))
    result, own, other = [], iter(window), iter(outer)
    for d in range(rank):
        result.append(next(own) if d in offsets else next(other))
    index = t.element("s32", "s64", "s8", "s16")
    value, places = t.parameter(element, operand_dims), t.parameter(index, tuple(index_dims))
    type_ = tensor(element, tuple(result))
    numbers = (
        f"offset_dims = {offsets}, collapsed_slice_dims = {gone}, operand_batching_dims = {list(range(batch))}, "
        f"start_indices_batching_dims = {starts_batching}, start_index_map = {indexed}, index_vector_dim = {position}"
    )
    t.add(
        f'"stablehlo.gather"({value}, {places}) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
        f"slice_sizes = {_array(sizes)}, indices_are_sorted = false}}> : "
        f"({tensor(element, operand_dims)}, {tensor(index, tuple(index_dims))}) -> {type_}", type_,
    )  # fmt: skip


def _sorted(t: _Text) -> None:
    """Of one to three arrays, by keys in any order, or by a comparator that leaves them."""
    dims, count = t.dims(1, 3), t.random.choice((1, 2, 3))
    types = [t.element("s32", "f32", "u8", "s64", "s8", "f64") for _ in range(count)]
    values = [t.parameter(element, dims) for element in types]
    along = t.random.randrange(len(dims))
    key = t.random.randrange(count)
    direction = t.random.choice(("LT", "GT"))
    kind = {"f": "TOTALORDER", "u": "UNSIGNED"}.get(types[key][0], "SIGNED")
    names = ", ".join(f"%a{n}: {tensor(e, ())}, %b{n}: {tensor(e, ())}" for n, e in enumerate(types))
    scalar = tensor(types[key], ())
    results = [tensor(element, dims) for element in types]
    t.add(
        f'"stablehlo.sort"({", ".join(values)}) <{{dimension = {along} : i64, is_stable = true}}> ({{\n^bb0({names}):\n'
        f"%w = stablehlo.compare {direction}, %a{key}, %b{key}, {kind} : ({scalar}, {scalar}) -> tensor<i1>\n"
        f"stablehlo.return %w : tensor<i1>\n}}) : ({', '.join(results)}) -> ({', '.join(results)})", *results,
    )  # fmt: skip


def _product(t: _Text) -> None:
    """Several batching and contracting dimensions, in any order, and none."""
    element = t.element("f32", "f64", "s32", "s8", "u8", "bf16", "s64", "c64")
    sizes = [t.random.choice((0, 1, 2, 3, 5)) for _ in range(4)]
    batch, depth = t.random.choice((0, 1, 2)), t.random.choice((0, 1, 2))
    shared = sizes[: batch + depth]
    left = [*shared, *(t.random.choice((1, 2, 4)) for _ in range(t.random.choice((0, 1, 2))))]
    right = [*shared, *(t.random.choice((1, 3)) for _ in range(t.random.choice((0, 1))))]
    orders = [t.random.sample(range(len(side)), len(side)) for side in (left, right)]
    shapes = [tuple(side[d] for d in order) for side, order in zip((left, right), orders, strict=True)]
    at = [[order.index(d) for d in range(batch + depth)] for order in orders]
    free = [
        tuple(side[d] for d in order if d >= batch + depth) for side, order in zip((left, right), orders, strict=True)
    ]
    made = element if element not in ("s8", "u8") else t.random.choice((element, "s32"))
    type_ = tensor(made, (*shared[:batch], *free[0], *free[1]))
    one, other = (t.parameter(element, shape) for shape in shapes)
    t.factors |= {len(t.parameters) - 2, len(t.parameters) - 1}
    t.add(
        f"stablehlo.dot_general {one}, {other}, batching_dims = {at[0][:batch]} x {at[1][:batch]}, "
        f"contracting_dims = {at[0][batch:]} x {at[1][batch:]} : "
        f"({tensor(element, shapes[0])}, {tensor(element, shapes[1])}) -> {type_}", type_,
    )  # fmt: skip


def _converted(t: _Text) -> None:
    """Between any two types; bits between types of other widths."""
    element, dims = t.element(), t.dims(0, 3)
    value = t.parameter(element, dims)
    if t.random.random() < 0.6:
        to = t.element()
        if element == "c64" and to != "c64":
            to = "c64"
        t.add(f"stablehlo.convert {value} : ({tensor(element, dims)}) -> {tensor(to, dims)}", tensor(to, dims))
        return
    bits = {"pred": 0, "c64": 0}.get(element, element_type(element).bits)
    fitting = {8: "s32", 16: "u32", 32: "u8", 64: "s16"}
    if not bits:
        return
    to = fitting[bits]
    other = element_type(to).bits
    if bits > other:
        type_ = tensor(to, (*dims, bits // other))
        t.add(f"stablehlo.bitcast_convert {value} : ({tensor(element, dims)}) -> {type_}", type_)
    else:
        wide = (*dims, other // bits)
        value = t.parameter(element, wide)
        t.add(f"stablehlo.bitcast_convert {value} : ({tensor(element, wide)}) -> {tensor(to, dims)}", tensor(to, dims))


_KINDS = (_window, _window, _pair_reduction, _padded, _padded, _gathered, _gathered, _sorted, _product, _converted)


def _factor(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers whose products can be added in any order; those of two complex infinities are not the same everywhere."""
    row = element_type(array.dtype)
    if row.is_integer or array.dtype == bool:
        return array
    wide = array.astype(np.complex128 if row.is_complex else np.float64)
    largest = 2.0 ** ({16: 6, 32: 60, 64: 60 if row.is_complex else 500}[row.bits])
    kept = np.isfinite(wide) & (np.abs(wide) < largest)
    if not row.is_complex:
        kept |= ~np.isfinite(wide)
    return np.where(kept, wide, 1).astype(array.dtype)


def text_of(seed: int) -> tuple[str, _Text]:
    """The module of a seed, and what it was made of."""
    t = _Text(seed)
    for _ in range(t.random.choice((1, 1, 2, 4))):
        t.random.choice(_KINDS)(t)
    if not t.parameters:
        t.results.append((t.parameter("f32", (2,)), tensor("f32", (2,))))
    arguments = ", ".join(f"%arg{number}: {tensor(*one)}" for number, one in enumerate(t.parameters))
    values, types = (", ".join(part) for part in zip(*t.results, strict=True)) if t.results else ("", "")
    body = "\n".join(t.lines)
    head = f"func.func public @main({arguments}) -> ({types})"
    return f"{head} {{\n{body}\nreturn{f' {values} : {types}' if values else ''}\n}}\n", t


def case_of(seed: int) -> Case:
    """The program of a seed, as a file that hloforge reads."""
    text, t = text_of(seed)
    random = Random(seed)
    drawn = [array_of(random, element, dims) for element, dims in t.parameters]
    arguments = tuple(_factor(array) if number in t.factors else array for number, array in enumerate(drawn))
    return Case(seed, hloforge.read(text, name=f"edges_{seed}"), arguments)
