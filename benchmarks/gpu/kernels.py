"""The kernels of the roofline: products, attention, softmax and sums in bf16 and f32, and what each one must do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
ELEMENTS = ("bf16", "f32")
# Of the largest number of a result: for sums of thousands of terms, and for scores that a program rounds to bf16.
_TOLERANCES = {"bf16": 3e-2, "f32": 1e-4}
_DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}


@dataclass(frozen=True)
class Kernel:
    """A kernel of one size and element type.

    Attributes:
        kind: ``matmul``, ``attention``, ``softmax`` or ``sum``.
        element: ``bf16`` or ``f32``.
        shapes: of its arguments.
        flops: multiplications and additions.
        moved: elements that are read or written at least once.
    """

    kind: str
    element: str
    shapes: tuple[tuple[int, ...], ...]
    flops: float
    moved: int

    @property
    def name(self) -> str:
        return f"{self.kind} {'×'.join(map(str, self.shapes[0]))} {self.element}"

    @property
    def bytes_moved(self) -> int:
        return self.moved * _DTYPES[self.element].itemsize

    def arguments(self) -> list[Array]:
        random = np.random.default_rng(0)
        return [random.standard_normal(shape).astype(np.float32).astype(_DTYPES[self.element]) for shape in self.shapes]

    def error(self, arguments: Sequence[Array], result: Array) -> float:
        """The largest difference from numpy's f64, of some rows, as a share of the largest number in them."""
        rows, want = _some_rows(self.kind, arguments)
        difference = np.abs(result[rows].astype(np.float64) - want).max() / np.abs(want).max()
        return float(difference)

    def agrees(self, error: float) -> bool:
        """Whether an error is one of rounding; that of NaN is none."""
        return error <= _TOLERANCES[self.element]

    def text(self) -> str:
        """StableHLO, as JAX lowers it. Raises ImportError where there is no JAX."""
        import jax

        shapes = [jax.ShapeDtypeStruct(shape, _DTYPES[self.element]) for shape in self.shapes]
        return str(jax.jit(jax_function(self.kind)).lower(*shapes).as_text())


def kernels(scale: int = 1) -> list[Kernel]:
    """All kernels; ``scale`` divides the sizes, to try them on a slow device."""
    n, rows, length = 8192 // scale, 16384 // scale, 2048 // scale
    heads, width = max(32 // scale, 1), 128
    found = []
    for element in ELEMENTS:
        found += [
            Kernel("matmul", element, ((n, n), (n, n)), 2.0 * n**3, 3 * n * n),
            Kernel(
                "attention",
                element,
                ((heads, length, width),) * 3,
                4.0 * heads * length * length * width,
                4 * heads * length * width,
            ),
            Kernel("softmax", element, ((rows, 4096),), 5.0 * rows * 4096, 2 * rows * 4096),
            Kernel("sum", element, ((rows, 4096),), 1.0 * rows * 4096, rows * 4096 + rows),
        ]
    return found


def _some_rows(kind: str, arguments: Sequence[Array]) -> tuple[Any, Array]:
    """An index of a few rows of a result, and these rows in f64."""
    first, *others = arguments
    rows: Any = np.unique(np.linspace(0, first.shape[-2] - 1, 16).astype(int))
    if kind == "attention":
        rows = (slice(None, None, max(first.shape[0] - 1, 1)), rows)
    x = first[rows].astype(np.float64)
    if kind == "sum":
        return rows, x.sum(-1)
    if kind == "softmax":
        return rows, _softmax(x)
    y, *rest = (other[rows[0]] if kind == "attention" else other for other in others)
    if kind == "matmul":
        return rows, x @ y.astype(np.float64)
    scores = x @ y.astype(np.float64).swapaxes(-1, -2) * x.shape[-1] ** -0.5
    return rows, _softmax(scores) @ rest[0].astype(np.float64)


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    weights: Array = powers / powers.sum(-1, keepdims=True)
    return weights


def jax_function(kind: str) -> Callable[..., Any]:
    """The kernel in JAX's words."""
    import jax
    import jax.numpy as jnp

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("hqd,hkd->hqk", q, k) * (q.shape[-1] ** -0.5)
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), v)

    functions: dict[str, Callable[..., Any]] = {
        "matmul": jnp.matmul,
        "attention": attention,
        "softmax": lambda x: jax.nn.softmax(x, axis=-1),
        "sum": lambda x: jnp.sum(x, axis=-1),
    }
    return functions[kind]


def torch_call(kernel: Kernel, arguments: Sequence[Array], device: str) -> Callable[[], Any]:
    """A call of PyTorch's own kernel (cuBLAS, FlashAttention …). Raises ImportError without PyTorch for the device."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ImportError("this PyTorch has no CUDA")
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[kernel.element]
    tensors = [torch.from_numpy(array.astype(np.float32)).to(device=device, dtype=dtype) for array in arguments]
    functions: dict[str, Callable[..., Any]] = {
        "matmul": torch.matmul,
        "attention": torch.nn.functional.scaled_dot_product_attention,
        "softmax": lambda x: torch.softmax(x, -1),
        "sum": lambda x: torch.sum(x, -1),
    }
    function = functions[kernel.kind]

    def call() -> Any:
        result = function(*tensors)
        if device == "cuda":
            torch.cuda.synchronize()
        return result

    return call
