"""The named pipelines: literal tuples, with a reason on every line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hloforge.dialect.errors import PipelineError
from hloforge.dialect.mlir import ir
from hloforge.pipelines.capability.audit import Audit
from hloforge.pipelines.capability.capabilities import TABLES, decomposing_passes
from hloforge.pipelines.capability.check_needs import CheckNeeds
from hloforge.pipelines.convolutions.polyphase_convolutions import PolyphaseConvolutions
from hloforge.pipelines.convolutions.unfold_convolutions import UnfoldConvolutions
from hloforge.pipelines.decompose.arctangent import DecomposeArctangent
from hloforge.pipelines.decompose.batch_norm import DecomposeBatchNorm
from hloforge.pipelines.decompose.cholesky import DecomposeCholesky
from hloforge.pipelines.decompose.complex_elementwise import DecomposeComplexElementwise
from hloforge.pipelines.decompose.complex_hyperbolic import DecomposeComplexHyperbolic
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.decompose.convolution import DecomposeConvolution
from hloforge.pipelines.decompose.cube_root import DecomposeCubeRoot
from hloforge.pipelines.decompose.dot_algorithm import DecomposeDotAlgorithm
from hloforge.pipelines.decompose.einsum import DecomposeEinsum
from hloforge.pipelines.decompose.exponential import DecomposeExponential
from hloforge.pipelines.decompose.fft import DecomposeFft
from hloforge.pipelines.decompose.gamma_functions import DecomposeGammaFunctions
from hloforge.pipelines.decompose.leading_zeros import DecomposeLeadingZeros
from hloforge.pipelines.decompose.logarithm import DecomposeLogarithm
from hloforge.pipelines.decompose.map import DecomposeMap
from hloforge.pipelines.decompose.power import DecomposePower
from hloforge.pipelines.decompose.pred_arithmetic import DecomposePredArithmetic
from hloforge.pipelines.decompose.reduce_precision import DecomposeReducePrecision
from hloforge.pipelines.decompose.remainder import DecomposeRemainder
from hloforge.pipelines.decompose.reverse_scan import DecomposeReverseScan
from hloforge.pipelines.decompose.rng import DecomposeRng
from hloforge.pipelines.decompose.scatter import DecomposeScatter
from hloforge.pipelines.decompose.select_and_scatter import DecomposeSelectAndScatter
from hloforge.pipelines.decompose.set_dimension_size import DecomposeSetDimensionSize
from hloforge.pipelines.decompose.shape_assertions import DecomposeShapeAssertions
from hloforge.pipelines.decompose.single_replica import DecomposeSingleReplica
from hloforge.pipelines.decompose.sort import DecomposeSort
from hloforge.pipelines.decompose.triangular_solve import DecomposeTriangularSolve
from hloforge.pipelines.decompose.trigonometric import DecomposeTrigonometric
from hloforge.pipelines.decompose.unsigned_division import DecomposeUnsignedDivision
from hloforge.pipelines.dynamic.check_equal_sizes import CheckEqualSizes
from hloforge.pipelines.dynamic.dynamic_barriers import LegalizeDynamicBarriers
from hloforge.pipelines.dynamic.dynamic_contractions import LegalizeDynamicContractions
from hloforge.pipelines.dynamic.dynamic_shapes import LegalizeDynamicShapes
from hloforge.pipelines.dynamic.dynamic_windows import DecomposeDynamicWindows
from hloforge.pipelines.dynamic.refine_dynamism import RefineDynamism
from hloforge.pipelines.framework.facts import check_order
from hloforge.pipelines.framework.manager import PassManager, Timing
from hloforge.pipelines.framework.passes import NativePass, Pass
from hloforge.pipelines.framework.stage import Stage
from hloforge.pipelines.legalize.accumulation import LegalizeAccumulation
from hloforge.pipelines.legalize.bf16 import LegalizeBf16
from hloforge.pipelines.legalize.decide_updates import DecideUpdates
from hloforge.pipelines.legalize.entry_abi import LegalizeEntryAbi
from hloforge.pipelines.legalize.host_calls import LegalizeHostCalls
from hloforge.pipelines.legalize.import_host_calls import ImportHostCalls
from hloforge.pipelines.legalize.keep_roundings import KeepRoundings
from hloforge.pipelines.legalize.long_loops import LegalizeLongLoops
from hloforge.pipelines.legalize.narrow_floats import LegalizeNarrowFloats
from hloforge.pipelines.legalize.narrow_integers import LegalizeNarrowIntegers
from hloforge.pipelines.legalize.promotions import LegalizePromotions
from hloforge.pipelines.legalize.quantized import LegalizeQuantized
from hloforge.pipelines.legalize.subnormal_rounding import LegalizeSubnormalRounding
from hloforge.pipelines.library_calls.decompose_factorizations import DecomposeFactorizations
from hloforge.pipelines.library_calls.decompose_library_calls import DecomposeLibraryCalls
from hloforge.pipelines.normalize.drop_tokens import DropTokens
from hloforge.pipelines.normalize.normalization import NORMALIZE
from hloforge.pipelines.replicas.combine_all_reduces import CombineAllReduces
from hloforge.pipelines.replicas.lower_collectives import LowerCollectives
from hloforge.pipelines.replicas.lower_feeds import LowerFeeds
from hloforge.pipelines.replicas.lower_to_channels import LowerToChannels
from hloforge.pipelines.workarounds.batch_groups import LegalizeBatchGroups
from hloforge.pipelines.workarounds.bf16_constants import LegalizeBf16Constants
from hloforge.pipelines.workarounds.bf16_products import LegalizeBf16Products
from hloforge.pipelines.workarounds.bf16_reductions import LegalizeBf16Reductions
from hloforge.pipelines.workarounds.clamp_gather_indices import ClampGatherIndices
from hloforge.pipelines.workarounds.column_reductions import LegalizeColumnReductions
from hloforge.pipelines.workarounds.complex_constants import LegalizeComplexConstants
from hloforge.pipelines.workarounds.complex_parts import LegalizeComplexParts
from hloforge.pipelines.workarounds.complex_products import LegalizeComplexProducts
from hloforge.pipelines.workarounds.complex_reductions import LegalizeComplexReductions
from hloforge.pipelines.workarounds.concatenations import LegalizeConcatenations
from hloforge.pipelines.workarounds.constant_reductions import LegalizeConstantReductions
from hloforge.pipelines.workarounds.crossed_uses import LegalizeCrossedUses
from hloforge.pipelines.workarounds.empty_products import LegalizeEmptyProducts
from hloforge.pipelines.workarounds.equal_operands import LegalizeEqualOperands
from hloforge.pipelines.workarounds.equal_results import LegalizeEqualResults
from hloforge.pipelines.workarounds.float_to_integer import LegalizeFloatToInteger
from hloforge.pipelines.workarounds.host_scalars import LegalizeHostScalars
from hloforge.pipelines.workarounds.independent_reductions import LegalizeIndependentReductions
from hloforge.pipelines.workarounds.initial_values import LegalizeInitialValues
from hloforge.pipelines.workarounds.long_chains import LegalizeLongChains
from hloforge.pipelines.workarounds.loop_buffers import KeepLoopBuffers
from hloforge.pipelines.workarounds.loop_carries import LegalizeLoopCarries
from hloforge.pipelines.workarounds.many_arguments import MOST_OF_CUDA, LegalizeManyArguments
from hloforge.pipelines.workarounds.moved_loops import LegalizeMovedLoops
from hloforge.pipelines.workarounds.paddings import LegalizePaddings
from hloforge.pipelines.workarounds.placed_results import LegalizePlacedResults
from hloforge.pipelines.workarounds.product_factors import LegalizeProductFactors
from hloforge.pipelines.workarounds.rearranged_operands import LegalizeRearrangedOperands
from hloforge.pipelines.workarounds.reduced_dimensions import LegalizeReducedDimensions
from hloforge.pipelines.workarounds.reduced_indices import LegalizeReducedIndices
from hloforge.pipelines.workarounds.reduced_negations import LegalizeReducedNegations
from hloforge.pipelines.workarounds.sign_conversions import LegalizeSignConversions
from hloforge.pipelines.workarounds.slice_starts import LegalizeSliceStarts
from hloforge.pipelines.workarounds.sliced_operands import LegalizeSlicedOperands
from hloforge.pipelines.workarounds.small_erf import LegalizeSmallErf
from hloforge.pipelines.workarounds.transposed_reductions import LegalizeTransposedReductions
from hloforge.pipelines.workarounds.unsigned_reverse import LegalizeUnsignedReverse
from hloforge.pipelines.workarounds.whole_slices import LegalizeWholeSlices
from hloforge.pipelines.workarounds.whole_windows import LegalizeWholeWindows
from hloforge.pipelines.workarounds.wide_fills import LegalizeWideFills
from hloforge.pipelines.workarounds.widened_broadcasts import LegalizeWidenedBroadcasts
from hloforge.pipelines.workarounds.window_padding import LegalizeWindowPadding

BORDER: tuple[Stage, ...] = (
    Stage(CombineAllReduces(), "devices wait for each other once; reads collectives, which the next pass replaces"),
    Stage(LowerCollectives(), "other devices are reached through the host; makes host calls and arithmetic"),
    Stage(LowerFeeds(), "feeds and channels are queues of the host; makes host calls"),
    Stage(
        LegalizeHostCalls(),
        "host calls need physical arrays; removes tokens, because calls keep their order from here on",
    ),
    Stage(LegalizeEntryAbi(), "layouts and narrow types end at the border; what it builds is decomposed with the rest"),
    Stage(DropTokens(), "tokens order effects, and IREE has neither; the entry ABI has removed those of main"),
    Stage(KeepRoundings(), "IREE folds conversions to bf16 and back; passes below make some that may fold"),
)

DECOMPOSE: tuple[Stage, ...] = (
    Stage(LowerComposites(), "handlers see a composite whole, before its portable body replaces it"),
    Stage(LegalizeQuantized(), "IREE has no quantized types, and StableHLO's own passes crash on some of them"),
    Stage(DecomposeMap(), "a computation over scalars, which may loop; every later pass sees arrays"),
    Stage(LegalizePromotions(), "a reduction may compute in a wider type; later passes see one type"),
    Stage(DecomposeSetDimensionSize(), "IREE has no kernel for it; a slice of dynamic size"),
    Stage(RefineDynamism(), "sizes that are constants make static operations; IREE lacks dynamic ones"),
    Stage(DecomposeDynamicWindows(), "IREE has no windows of dynamic padding or over dynamic arrays"),
    Stage(DecomposeRng(), "IREE's generators differ from XLA's; makes logarithms, sines and cosines"),
    Stage(DecomposeLibraryCalls(), "IREE calls no library; makes factorizations, solvers, sorts, 8-bit products"),
    Stage(LegalizeNarrowFloats(), "IREE refuses or misreads floats of 4 and 8 bits; later passes see their f32"),
    Stage(DecomposeFactorizations(), "makes loops, products and triangular systems"),
    Stage(DecomposeCholesky(), "IREE has no factorizations; makes complex divisions and roots"),
    Stage(DecomposeTriangularSolve(), "IREE has no solvers; makes complex divisions"),
    Stage(DecomposeFft(), "IREE transforms one axis of a power of two in f32; makes products of real numbers"),
    Stage(LegalizeBatchGroups(), "IREE mixes up such results of tensor cores; makes groups of features"),
    Stage(
        PolyphaseConvolutions(),
        "IREE multiplies the zeros of dilated images; makes a convolution per phase, without zeros",
    ),
    Stage(UnfoldConvolutions(), "IREE's loops over a window are slow, and its compiler crashes on complex ones"),
    Stage(DecomposeConvolution(), "IREE's SPIR-V for groups is wrong; sees what the pass above leaves"),
    Stage(DecomposeReverseScan(), "jaxlib's expansion of scans ignores is_reverse"),
    Stage(DecomposeComplexHyperbolic(), "CHLO's expansion of complex sinh and cosh cancels"),
    Stage(DecomposeGammaFunctions(), "CHLO's expansions lose the digits of zeros"),
    Stage(LegalizeSmallErf(), "jaxlib's expansion has products that IREE flushes"),
    Stage(NativePass("func.func(chlo-legalize-to-stablehlo)"), "IREE reads no CHLO here; these expand to StableHLO"),
    Stage(
        NativePass("func.func(canonicalize,shape-legalize-to-stablehlo)"),
        "CHLO's expansions read dynamic shapes as a whole; their conditions fold where sizes are known",
    ),
    Stage(
        DecomposeShapeAssertions(),
        "sizes that are unknown now are checked in each call; runs after the pass that folds shapes",
    ),
    Stage(
        NativePass("func.func(stablehlo-legalize-deprecated-ops{fail-on-unused=false})"),
        "broadcast, dot, einsum … have one modern form",
    ),
    Stage(DecomposeEinsum(), "IREE cannot sum over a dimension of one operand only; unary_einsum became einsum above"),
    Stage(DecomposeDotAlgorithm(), "an algorithm is a minimum precision; makes conversions and an accumulator type"),
    Stage(DecomposeComplexElementwise(), "IREE's complex functions lose digits and special values, or need a libm"),
    Stage(NativePass("func.func(stablehlo-complex-math-expander)"), "complex log, exp, sqrt by real functions"),
    Stage(DecomposePower(), "IREE's power is NaN for negative bases and inexact; leaves exp and log of f64"),
    Stage(DecomposeExponential(), "f64 expm1, log1p, tanh: IREE loses digits or needs a libm; its exp is scalar"),
    Stage(DecomposeLogarithm(), "SPIR-V has no logarithm of f64; runs after every pass that makes one"),
    Stage(DecomposeTrigonometric(), "f64 needs a libm; f32 loses all digits of large angles"),
    Stage(DecomposeArctangent(), "f64 needs a libm; f32 is wrong at zeros and infinities"),
    Stage(DecomposeCubeRoot(), "f64 needs a libm; f32 is NaN at infinity"),
    Stage(DecomposeRemainder(), "f64 needs a libm"),
    Stage(DecomposeSingleReplica(), "a program of one replica needs no communication"),
    Stage(DecomposeBatchNorm(), "reductions and arithmetic fuse with their neighbours"),
    Stage(DecomposeSelectAndScatter(), "IREE has no kernel for it; its computations may add booleans"),
    Stage(DecomposePredArithmetic(), "IREE adds booleans modulo 2"),
    Stage(DecomposeScatter(), "IREE takes one form of scatter, and an index out of bounds corrupts its heap"),
    Stage(ClampGatherIndices(), "IREE reads wherever an index points"),
    Stage(LegalizeSliceStarts(), "IREE misreads negative starts of 8 and 16 bits"),
    Stage(DecomposeSort(), "IREE's sort is quadratic and not stable; makes a sorting network"),
    Stage(LegalizeEmptyProducts(), "IREE's compiler crashes on some; runs after every pass that makes products"),
    Stage(LegalizeNarrowIntegers(), "IREE refuses odd counts and constants of packed integers"),
    Stage(LegalizeFloatToInteger(), "IREE's conversion is undefined outside the integer's range"),
    Stage(
        LegalizeWindowPadding(), "IREE fails on padded unsigned integers in windows, and on edges that no window reads"
    ),
    Stage(LegalizeWholeWindows(), "IREE's GPUs have no code for some of one place, or share their initial values"),
    Stage(LegalizeUnsignedReverse(), "IREE refuses reversals of unsigned integers and along no dimension"),
    Stage(DecomposeLeadingZeros(), "IREE has SPIR-V for 32 bits only; runs after narrow integers are widened to 8"),
    Stage(DecomposeUnsignedDivision(), "IREE has no SPIR-V for some; runs after every pass that makes divisions"),
    Stage(LegalizeAccumulation(), "XLA accumulates 16-bit sums in f32; runs after every pass that makes reductions"),
    Stage(LegalizeLongLoops(), "GPUs run many short loops; runs after every pass that makes reductions"),
    Stage(DecomposeReducePrecision(), "IREE crashes on dynamic arrays, keeps NaN; runs after narrow floats became f32"),
    Stage(LegalizeSubnormalRounding(), "IREE flushes subnormals, whose floor may be -1"),
    Stage(LegalizeProductFactors(), "IREE multiplies by booleans and unsigned numbers as if they were signed"),
    Stage(LegalizeComplexProducts(), "IREE has no SPIR-V for some; runs after every pass that makes products"),
    Stage(LegalizeComplexParts(), "IREE crashes on bitcasts of complex numbers, and on fills with c128"),
)

FINISH: tuple[Stage, ...] = (
    Stage(LegalizeBf16(), "rounds where XLA rounds; IREE drops some roundings inside a chain"),
    Stage(LegalizeSignConversions(), "IREE folds a change of sign into invalid IR"),
    Stage(LegalizeWholeSlices(), "IREE folds updates of whole arrays, and miscounts the carries of a loop with them"),
    Stage(NativePass("func.func(canonicalize,cse)"), "folds what the decompositions left, so that IREE gets less IR"),
    Stage(LegalizeEqualResults(), "IREE mixes up a dispatch's results where two are equal; cse found the simple ones"),
    Stage(LegalizeEqualOperands(), "IREE folds differences of dynamic shape into invalid constants; runs after cse"),
    Stage(LegalizeIndependentReductions(), "IREE reduces an iota beside other arrays to the initial value"),
    Stage(LegalizeConstantReductions(), "IREE mixes up reductions of which one reads no array"),
    Stage(LegalizeManyArguments(), "IREE binds at most 32 arrays to a dispatch"),
    Stage(LegalizeComplexConstants(), "IREE crashes on constants of 128 bits; a canonicalization would undo it"),
    Stage(LegalizeLoopCarries(), "IREE miscounts the values of some loops; a canonicalization would undo it"),
    Stage(LegalizeProductFactors(), "what was a loop's carry until the pass above may be a factor"),
    Stage(LegalizeBf16Constants(), "IREE has no SPIR-V for those; a canonicalization would undo it"),
    Stage(LegalizeBf16Reductions(), "IREE has no SPIR-V for some; runs after the last canonicalization"),
    Stage(LegalizeBf16Products(), "IREE has no SPIR-V for products that read or write bf16; sees every conversion"),
    Stage(LegalizeComplexReductions(), "IREE crashes on complex numbers in memory that threads share"),
    Stage(CheckEqualSizes(), "a call with arrays of unequal sizes would read beyond the smaller one"),
    Stage(LegalizeDynamicContractions(), "IREE takes dynamic dots and convolutions in some forms only"),
    Stage(LegalizeDynamicShapes(), "IREE supports few operations on sizes known only at a call; leaves lower dialects"),
    Stage(LegalizeCrossedUses(), "IREE reads rows of a fused reduction before they are computed; sees the final uses"),
    Stage(LegalizeColumnReductions(), "IREE has no SPIR-V for some of them with their readers; after the last folds"),
    Stage(LegalizeReducedDimensions(), "IREE reads wrong elements of some; runs after the last canonicalization"),
    Stage(LegalizeReducedIndices(), "IREE has no SPIR-V for reductions of what has indices; after the last folds"),
    Stage(LegalizeReducedNegations(), "IREE has no SPIR-V for sums of negated floats; after the last folds"),
    Stage(LegalizePaddings(), "IREE pads before it cuts off; slices are seen by the next pass"),
    Stage(LegalizeSlicedOperands(), "IREE has no code for updates of slices, and for gathers from strided slices"),
    Stage(
        LegalizeDynamicBarriers(), "IREE does not know sizes behind barriers; runs after the passes that make barriers"
    ),
    Stage(LegalizeHostScalars(), "IREE's host knows few types"),
    Stage(LegalizeConcatenations(), "IREE writes the common beginning of two concatenations once, for both"),
    Stage(LegalizeComplexParts(), "folding and slicing make more arrays that repeat a number; updates of those fail"),
    Stage(LegalizeTransposedReductions(), "IREE transposes one of several results, but not the others' initial values"),
    Stage(LegalizeRearrangedOperands(), "IREE mixes up the types before and after"),
    Stage(LegalizeWidenedBroadcasts(), "IREE refuses conversions after two broadcasts of a reshape"),
    Stage(LegalizeInitialValues(), "IREE shares a fill between windows; runs after every pass that makes windows"),
    Stage(LegalizeWideFills(), "IREE merges equal fills of 64 bits, and writes into one; sees the parts of c128"),
    Stage(
        LegalizePaddings(), "IREE merges two paddings and forgets the steps of one; runs after passes that move them"
    ),
    Stage(LegalizeMovedLoops(), "IREE moves loops ahead of what they read; runs after passes that make parts"),
    Stage(LegalizePlacedResults(), "IREE writes uneven parts of arrays too early; runs after passes that make parts"),
    Stage(LegalizeLongChains(), "IREE's time for chains of elementwise operations is quadratic; after every rewriting"),
    Stage(DecideUpdates(), "copy insertion: IREE overwrites arrays that are still read; sees every other rewriting"),
    Stage(
        KeepLoopBuffers(),
        "IREE frees arrays around loops too early",
    ),
    Stage(ImportHostCalls(), "IREE imports functions of the host; equal calls are merged by now"),
)

# Targets whose devices IREE connects by libraries of their own; elsewhere the host moves arrays between devices.
_CONNECTED = frozenset({"cuda"})

PIPELINES: tuple[str, ...] = ("normalize", *TABLES, "cuda")


def stages(name: str) -> tuple[Stage, ...]:
    """The stages of a named pipeline. A target's pipeline keeps the decompositions that its table asks for.

    Raises:
        PipelineError: the name is neither ``normalize`` nor a target kind.
    """
    if name == "normalize":
        return NORMALIZE
    if name not in PIPELINES:
        raise PipelineError(f"no pipeline is called {name!r}", hint=f"pipelines: {', '.join(PIPELINES)}")
    asked = decomposing_passes(name)
    chosen = tuple(stage for stage in DECOMPOSE if {stage.entry.name, str(stage.entry)} & asked)
    audit = Stage(Audit(name), "what IREE cannot compile is named here, at the user's line, and not by IREE's crash")
    needs = Stage(CheckNeeds(name), "what the host or other devices lack is known now, and the passes may take minutes")
    whole = (needs, *NORMALIZE, *BORDER, *chosen, *FINISH, audit)
    fitted = whole if name == "cpu" else [_for_gpus(stage, name) for stage in whole]
    return tuple(stage for stage in fitted if name in stage.entry.targets)


def _for_gpus(stage: Stage, target: str) -> Stage:
    """A stage of the CPU's pipeline as GPUs have it."""
    if isinstance(stage.entry, DecomposeRemainder) and target == "vulkan":
        return replace(stage, entry=DecomposeRemainder(all_types=True))
    if isinstance(stage.entry, LegalizeComplexConstants) and target == "vulkan":
        return replace(stage, entry=LegalizeComplexConstants(arrays=True))
    if isinstance(stage.entry, DecomposeLogarithm) and target == "cuda":
        return replace(stage, entry=DecomposeLogarithm(narrow_only=True))
    if isinstance(stage.entry, DecomposeScatter):
        is_cuda = target == "cuda"
        chosen = DecomposeScatter(complex_by_elements=is_cuda, unsigned_as_signed=True, updates_apart=is_cuda)
        return replace(stage, entry=chosen)
    if isinstance(stage.entry, LowerCollectives) and target in _CONNECTED:
        return Stage(LowerToChannels(), "IREE connects these devices itself; reads groups of devices alone")
    if isinstance(stage.entry, LegalizeSlicedOperands):
        return replace(stage, entry=LegalizeSlicedOperands(for_gpus=True))
    if isinstance(stage.entry, LegalizePaddings) and target == "vulkan":
        return replace(stage, entry=LegalizePaddings(for_vulkan=True))
    if isinstance(stage.entry, LegalizeManyArguments) and target == "cuda":
        return replace(stage, entry=LegalizeManyArguments(most=MOST_OF_CUDA))
    return stage


def pipeline(name: str) -> list[Pass]:
    """The passes of a named pipeline, in order, as of ``stages``. Raises PipelineError for an unknown name."""
    return [stage.entry for stage in stages(name)]


def lower(module: ir.Module, *, target: str = "cpu", **options: Any) -> list[Timing]:
    """Rewrite an imported module in place to what IREE compiles for the target kind.

    Args:
        options: fields of PassManager, as of ``normalization.normalize``.

    Raises:
        UnsupportedError: an operation that the target cannot compile, located in the user's file.
    """
    manager = PassManager(pipeline(target), **options)
    manager.run(module)
    return manager.timings


# A wrong order is an error of whoever wrote it, when it is written.
for _name in PIPELINES:
    check_order(_name, (stage.entry.contract() for stage in stages(_name)))
