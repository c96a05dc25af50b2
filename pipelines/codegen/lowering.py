"""The passes before code generation: an imported module as static StableHLO of few operations.

They are those of ``normalization.py`` and ``named.py`` that say what an operation means. What works around IREE's code
generator is not here.
"""

from __future__ import annotations

from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen.factorizations import NATIVE
from hloforge.pipelines.codegen.passes.bit_widths import DecomposeBitWidths
from hloforge.pipelines.codegen.passes.block_products import LegalizeBlockProducts
from hloforge.pipelines.codegen.passes.bounded_results import LegalizeBoundedResults
from hloforge.pipelines.codegen.passes.byte_tables import LegalizeByteTables
from hloforge.pipelines.codegen.passes.common_gaps import LegalizeCommonGaps
from hloforge.pipelines.codegen.passes.counted_indices import LegalizeCountedIndices
from hloforge.pipelines.codegen.passes.excess_precision import LegalizeExcessPrecision
from hloforge.pipelines.codegen.passes.extreme_places import LegalizeExtremePlaces
from hloforge.pipelines.codegen.passes.factor_scales import LegalizeFactorScales
from hloforge.pipelines.codegen.passes.few_bins import LegalizeFewBins
from hloforge.pipelines.codegen.passes.fold_constants import FoldConstants
from hloforge.pipelines.codegen.passes.grouped_products import LegalizeGroupedProducts
from hloforge.pipelines.codegen.passes.half_convolutions import LegalizeHalfConvolutions
from hloforge.pipelines.codegen.passes.half_factorizations import LegalizeHalfFactorizations
from hloforge.pipelines.codegen.passes.image_layouts import LegalizeImageLayouts
from hloforge.pipelines.codegen.passes.independent_rows import LegalizeIndependentRows
from hloforge.pipelines.codegen.passes.integer_products import LegalizeIntegerProducts
from hloforge.pipelines.codegen.passes.keep_functions import KeepFunctions
from hloforge.pipelines.codegen.passes.known_divisors import LegalizeKnownDivisors
from hloforge.pipelines.codegen.passes.known_exponents import LegalizeKnownExponents
from hloforge.pipelines.codegen.passes.known_gathers import LegalizeKnownGathers
from hloforge.pipelines.codegen.passes.known_sizes import FoldKnownSizes
from hloforge.pipelines.codegen.passes.long_sums import LegalizeLongSums
from hloforge.pipelines.codegen.passes.nested_updates import LegalizeNestedUpdates
from hloforge.pipelines.codegen.passes.product_forms import LegalizeProductForms
from hloforge.pipelines.codegen.passes.quantized_moves import LegalizeQuantizedMoves
from hloforge.pipelines.codegen.passes.reduction_orders import LegalizeReductionOrders
from hloforge.pipelines.codegen.passes.requantization import LegalizeRequantization
from hloforge.pipelines.codegen.passes.running_reductions import DecomposeRunningReductions
from hloforge.pipelines.codegen.passes.shifted_windows import LegalizeShiftedWindows
from hloforge.pipelines.codegen.passes.single_terms import LegalizeSingleTerms
from hloforge.pipelines.codegen.passes.single_turns import LegalizeSingleTurns
from hloforge.pipelines.codegen.passes.single_windows import LegalizeSingleWindows
from hloforge.pipelines.codegen.passes.stacked_updates import LegalizeStackedUpdates
from hloforge.pipelines.codegen.passes.sums_after_loops import LegalizeSumsAfterLoops
from hloforge.pipelines.codegen.passes.tall_reductions import LegalizeTallReductions
from hloforge.pipelines.codegen.passes.transposed_convolutions import LegalizeTransposedConvolutions
from hloforge.pipelines.codegen.passes.widened_functions import LegalizeWidenedFunctions
from hloforge.pipelines.codegen.passes.window_gathers import LegalizeWindowGathers
from hloforge.pipelines.convolutions.polyphase_convolutions import PolyphaseConvolutions
from hloforge.pipelines.decompose.batch_norm import DecomposeBatchNorm
from hloforge.pipelines.decompose.complex_elementwise import DecomposeComplexElementwise
from hloforge.pipelines.decompose.complex_hyperbolic import DecomposeComplexHyperbolic
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.decompose.dot_algorithm import DecomposeDotAlgorithm
from hloforge.pipelines.decompose.einsum import DecomposeEinsum
from hloforge.pipelines.decompose.gamma_functions import DecomposeGammaFunctions
from hloforge.pipelines.decompose.map import DecomposeMap
from hloforge.pipelines.decompose.reverse_scan import DecomposeReverseScan
from hloforge.pipelines.decompose.rng import DecomposeRng
from hloforge.pipelines.decompose.shape_assertions import DecomposeShapeAssertions
from hloforge.pipelines.decompose.single_replica import DecomposeSingleReplica
from hloforge.pipelines.dynamic.refine_dynamism import RefineDynamism
from hloforge.pipelines.framework.facts import check_order
from hloforge.pipelines.framework.manager import PassManager, Timing
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.framework.stage import Stage
from hloforge.pipelines.legalize.accumulation import LegalizeAccumulation
from hloforge.pipelines.legalize.entry_abi import LegalizeEntryAbi
from hloforge.pipelines.legalize.host_calls import LegalizeHostCalls
from hloforge.pipelines.legalize.keep_truncations import KeepTruncations
from hloforge.pipelines.legalize.narrow_floats import LegalizeNarrowFloats
from hloforge.pipelines.legalize.narrow_integers import LegalizeNarrowIntegers
from hloforge.pipelines.legalize.promotions import LegalizePromotions
from hloforge.pipelines.legalize.quantized import LegalizeQuantized
from hloforge.pipelines.library_calls.decompose_factorizations import DecomposeFactorizations
from hloforge.pipelines.library_calls.decompose_library_calls import DecomposeLibraryCalls
from hloforge.pipelines.normalize.drop_tokens import DropTokens
from hloforge.pipelines.normalize.normalization import NORMALIZE
from hloforge.pipelines.replicas.combine_all_reduces import CombineAllReduces
from hloforge.pipelines.replicas.lower_collectives import LowerCollectives
from hloforge.pipelines.replicas.lower_feeds import LowerFeeds
from hloforge.pipelines.workarounds.independent_reductions import LegalizeIndependentReductions

STAGES: tuple[Stage, ...] = (
    *NORMALIZE,
    Stage(LegalizeBoundedResults(), "all after it is static; layouts say where the elements that are there begin"),
    Stage(CombineAllReduces(), "devices wait for each other once; reads collectives, which the next pass replaces"),
    Stage(LowerCollectives(), "other devices are reached through the host; makes host calls and arithmetic"),
    Stage(LowerFeeds(), "feeds and channels are queues of the host; makes host calls"),
    Stage(LegalizeHostCalls(), "a function of the host gets arrays as they lie in memory; effects keep their order"),
    Stage(LegalizeEntryAbi(), "layouts and narrow types end at the border; what it builds is decomposed with the rest"),
    Stage(DropTokens(), "tokens order effects, and there are none left"),
    Stage(LowerComposites(), "handlers see a composite whole, before its portable body replaces it"),
    Stage(LegalizeQuantized(), "quantized types are integers with arithmetic of floats"),
    Stage(DecomposeMap(), "a computation over scalars; every later pass sees arrays"),
    Stage(LegalizePromotions(), "a reduction may compute in a wider type; code generation sees one type"),
    Stage(RefineDynamism(), "sizes that are constants make static operations"),
    Stage(LegalizeSingleTurns(), "bodies of no loops; roundings and constants below see what is around them"),
    Stage(LegalizeSingleTerms(), "sums of one term are elementwise; roundings and products below see what is left"),
    Stage(LegalizeFewBins(), "reductions, of which passes below change some; single windows are updates"),
    Stage(LegalizeSingleWindows(), "updates of a part are elementwise; roundings below see what is around them"),
    Stage(LegalizeNestedUpdates(), "parts put back at known places are updates by now; these make no copies"),
    Stage(LegalizeKnownExponents(), "products where powers were; roundings below see them"),
    Stage(LegalizeWidenedFunctions(), "functions whose arguments are not rounded convert them"),
    Stage(LegalizeExcessPrecision(), "reads the program's own conversions; passes below make others"),
    Stage(DecomposeRunningReductions(), "sums of 16-bit floats in XLA's order; widened ones are f32 by now"),
    Stage(LegalizeShiftedWindows(), "running sums as the program has them, those of 16-bit floats in blocks"),
    Stage(DecomposeRng(), "XLA's generators, as arithmetic of integers"),
    Stage(DecomposeLibraryCalls(), "library calls as operations; sorts, factorizations, 8-bit products"),
    Stage(LegalizeHalfFactorizations(), "factorizations have code for f32 and wider floats"),
    Stage(DecomposeFactorizations(keep=NATIVE), "iterations on two diagonals are loops; the others have code"),
    Stage(LegalizeNarrowFloats(), "floats of 4 and 8 bits are computed in f32"),
    Stage(DecomposeReverseScan(), "jaxlib's expansion of scans ignores is_reverse"),
    Stage(DecomposeComplexHyperbolic(), "CHLO's expansion of complex sinh and cosh cancels"),
    Stage(DecomposeGammaFunctions(), "CHLO's expansions lose the digits of zeros"),
    Stage(KeepFunctions(), "error and hyperbolic functions have code, shorter and more exact than CHLO's expansion"),
    Stage(NativePass("func.func(chlo-legalize-to-stablehlo)"), "CHLO expands to StableHLO"),
    Stage(FoldKnownSizes(), "CHLO's expansions ask for sizes that types say"),
    Stage(NativePass("func.func(stablehlo-legalize-deprecated-ops)"), "dot, broadcast, unary_einsum as general ones"),
    Stage(DecomposeEinsum(), "products by their labels as dot_general"),
    Stage(LegalizeGroupedProducts(), "expansions of ragged products, before products change their forms and long sums"),
    Stage(LegalizeBlockProducts(), "sums over blocks, before long sums and products change their forms"),
    Stage(DecomposeDotAlgorithm(), "how a product is computed: with more or fewer bits of the factors"),
    Stage(DecomposeComplexElementwise(), "functions of complex numbers by real ones"),
    Stage(NativePass("func.func(stablehlo-complex-math-expander)"), "complex log, exp, sqrt by real functions"),
    Stage(LegalizeKnownDivisors(), "remainders of f64 are taken apart below"),
    Stage(DecomposeBitWidths(), "code generation finds elements by their places, which a change of width moves"),
    Stage(DecomposeSingleReplica(), "a program of one replica needs no communication"),
    Stage(DecomposeBatchNorm(), "reductions and arithmetic fuse with their neighbours"),
    Stage(LegalizeNarrowIntegers(), "integers of fewer than 8 bits are computed in 8"),
    Stage(LegalizeIndependentReductions(), "sums of 16-bit floats are found where they stand alone"),
    Stage(LegalizeAccumulation(windows=False), "XLA accumulates 16-bit sums in f32, but rounds in windows"),
    Stage(LegalizeExtremePlaces(), "sums of 16 bits have their types; extremes are reduced in parts below"),
    Stage(
        LegalizeSumsAfterLoops(), "sums of products, before long ones are taken apart and products change their forms"
    ),
    Stage(LegalizeLongSums(), "errors of long sums; every pass that makes sums is before it"),
    Stage(LegalizeQuantizedMoves(), "what is quantized again at its scale; products below see the integers"),
    Stage(LegalizeIntegerProducts(), "stored integers are multiplied exactly, several at once"),
    Stage(LegalizeRequantization(), "sums of integers are scaled once; they are known by their products"),
    Stage(LegalizeFactorScales(), "products of floats alone; scales of integers are part of the products above"),
    Stage(LegalizeCountedIndices(), "indices as decompositions leave them; windows have vectors"),
    Stage(LegalizeKnownGathers(), "indices as decompositions leave them; views for the passes below"),
    Stage(LegalizeWindowGathers(), "indices as decompositions leave them; what is the same for a row is computed once"),
    Stage(LegalizeCommonGaps(), "results that no weight reaches; what is left has products, layouts and forms"),
    Stage(LegalizeHalfConvolutions(), "convolutions of f16 as the program has them; layouts are chosen for f32"),
    Stage(LegalizeProductForms(), "products of real numbers whose dimensions follow each other have code"),
    Stage(LegalizeImageLayouts(), "convolutions that are products have left; what follows does not look at orders"),
    Stage(
        PolyphaseConvolutions(element="bf16"),
        "phases alone are products by registers for tiles; images have features last by now",
    ),
    Stage(LegalizeReductionOrders(), "images have features last by now; what has many rows then is in parts"),
    Stage(
        LegalizeTallReductions(), "workers share rows; longer sums are in parts, and images have features last by now"
    ),
    Stage(LegalizeTransposedConvolutions(), "images have their features last by now; its product has its form"),
    Stage(PolyphaseConvolutions(steps=True), "zeros between pixels that are left, which kernels would multiply"),
    Stage(KeepFunctions(back=True), "none of the passes before has to know these functions"),
    Stage(LegalizeByteTables(), "functions as they are computed; their results are known by the conversions to bytes"),
    Stage(FoldConstants(), "numbers that are known divide without a division"),
    Stage(
        DecomposeShapeAssertions(by_host=True),
        "what is required of sizes holds or is an error once these are constants",
    ),
    Stage(LegalizeIndependentRows(), "products have their forms; a loop of all rows is what passes above look at"),
    Stage(LegalizeStackedUpdates(), "stacks that loops make; what is a part of one is read where it is"),
    Stage(NativePass("func.func(canonicalize,cse)"), "folds what the decompositions left"),
    Stage(KeepTruncations(), "a truncation flushes subnormal numbers as its comparison does; the pass above merges"),
)


def lower(module: ir.Module) -> list[Timing]:
    """Rewrite an imported module in place to what ``generate`` reads. Returns the time of each pass.

    Raises:
        hloforge.Error: a pass does not take the program.
    """
    manager = PassManager([stage.entry for stage in STAGES])
    manager.run(module)
    return manager.timings


# A wrong order is an error of whoever wrote it, when it is written.
check_order("codegen", (stage.entry.contract() for stage in STAGES))
