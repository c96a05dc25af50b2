"""Loops: of little work a turn, of much, and of updates in place."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Body, Case, kernel


def scan_of_matmuls(steps: int, size: int) -> Body:
    """h = tanh(h w) for each step."""

    def body(nn: Any) -> Any:
        h, w = nn.new(f"f32[{size},{size}]"), nn.new(f"f32[{steps},{size},{size}]")
        return nn.loop(steps, lambda i, h: [nn.tanh(nn.matmul(h, nn.row(w, i)))], h)[0]

    return body


def scan_of_layers(steps: int, rows: int, width: int) -> Body:
    """A residual MLP with layer norm a turn: a large body."""

    def body(nn: Any) -> Any:
        x = nn.new(f"f32[{rows},{width}]")
        up, down = nn.new(f"f32[{steps},{width},{4 * width}]"), nn.new(f"f32[{steps},{4 * width},{width}]")
        scale, offset = nn.new(f"f32[{steps},{width}]"), nn.new(f"f32[{steps},{width}]")

        def turn(i: Any, x: Any) -> list[Any]:
            normal = nn.layer_norm(x, nn.row(scale, i), nn.row(offset, i))
            return [x + nn.matmul(nn.gelu(nn.matmul(normal, nn.row(up, i))), nn.row(down, i))]

        return nn.loop(steps, turn, x)[0]

    return body


def lstm(steps: int, batch: int, width: int) -> Body:
    """An LSTM whose inputs are projected: ``[steps, batch, 4 * width]`` to the states and the last one."""

    def body(nn: Any) -> Any:
        inputs, weights = nn.new(f"f32[{steps},{batch},{4 * width}]"), nn.new(f"f32[{width},{4 * width}]")

        def turn(step: Any, hidden: Any, cell: Any, states: Any) -> list[Any]:
            gates = nn.row(inputs, step) + nn.matmul(hidden, weights)
            forget, enter, new, leave = (gates[:, n * width : (n + 1) * width] for n in range(4))
            cell = nn.sigmoid(forget) * cell + nn.sigmoid(enter) * nn.tanh(new)
            hidden = nn.sigmoid(leave) * nn.tanh(cell)
            return [hidden, cell, nn.put_row(states, step, hidden)]

        state = nn.zeros(batch, width)
        hidden, _, states = nn.loop(steps, turn, state, state, nn.zeros(steps, batch, width))
        return states, hidden

    return body


def running_sum(size: int, limit: float) -> Body:
    """How many magnitudes of ``[size]`` numbers it takes for their sum to reach a limit, and the sum."""

    def body(nn: Any) -> Any:
        x = nn.new(f"f32[{size}]")

        def more(count: Any, total: Any) -> Any:
            return (count < size) & (total < limit)

        def turn(count: Any, total: Any) -> list[Any]:
            return [count + 1, total + nn.abs(nn.row(x, count))]

        return nn.while_(more, turn, nn.scalar(0, "s32"), nn.scalar(0.0, "f32"))

    return body


def updates_in_place(rows: int, width: int) -> Body:
    """Each row of a large array becomes a function of itself and the one before."""

    def body(nn: Any) -> Any:
        def turn(i: Any, x: Any, last: Any) -> list[Any]:
            last = nn.tanh(nn.row(x, i) + last)
            return [nn.put_row(x, i, last), last]

        return nn.loop(rows, turn, nn.new(f"f32[{rows},{width}]"), nn.zeros(width))[0]

    return body


def newton(nn: Any) -> Any:
    """50 turns of elementwise work over a megabyte: square roots."""
    x = nn.new("f32[512,512]")
    squares = x * x + 1.0
    return nn.loop(50, lambda _, y: [(y + squares / y) * 0.5], squares)[0]


CASES: tuple[Case, ...] = (
    kernel("scan of 64 matmuls 16³", scan_of_matmuls(64, 16)),
    kernel("scan of 64 matmuls 64³", scan_of_matmuls(64, 64)),
    kernel("scan of 8 MLP layers 128×256", scan_of_layers(8, 128, 256)),
    kernel("LSTM of 64 steps, width 64", lstm(64, 1, 64)),
    kernel("running sum until 2,000 of 4,096", running_sum(4096, 2000.0)),
    kernel("updates in place of 4,096 rows of 256", updates_in_place(4096, 256)),
    kernel("50 Newton steps 512²", newton),
)
