"""What IREE 3.13's llvm-cpu target does with StableHLO, measured; see docs/numerics.md and docs/status.md."""

from __future__ import annotations

from hloforge.dialect import marks
from hloforge.dialect.element_types import TABLE
from hloforge.pipelines.analysis import forms
from hloforge.pipelines.analysis.window_forms import windows_are_misread
from hloforge.pipelines.capability.verdicts import Capability, decompose, native, reject
from hloforge.pipelines.decompose.rng import has_no_state
from hloforge.pipelines.host_calls import is_host_call
from hloforge.pipelines.library_calls.registry import is_registered
from hloforge.pipelines.replicas.combine import COLLECTIVES

_FEEDS = ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send")

_FIX_SIZES = "name the sizes of the arguments (shapes=…), or compile with dynamic_shapes='specialize'"
_FLOATS = ("bf16", "f16", "f32", "f64")
_NARROW_FLOATS = tuple(row.name for row in TABLE if row.is_float and row.bits <= 8)
_COMPLEX = ("c64", "c128")

# What IREE takes as it is, in forms that no other row names.
_NATIVE = """
abs add and atan2 bitcast_convert broadcast_in_dim case cbrt ceil clamp compare complex concatenate constant convert
convolution cosine count_leading_zeros divide dot_general dynamic_broadcast_in_dim dynamic_iota dynamic_slice
dynamic_update_slice einsum exponential exponential_minus_one floor gather get_dimension_size if imag iota is_finite
log log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or pad popcnt power real
real_dynamic_slice reduce reduce_precision reduce_window remainder reshape return reverse round_nearest_afz
round_nearest_even rsqrt scatter select shift_left shift_right_arithmetic shift_right_logical sign sine slice sort
sqrt subtract tan tanh torch_index_select transpose while xor
"""

ROWS: tuple[Capability, ...] = (
    *decompose("lower-composites", "IREE reads no composites", "stablehlo.composite"),
    *decompose(
        "decompose-single-replica",
        "one device has no others; --replicas and --partitions name more",
        "stablehlo.replica_id",
        "stablehlo.partition_id",
        *sorted(COLLECTIVES),
    ),
    *decompose(
        "decompose-shape-assertions",
        "IREE reads no such call; it has an assertion of its own",
        "stablehlo.custom_call@shape_assertion",
    ),
    *decompose(
        "decompose-batch-norm",
        "IREE has no batch normalization",
        "stablehlo.batch_norm_grad",
        "stablehlo.batch_norm_inference",
        "stablehlo.batch_norm_training",
    ),
    *decompose(
        "decompose-pred-arithmetic",
        "IREE computes in one bit, where true + true is false",
        "stablehlo.add",
        "stablehlo.maximum",
        "stablehlo.minimum",
        "stablehlo.multiply",
        elements=("pred",),
    ),
    *decompose(
        "legalize-promotions",
        "IREE computes in the type of the operands",
        "stablehlo.all_reduce",
        "stablehlo.reduce",
        "stablehlo.reduce_scatter",
        "stablehlo.reduce_window",
        "stablehlo.scatter",
        form=forms.promotes,
    ),
    *decompose("legalize-quantized", "IREE has no quantized types", "*", elements=("quantized",)),
    *decompose(
        "decompose-complex-elementwise",
        "IREE's lowering loses digits and special values, or needs a libm",
        "stablehlo.abs",
        "stablehlo.atan2",
        "stablehlo.cbrt",
        "stablehlo.cosine",
        "stablehlo.divide",
        "stablehlo.exponential_minus_one",
        "stablehlo.logistic",
        "stablehlo.maximum",
        "stablehlo.minimum",
        "stablehlo.power",
        "stablehlo.rsqrt",
        "stablehlo.sine",
        "stablehlo.tan",
        "stablehlo.tanh",
        elements=_COMPLEX,
    ),
    *decompose(
        "func.func(stablehlo-complex-math-expander)",
        "IREE's lowering needs a libm for f64",
        "stablehlo.exponential",
        "stablehlo.log",
        "stablehlo.log_plus_one",
        "stablehlo.sqrt",
        elements=_COMPLEX,
    ),
    *decompose(
        "decompose-power",
        "IREE's is NaN for negative bases and off by up to 290 ulp",
        "stablehlo.power",
        elements=_FLOATS,
    ),
    *decompose(
        "decompose-exponential",
        "IREE's loses all digits near 0, tanh needs a libm, and exp is called for each element",
        "stablehlo.exponential",
        "stablehlo.exponential_minus_one",
        "stablehlo.log_plus_one",
        "stablehlo.logistic",
        "stablehlo.tanh",
        elements=("f64",),
    ),
    *decompose(
        "decompose-trigonometric",
        "f64 needs a libm, which is not linked; narrower types lose the digits of large angles",
        "stablehlo.cosine",
        "stablehlo.sine",
        "stablehlo.tan",
        elements=_FLOATS,
    ),
    *decompose(
        "decompose-arctangent",
        "f64 needs a libm, which is not linked; f32 is wrong at zeros and infinities",
        "stablehlo.atan2",
        elements=_FLOATS,
    ),
    *decompose(
        "decompose-cube-root",
        "f64 needs a libm, which is not linked; f32 is NaN at infinity",
        "stablehlo.cbrt",
        elements=_FLOATS,
    ),
    *decompose(
        "decompose-remainder",
        "f64 needs a libm, which is not linked",
        "stablehlo.remainder",
        elements=("f64",),
    ),
    *decompose(
        "decompose-dot-algorithm",
        "IREE reads no dot algorithm",
        "stablehlo.dot_general",
        form=forms.names_an_algorithm,
    ),
    *decompose(
        "legalize-unsigned-reverse",
        "IREE refuses it",
        "stablehlo.reverse",
        form=forms.reverses_unsigned_or_nothing,
    ),
    *decompose(
        "legalize-empty-products",
        "IREE's compiler divides by the number of features",
        "stablehlo.convolution",
        "stablehlo.dot_general",
        form=forms.multiplies_nothing,
    ),
    *decompose(
        "polyphase-convolutions",
        "IREE multiplies the zeros between the elements of dilated images",
        "stablehlo.convolution",
        form=forms.multiplies_zeros,
    ),
    *decompose(
        "unfold-convolutions",
        "IREE's loops over a window are slow, and its compiler crashes on complex ones",
        "stablehlo.convolution",
        form=forms.is_better_unfolded,
    ),
    *decompose(
        "unfold-convolutions",
        "IREE has no vectors for products of a few columns",
        "stablehlo.convolution",
        form=forms.has_few_outputs,
    ),
    *decompose(
        "unfold-convolutions",
        "IREE reads long windows of one feature number by number",
        "stablehlo.convolution",
        form=forms.has_long_windows,
    ),
    *decompose(
        "unfold-convolutions",
        "IREE transposes images whose features come first, or reads them with large strides",
        "stablehlo.convolution",
        form=forms.is_product_of_features,
    ),
    *decompose(
        "unfold-convolutions",
        "IREE's loops over groups of channels are scalar",
        "stablehlo.convolution",
        form=forms.is_better_by_channels,
    ),
    *decompose(
        "unfold-convolutions",
        "IREE's loops over features that are not last are scalar",
        "stablehlo.convolution",
        form=forms.is_better_features_last,
    ),
    *decompose(
        "legalize-accumulation",
        "IREE rounds partial sums to the result's type; XLA carries them in f32",
        "stablehlo.convolution",
        "stablehlo.dot_general",
        form=forms.has_16_bit_float_result,
    ),
    *decompose(
        "legalize-accumulation",
        "IREE rounds partial sums to the result's type; XLA carries them in f32",
        "stablehlo.reduce",
        "stablehlo.reduce_window",
        form=forms.sums_16_bit_floats,
    ),
    *decompose(
        "decompose-scatter",
        "IREE takes unit scatters of rows only, and an index out of bounds corrupts its heap",
        "stablehlo.scatter",
        form=forms.is_not_in_bounds,
    ),
    *decompose("decompose-select-and-scatter", "IREE has no kernel for it", "stablehlo.select_and_scatter"),
    *decompose(
        "clamp-gather-indices",
        "IREE reads wherever an index points",
        "stablehlo.gather",
        form=forms.is_not_in_bounds,
    ),
    *reject("its state is none: two u64, or three for Philox", "stablehlo.rng_bit_generator", form=has_no_state),
    *decompose(
        "decompose-rng",
        "IREE's uniform numbers are a ramp, its Philox is another, its Threefry crashes on some shapes",
        "stablehlo.rng",
        "stablehlo.rng_bit_generator",
    ),
    *decompose(
        "legalize-narrow-floats", "IREE refuses or misreads most floats of 4 and 8 bits", "*", elements=_NARROW_FLOATS
    ),
    *decompose(
        "legalize-narrow-integers",
        "IREE packs such integers and refuses odd element counts and constants",
        "*",
        elements=("s2", "s4", "u2", "u4"),
    ),
    *decompose(
        "legalize-float-to-integer",
        "the conversion is undefined outside the integer's range; XLA saturates",
        "stablehlo.convert",
        form=forms.may_overflow_an_integer,
    ),
    *decompose(
        "decompose-sort",
        "IREE's is quadratic, overflows its stack and ignores is_stable",
        "stablehlo.sort",
        form=forms.is_static_or_stable,
    ),
    *decompose(
        "legalize-bf16",
        "IREE drops the roundings between operations",
        *forms.ROUNDING,
        elements=("bf16",),
        form=forms.computes_in_bf16,
    ),
    *decompose(
        "legalize-bf16",
        "IREE's own conversion calls a library that is not linked",
        "stablehlo.convert",
        form=forms.is_integer_to_bf16,
    ),
    *decompose(
        "legalize-subnormal-rounding",
        "IREE runs with subnormals flushed",
        "stablehlo.ceil",
        "stablehlo.floor",
        form=forms.may_flush_a_subnormal,
    ),
    *decompose(
        "decompose-reduce-precision",
        "IREE's is wrong without a bit of mantissa, and misses types",
        "stablehlo.reduce_precision",
        form=forms.is_no_bf16_rounding,
    ),
    *decompose(
        "legalize-complex-parts",
        "IREE crashes on such bitcasts",
        "stablehlo.bitcast_convert",
        form=forms.is_between_complex_types,
    ),
    *decompose(
        "legalize-complex-parts",
        "IREE fills patterns of at most 64 bits, and fails on paddings with complex constants and updates of them",
        "stablehlo.broadcast_in_dim",
        "stablehlo.dynamic_broadcast_in_dim",
        "stablehlo.dynamic_pad",
        "stablehlo.dynamic_update_slice",
        "stablehlo.pad",
        form=forms.fills_with_complex,
    ),
    *decompose(
        "legalize-product-factors",
        "IREE's compiler mixes up the types",
        "stablehlo.convolution",
        "stablehlo.dot_general",
        form=forms.mixes_up_types,
    ),
    *decompose(
        "legalize-product-factors",
        "IREE takes factors converted from booleans and unsigned integers for signed ones",
        "stablehlo.convert",
        form=forms.is_unsigned_factor,
    ),
    *decompose(
        "legalize-product-factors",
        "IREE's compiler mixes up the types of factors that are converted",
        "stablehlo.convert",
        form=forms.is_mixed_up_factor,
    ),
    *decompose(
        "legalize-slice-starts",
        "IREE misreads negative starts of 8 and 16 bits, and large unsigned ones, and slices no scalars",
        "stablehlo.dynamic_slice",
        "stablehlo.dynamic_update_slice",
        form=forms.starts_oddly,
    ),
    *decompose(
        "legalize-window-padding",
        "IREE leaves types that nothing converts",
        "stablehlo.reduce_window",
        form=forms.pads_unsigned_windows,
    ),
    *decompose(
        "legalize-window-padding",
        "IREE takes the array to end where its only window does, and windows as long as it for running sums",
        "stablehlo.reduce_window",
        form=windows_are_misread,
    ),
    *decompose(
        "legalize-window-padding",
        "IREE takes the image to end where its only window does",
        "stablehlo.convolution",
        form=forms.leaves_edges_unread,
    ),
    *decompose(
        "legalize-complex-parts",
        "IREE crashes on padded windows of complex numbers",
        "stablehlo.reduce_window",
        form=forms.reduces_complex,
    ),
    *decompose(
        "decompose-reverse-scan",
        "jaxlib's expansion takes no notice of is_reverse",
        "chlo.scan",
        form=forms.is_reverse_scan,
    ),
    *decompose(
        "decompose-complex-hyperbolic",
        "CHLO's expansion cancels",
        "chlo.cosh",
        "chlo.sinh",
        elements=("c64", "c128"),
    ),
    *decompose(
        "decompose-gamma-functions",
        "CHLO's expansion has no digits at the zeros",
        "chlo.digamma",
        "chlo.lgamma",
        elements=("f16", "bf16", "f32", "f64"),
    ),
    *decompose(
        "legalize-small-erf",
        "jaxlib's expansion has products that IREE flushes",
        "chlo.erf",
        elements=("bf16", "f32"),
    ),
    *decompose(
        "legalize-complex-constants",
        "IREE fills patterns of at most 64 bits, and crashes on constants of 128",
        "stablehlo.constant",
        form=forms.is_wide_complex,
    ),
    *decompose("lower-mhlo", "XLA's converter writes its top_k as a call", "stablehlo.custom_call@mhlo.topk"),
    *decompose(
        "decompose-library-calls",
        "IREE calls no library",
        "stablehlo.custom_call",
        form=is_registered,
    ),
    *decompose(
        "decompose-factorizations",
        "IREE has no factorizations",
        f"stablehlo.custom_call@{marks.CHOLESKY}",
        f"stablehlo.custom_call@{marks.LU}",
        f"stablehlo.custom_call@{marks.QR}",
        f"stablehlo.custom_call@{marks.ORTHOGONAL}",
        f"stablehlo.custom_call@{marks.TRIDIAGONAL_QL}",
        f"stablehlo.custom_call@{marks.BIDIAGONAL_QR}",
        f"stablehlo.custom_call@{marks.TRIDIAGONAL}",
        f"stablehlo.custom_call@{marks.BIDIAGONAL}",
        f"stablehlo.custom_call@{marks.HESSENBERG}",
        f"stablehlo.custom_call@{marks.REFLECTED}",
        f"stablehlo.custom_call@{marks.BIDIAGONAL_VECTORS}",
        f"stablehlo.custom_call@{marks.TRIDIAGONAL_EIGENVECTORS}",
    ),
    *decompose("decompose-cholesky", "IREE has no factorizations", "stablehlo.cholesky"),
    *decompose("decompose-triangular-solve", "IREE has no solvers", "stablehlo.triangular_solve"),
    *decompose(
        "decompose-fft", "IREE transforms one axis of a power of two in f32", "stablehlo.fft", form=forms.is_static
    ),
    *decompose(
        "refine-dynamism",
        "IREE compiles it for static shapes only",
        "stablehlo.dynamic_conv",
        "stablehlo.dynamic_gather",
        "stablehlo.dynamic_pad",
        form=forms.is_static_dynamism,
    ),
    *decompose(
        "decompose-dynamic-windows",
        "IREE compiles it for static shapes only",
        "stablehlo.custom_call@stablehlo.dynamic_reduce_window",
        "stablehlo.dynamic_conv",
    ),
    *decompose(
        "decompose-dynamic-windows",
        "IREE compiles it for static shapes only",
        "stablehlo.reduce_window",
        form=forms.has_dynamic_operand,
    ),
    *decompose(
        "legalize-dynamic-shapes",
        "IREE compiles it for static shapes only",
        "stablehlo.dynamic_gather",
        "stablehlo.dynamic_pad",
        "stablehlo.dynamic_reshape",
    ),
    *decompose(
        "legalize-dynamic-shapes",
        "IREE compiles it for static shapes only",
        "stablehlo.dynamic_update_slice",
        form=forms.updates_a_dynamic_array,
    ),
    *decompose(
        "legalize-dynamic-shapes",
        "IREE's compiler aborts",
        "stablehlo.bitcast_convert",
        form=forms.changes_the_width_of_a_dynamic_array,
    ),
    *decompose("func.func(chlo-legalize-to-stablehlo)", "IREE is given StableHLO alone", "chlo.*"),
    *decompose("func.func(canonicalize,shape-legalize-to-stablehlo)", "IREE is given StableHLO alone", "shape.*"),
    *decompose(
        "func.func(stablehlo-legalize-deprecated-ops{fail-on-unused=false})",
        "it has one modern form",
        "stablehlo.broadcast",
        "stablehlo.create_token",
        "stablehlo.cross-replica-sum",
        "stablehlo.dot",
        "stablehlo.unary_einsum",
    ),
    *decompose("decompose-set-dimension-size", "IREE has no kernel for it", "stablehlo.set_dimension_size"),
    *decompose(
        "decompose-einsum",
        "IREE sums over no dimension that one operand alone has",
        "stablehlo.einsum",
        form=forms.is_static_without_ellipsis,
    ),
    *decompose("decompose-map", "IREE runs no loops inside a kernel", "stablehlo.map", form=forms.is_static),
    *reject(
        "its sizes are known at run time only",
        "stablehlo.fft",
        hint=_FIX_SIZES,
    ),
    *reject(
        "IREE mixes up its results where several have a size that only a call knows",
        "stablehlo.case",
        "stablehlo.if",
        "stablehlo.while",
        form=forms.has_dynamic_results,
        hint=_FIX_SIZES,
    ),
    *reject("tokens are dropped before", "stablehlo.after_all", hint="run the whole pipeline of the target"),
    *reject(
        "values of a tuple type exist at the border of a program only",
        "stablehlo.get_tuple_element",
        "stablehlo.tuple",
        hint="return or pass the elements instead",
    ),
    *decompose(
        "legalize-quantized",
        "IREE has no quantized types",
        "stablehlo.uniform_dequantize",
        "stablehlo.uniform_quantize",
    ),
    *reject(
        "asynchronous operations must be unwrapped before",
        "stablehlo.async_done",
        "stablehlo.async_start",
        hint="run the normalize pipeline first",
    ),
    *decompose("lower-feeds", "IREE has no feeds and channels; the session has them", *_FEEDS),
    *decompose("legalize-host-calls", "IREE imports functions of the host", "stablehlo.custom_call", form=is_host_call),
    *reject(
        "it exchanges as many rows as the program computes, and the devices' host moves arrays of known sizes",
        "stablehlo.custom_call@ragged_all_to_all",
        hint="exchange padded blocks by all-to-all",
    ),
    *reject(
        "its target names a function of the host that is not registered",
        "stablehlo.custom_call",
        hint="register it: hloforge.host.register(name, function), or name it: --host-call=NAME, --library=FILE",
    ),
    *native(*(f"stablehlo.{name}" for name in _NATIVE.split())),
)
