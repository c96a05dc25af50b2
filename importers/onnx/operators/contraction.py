"""Matrix products and sums of products."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import sums_in, widened
from hloforge.importers.tensors import broadcast_to, cast, matmul, total


@operator("MatMul")
def matmul_(node: Node) -> Value:
    return matmul(node.value(0), node.value(1))


@operator("Gemm")
def gemm(node: Node) -> Value:
    """``alpha * A @ B + beta * C``, with A and B transposed as the attributes say."""
    a, b = node.value(0), node.value(1)
    sides = [0 if node.attribute("transA", 0) else 1], [1 if node.attribute("transB", 0) else 0]
    product = ops.dot_general(a, b, ops.DotDimensionNumbers(*sides), "HIGHEST", sums_in(a))
    product = _scaled(product, float(node.attribute("alpha", 1.0)))
    if not node.has(2):
        return cast(product, a.element_type)
    addend = _scaled(widened(node.value(2)), float(node.attribute("beta", 1.0)))
    return cast(product + broadcast_to(addend, product.dims), a.element_type)


def _scaled(x: Value, factor: float) -> Value:
    if factor == 1.0:
        return x
    return x * factor if x.element_type.is_float else x * int(factor)


@operator("Einsum")
def einsum(node: Node) -> Value:
    """Pairs of operands are multiplied from the left; what an operand alone has is summed first."""
    equation = str(node.attribute("equation")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    operands = node.values()
    row = operands[0].element_type
    if len(operands) > 2:
        operands = [widened(x) for x in operands]
    widest = max(
        (x.rank - len(term.replace("...", "")) for term, x in zip(terms, operands, strict=True) if "..." in term),
        default=0,
    )
    # Capital Greek represents the dimensions of an ellipsis, which letters of equations cannot be.
    dots = "".join(chr(0x391 + number) for number in range(widest))
    named = [_spelled(term, x, dots) for term, x in zip(terms, operands, strict=True)]
    if arrow:
        result = right.replace("...", dots)
    else:
        letters = "".join(term.replace("...", "") for term in terms)
        result = dots + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    parts = [_diagonal(x, term) for term, x in zip(named, operands, strict=True)]
    value, term = parts[0]
    for number, (other, other_term) in enumerate(parts[1:], 2):
        later = result + "".join(following for _, following in parts[number:])
        value, term = _product(value, term, other, other_term, set(later))
    value, term = _summed(value, term, set(result))
    return cast(ops.transpose(value, [term.index(letter) for letter in result]) if value.rank else value, row)


def _spelled(term: str, x: Value, dots: str) -> str:
    count = x.rank - len(term.replace("...", ""))
    return term.replace("...", dots[len(dots) - count :])


def _diagonal(x: Value, term: str) -> tuple[Value, str]:
    """Letters that occur twice name a diagonal: every (n + 1)-th element of the two dimensions as one."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            rest = [d for d in range(x.rank) if d not in (first, second)]
            sizes, n = [x.dims[d] for d in rest], x.dims[first]
            flat = ops.reshape(ops.transpose(x, [*rest, first, second]), [*sizes, n * n])
            diagonal = ops.slice(flat, [0] * flat.rank, [*sizes, n * n], [*[1] * len(rest), n + 1])
            x = ops.transpose(diagonal, [*range(first), len(rest), *range(first, len(rest))])
            term = term[:second] + term[second + 1 :]
    return x, term


def _summed(x: Value, term: str, kept: set[str]) -> tuple[Value, str]:
    gone = [d for d, letter in enumerate(term) if letter not in kept]
    return (total(x, gone), "".join(letter for letter in term if letter in kept)) if gone else (x, term)


def _product(a: Value, a_term: str, b: Value, b_term: str, kept: set[str]) -> tuple[Value, str]:
    a, a_term = _summed(a, a_term, kept | set(b_term))
    b, b_term = _summed(b, b_term, kept | set(a_term))
    shared = [letter for letter in a_term if letter in b_term]
    sizes = {letter: max(a.dims[a_term.index(letter)], b.dims[b_term.index(letter)]) for letter in shared}
    a = broadcast_to(a, [sizes.get(letter, extent) for letter, extent in zip(a_term, a.dims, strict=True)])
    b = broadcast_to(b, [sizes.get(letter, extent) for letter, extent in zip(b_term, b.dims, strict=True)])
    batch = [letter for letter in shared if letter in kept]
    contracted = [letter for letter in shared if letter not in kept]
    numbers = ops.DotDimensionNumbers(
        [a_term.index(letter) for letter in contracted],
        [b_term.index(letter) for letter in contracted],
        [a_term.index(letter) for letter in batch],
        [b_term.index(letter) for letter in batch],
    )
    rest = [letter for letter in a_term if letter not in shared] + [letter for letter in b_term if letter not in shared]
    return ops.dot_general(a, b, numbers, "HIGHEST"), "".join([*batch, *rest])
