"""cuDNN's layer norm as XLA calls it, ``__cudnn$norm``.

The arrays have at least four dimensions, of which the first is what is not normed. Scales and shifts have 1 there,
means and reciprocals of deviations 1 in the others.

Source: XLA ``cudnn_norm_rewriter.cc``, ``backend_configs.proto``.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.norms import Norm
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

_KINDS = {0: "LAYER_FWD_INFER", 1: "LAYER_FWD_TRAIN", 2: "LAYER_BWD"}


@custom_call_target("__cudnn$norm")
def norm(call: CustomCall) -> list[Value]:
    """x, scales, shifts -> the normed x, when training means and inverses, a workspace; or the gradient.

    That takes x, scales, the gradient of the result, means and inverses, and gives those of x, scales and shifts.
    """
    config = call.configuration("cudnn_norm_backend_config")
    kind = config.get("kind", 0)
    kind = _KINDS.get(kind, kind)
    if kind not in _KINDS.values():
        raise UnsupportedError(f"@{call.target} is a norm of kind {kind}, which hloforge does not know")
    x, scales, *others = call.operands
    normed = Norm(ops.convert_element_type(ops.reshape(scales, [prod(scales.dims)]), "f32"), True)
    shapes = call.shapes
    if kind == "LAYER_BWD":
        given, means, inverses = others
        found = list(normed.backward(normed.rows(given), normed.rows(x), means, inverses))
    else:
        found = list(normed.forward(normed.rows(x), others[0], float(config.get("epsilon", 0))))
        found = found if kind == "LAYER_FWD_TRAIN" else found[:1]
    results = [_as(value, shape) for value, shape in zip(found, shapes, strict=False)]
    return [*results, *workspace(shapes[len(results) :])]


def _as(value: Value, shape: Shape) -> Value:
    return ops.reshape(ops.convert_element_type(value, shape.element), shape.dimensions)
