"""Custom calls about memory. Source: JAX ``jax.lax.empty``."""

from __future__ import annotations

from hloforge.dialect.element_types import element_type
from hloforge.dialect.idioms import zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target


@custom_call_target("AllocateBuffer")
def allocate_buffer(call: CustomCall) -> list[Value]:
    """An array of any contents: zeros."""
    (shape,) = call.shapes
    return [zeros(element_type(shape.element), shape.dimensions)]
