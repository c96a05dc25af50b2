"""Random bits by counters: Threefry-2x32 and Philox-4x32, in the order in which XLA's CPU client hands them out.

A counter-based generator is a keyed bijection of counters: block ``c`` of the stream is ``cipher(key, c)``, whatever
came before. All blocks are computed at once, elementwise.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the order of words and the states are
those of XLA's expander of ``rng-bit-generator``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.values import Value

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def halves(value: Value) -> tuple[Value, Value]:
    """The low and the high 32 bits of u64 numbers."""
    return ops.convert_element_type(value, "u32"), ops.convert_element_type(value >> 32, "u32")


def joined(low: Value, high: Value) -> Value:
    """u64 numbers of their low and high 32 bits."""
    return ops.convert_element_type(low, "u64") | (ops.convert_element_type(high, "u64") << 32)


def threefry_bits(state: Value, dims: Sequence[int], width: int) -> tuple[Value, Value]:
    """Bits of Threefry.

    Args:
        state: ``u64[2]``, a key and a counter.
        dims: sizes of the result.
        width: bits an element: 64, or at most 32, of which a word of 32 gives its low ones.

    Returns:
        ``(state, bits)``: the state with the counter of the next block; unsigned integers of ``width`` bits.
    """
    key, counter = state[0], state[1]
    if width == 64:
        low, high = _threefry(key, _counters(counter, prod(dims)))
        bits, count = ops.reshape(joined(low, high), dims), prod(dims)
    elif not dims:
        bits, count = ops.reshape(_threefry(key, _counters(counter, 1))[0], []), 1
    else:
        bits, count = _interleaved(key, counter, dims)
    return _stack([key, counter + count]), ops.convert_element_type(bits, f"u{width}")


def _interleaved(key: Value, counter: Value, dims: Sequence[int]) -> tuple[Value, int]:
    """Words of 32 bits: the two of a block are neighbours along one dimension, the first even or else a longest one."""
    longest = max(range(len(dims)), key=lambda d: dims[d])
    split = next((d for d, size in enumerate(dims) if size % 2 == 0), longest)
    blocks = [-(-size // 2) if d == split else size for d, size in enumerate(dims)]
    parted = [*blocks[: split + 1], 1, *blocks[split + 1 :]]
    words = [ops.reshape(word, parted) for word in _threefry(key, _counters(counter, prod(blocks)))]
    whole = [2 * size if d == split else size for d, size in enumerate(blocks)]
    bits = ops.reshape(ops.concat_in_dim(words, split + 1), whole)
    return ops.slice(bits, [0] * len(dims), dims), prod(blocks)


def _threefry(key: Value, counters: Value) -> tuple[Value, Value]:
    """The two words of each block: twenty rounds, and a part of the key after every four."""
    first, second = halves(key)
    keys = (first, second, first ^ second ^ _PARITY)
    x, y = halves(counters)
    x, y = x + _like(first, x), y + _like(second, y)
    for turn in range(5):
        for rotation in _ROTATIONS[turn % 2]:
            x = x + y
            y = x ^ ((y << rotation) | ops.shift_right_logical(y, 32 - rotation))
        x = x + _like(keys[(turn + 1) % 3], x)
        y = y + _like(keys[(turn + 2) % 3] + (turn + 1), y)
    return x, y


def philox_bits(state: Value, dims: Sequence[int], width: int) -> tuple[Value, Value]:
    """Bits of Philox; arguments and results as of ``threefry_bits``.

    Args:
        state: ``u64[3]``, a key and the low and high half of a counter; in ``u64[2]`` the key is the high half as well.
    """
    count = prod(dims)
    key, low = state[0], state[1]
    short = state.dims[0] == 2
    high = key if short else state[2]
    blocks = -(-count * max(width, 32) // 128)
    words = philox_words(key, low, high, blocks)
    if width == 64:
        words = [joined(words[0], words[1]), joined(words[2], words[3])]
    columns = ops.concat_in_dim([ops.reshape(word, [blocks, 1]) for word in words], 1)
    bits = ops.slice(ops.reshape(columns, [blocks * len(words)]), [0], [count])
    after = low + blocks
    carried = high + ops.convert_element_type(after < low, "u64")
    # IREE fails to fuse a conversion after the reshapes of two results.
    bits = ops.reshape(ops.convert_element_type(bits, f"u{width}"), dims)
    return _stack([key, after] if short else [key, after, carried]), bits


def philox_words(key: Value, low: Value, high: Value, blocks: int) -> list[Value]:
    """The four words ``u32[blocks]`` of each block from a counter of 128 bits on: ten rounds.

    Args:
        key, low, high: u64 scalars.
    """
    lows = _counters(low, blocks)
    highs = _like(high, lows) + ops.convert_element_type(lows < _like(low, lows), "u64")
    a, b = halves(lows)
    c, d = halves(highs)
    keys = halves(key)
    for turn in range(10):
        left, right = (_like(part + (turn * step & 0xFFFFFFFF), a) for part, step in zip(keys, _WEYL, strict=True))
        (low_a, high_a), (low_c, high_c) = (_product(*pair) for pair in zip((a, c), _MULTIPLIERS, strict=True))
        a, b, c, d = high_c ^ b ^ left, low_c, high_a ^ d ^ right, low_a
    return [a, b, c, d]


def _product(words: Value, factor: int) -> tuple[Value, Value]:
    return halves(ops.convert_element_type(words, "u64") * factor)


def _counters(start: Value, count: int) -> Value:
    numbers = ops.iota("u64", [count], 0)
    return numbers + _like(start, numbers)


def _like(scalar: Value, vector: Value) -> Value:
    return ops.broadcast_in_dim(scalar, vector.dims, ())


def _stack(scalars: Sequence[Value]) -> Value:
    return ops.concat_in_dim([ops.reshape(scalar, [1]) for scalar in scalars], 0)
