"""Convolutions as programs that XLA optimized for GPUs call them: forwards, with what follows, and both gradients.

The importer keeps window, dimension numbers and groups, which are those of the forward convolution in all four
(``importers/hlo_windows.py``). Source: XLA ``conv_rewriter.cc``, ``backend_configs.proto``, cuDNN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.element_types import Kind, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.activations import activated
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

# By name, and by number as older programs have it.
_ACTIVATIONS = {
    "kNone": "", "0": "", "kSigmoid": "sigmoid", "1": "sigmoid", "kRelu": "relu", "2": "relu", "kRelu6": "relu6",
    "3": "relu6", "kTanh": "tanh", "5": "tanh", "kElu": "elu", "7": "elu",
}  # fmt: skip


@dataclass(frozen=True)
class _Forward:
    """The forward convolution: one number for each spatial dimension, and where the dimensions are."""

    stride: list[int]
    low: list[int]
    high: list[int]
    dilation: list[int]
    reversal: list[bool]
    labels: tuple[str, str, str]
    groups: int
    scale: float

    def sizes(self, dims: Sequence[int], which: int) -> list[int]:
        """The spatial sizes of the input (0), kernel (1) or output (2)."""
        labels = self.labels[which]
        return [dims[labels.index(str(number))] for number in range(len(self.stride))]

    @staticmethod
    def of(call: CustomCall) -> _Forward:
        """Raises UnsupportedError for a call without its window, or of a dilated image."""
        kept = call.configuration("hloforge")
        if "dim_labels" not in kept:
            raise UnsupportedError(f"@{call.target} does not tell its window; read the program from HLO")
        window, labels = kept["window"], kept["dim_labels"]
        if any(dilation > 1 for dilation in window["base_dilation"]):
            raise UnsupportedError(f"@{call.target} of a dilated image")
        if any(
            len(label) != value.rank
            for label, value in zip(labels.split("->")[0].split("_"), call.operands, strict=False)
        ):
            raise UnsupportedError(f"@{call.target} of features in vectors")
        image, rest = labels.split("_")
        config = call.configuration("cudnn_conv_backend_config")
        return _Forward(
            stride=[stride or 1 for stride in window["stride"]],
            low=window["low"],
            high=window["high"],
            dilation=[dilation or 1 for dilation in window["window_dilation"]],
            reversal=[bool(reversal) for reversal in window["reversal"]],
            labels=(image, *rest.split("->")),
            groups=int(kept["feature_group_count"]),
            scale=float(config.get("conv_result_scale", 1)),
        )


@custom_call_target("__cudnn$convForward")
def forward(call: CustomCall) -> list[Value]:
    """x, kernel -> the convolution, a workspace."""
    value = _convolved(call, _Forward.of(call), *call.operands)
    return _finished(call, value)


@custom_call_target("__cudnn$convBiasActivationForward")
def forward_with_bias(call: CustomCall) -> list[Value]:
    """x, kernel, bias, perhaps another array -> f(scale · convolution + scale of the array · array + bias)."""
    x, kernel, bias, *sides = call.operands
    numbers = _Forward.of(call)
    config = call.configuration("cudnn_conv_backend_config")
    value = _convolved(call, numbers, x, kernel)
    for side in sides:
        scale = float(config.get("side_input_scale", 0))
        value = value + ops.convert_element_type(side, value.element_type) * scale
    feature = numbers.labels[2].index("f")
    spread = ops.broadcast_in_dim(ops.convert_element_type(bias, value.element_type), value.dims, [feature])
    mode = str(config.get("activation_mode", "kNone"))
    if mode not in _ACTIVATIONS:
        raise UnsupportedError(f"@{call.target} has the activation {mode}, which hloforge does not know")
    return _finished(call, activated(value + spread, _ACTIVATIONS[mode]))


def _convolved(call: CustomCall, numbers: _Forward, x: Value, kernel: Value) -> Value:
    value = ops.conv_with_general_padding(
        *(x, kernel, numbers.stride, list(zip(numbers.low, numbers.high, strict=True))),
        rhs_dilation=numbers.dilation,
        feature_group_count=numbers.groups,
        dimension_numbers=f"{numbers.labels[0]}_{numbers.labels[1]}->{numbers.labels[2]}",
        window_reversal=numbers.reversal,
        preferred_element_type=_wide(call, x),
    )
    return _scaled(value, numbers)


@custom_call_target("DynamicConvolutionForward", "DynamicConvolutionInputGrad", "DynamicConvolutionKernelGrad")
def of_any_size(call: CustomCall) -> list[Value]:
    """Perhaps the sizes of the input, then two arrays -> the convolution that the call's window says.

    XLA writes it as a call only because its padding may depend on sizes that are known at run time.
    """
    if any(not value.shape.is_static for value in call.operands):
        raise UnsupportedError(f"@{call.target} of sizes that are known at run time")
    kept = call.configuration("hloforge")
    if "dim_labels" not in kept:
        raise UnsupportedError(f"@{call.target} does not tell its window; read the program from HLO")
    window = kept["window"]
    x, kernel = call.operands[-2:]
    value = ops.conv_with_general_padding(
        *(
            x,
            kernel,
            [stride or 1 for stride in window["stride"]],
            list(zip(window["low"], window["high"], strict=True)),
        ),
        lhs_dilation=[dilation or 1 for dilation in window["base_dilation"]],
        rhs_dilation=[dilation or 1 for dilation in window["window_dilation"]],
        feature_group_count=int(kept["feature_group_count"]),
        batch_group_count=int(kept["batch_group_count"]),
        dimension_numbers=kept["dim_labels"],
        window_reversal=list(map(bool, window["reversal"])),
        preferred_element_type=call.shapes[0].element,
    )
    return [value]


@custom_call_target("__cudnn$convBackwardInput")
def backward_input(call: CustomCall) -> list[Value]:
    """The output's gradient, kernel -> the input's gradient, a workspace."""
    numbers = _Forward.of(call)
    gradient, kernel = call.operands
    image, weights, output = numbers.labels
    taken = numbers.sizes(gradient.dims, 2)
    window = [(k - 1) * d for k, d in zip(numbers.sizes(kernel.dims, 1), numbers.dilation, strict=True)]
    low = [reach - before for reach, before in zip(window, numbers.low, strict=True)]
    spread = [(size - 1) * stride + 1 for size, stride in zip(taken, numbers.stride, strict=True)]
    wanted = numbers.sizes(call.shapes[0].dimensions, 0)
    high = [end - size - before + reach for end, size, before, reach in zip(wanted, spread, low, window, strict=True)]
    turned = _by_groups(kernel, weights, numbers.groups)
    value = ops.conv_with_general_padding(
        *(gradient, turned, [1] * len(window), list(zip(low, high, strict=True))),
        lhs_dilation=numbers.stride,
        rhs_dilation=numbers.dilation,
        feature_group_count=numbers.groups,
        dimension_numbers=f"{output}_{weights.translate(_SWAPPED)}->{image}",
        window_reversal=[not reversal for reversal in numbers.reversal],
        preferred_element_type=_wide(call, gradient),
    )
    return _finished(call, _scaled(value, numbers))


_SWAPPED = str.maketrans("oi", "io")


def _by_groups(kernel: Value, labels: str, groups: int) -> Value:
    """The kernel whose output features lie by groups among its input features: those of a group for each other."""
    if groups == 1:
        return kernel
    out, features = labels.index("o"), labels.index("i")
    dims = [*kernel.dims]
    parted = ops.reshape(kernel, [*dims[:out], groups, dims[out] // groups, *dims[out + 1 :]])
    order = [axis for axis in range(kernel.rank + 1) if axis != out]
    place = order.index(features if features < out else features + 1)
    order.insert(place, out)
    dims[out] //= groups
    dims[features] *= groups
    return ops.reshape(ops.transpose(parted, order), dims)


@custom_call_target("__cudnn$convBackwardFilter")
def backward_filter(call: CustomCall) -> list[Value]:
    """x, the output's gradient -> the kernel's gradient, a workspace."""
    numbers = _Forward.of(call)
    x, gradient = call.operands
    image, weights, output = numbers.labels
    spread = [(size - 1) * s + 1 for size, s in zip(numbers.sizes(gradient.dims, 2), numbers.stride, strict=True)]
    kernel = numbers.sizes(call.shapes[0].dimensions, 1)
    places = [(k - 1) * d for k, d in zip(kernel, numbers.dilation, strict=True)]
    given = numbers.sizes(x.dims, 0)
    high = [p + s - size - before for p, s, size, before in zip(places, spread, given, numbers.low, strict=True)]
    value = ops.conv_with_general_padding(
        *(x, gradient, numbers.dilation, list(zip(numbers.low, high, strict=True))),
        rhs_dilation=numbers.stride,
        batch_group_count=numbers.groups,
        dimension_numbers="".join(
            (image.translate(str.maketrans("bf", "fb")), "_", output.translate(str.maketrans("bf", "io")), "->",
             weights.translate(str.maketrans("io", "bf")))
        ),
        preferred_element_type=_wide(call, x),
    )  # fmt: skip
    if any(numbers.reversal):
        value = ops.rev(value, [weights.index(str(n)) for n, flag in enumerate(numbers.reversal) if flag])
    return _finished(call, _scaled(value, numbers))


def _wide(call: CustomCall, operand: Value) -> Any:
    """The type of the sums: cuDNN computes 16-bit floats and integers in f32 where it scales them."""
    result: Shape = call.shapes[0]
    if element_type(result.element).bits < 16:
        raise UnsupportedError(f"@{call.target} with a result of {result.element}: how it rounds is not known")
    if operand.element_type.kind is Kind.FLOAT:
        return operand.element_type if operand.element_type.bits >= 32 else element_type("f32")
    return element_type("s32")


def _scaled(value: Value, numbers: _Forward) -> Value:
    if value.element_type.kind is not Kind.FLOAT:
        value = ops.convert_element_type(value, "f32")
    return value if numbers.scale == 1 else value * numbers.scale


def _finished(call: CustomCall, value: Value) -> list[Value]:
    return [ops.convert_element_type(value, call.shapes[0].element), *workspace(call.shapes[1:])]
