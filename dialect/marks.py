"""Marks of our own: attributes that our passes write into a program and rely on later.

A pass that reads a mark does no check of its own: a gather that is marked ``IN_BOUNDS`` reads memory at any index. So
what a file says must never pass for one. All marks are in this list, each with who writes and who reads it, and the
code takes their names from here. ``importers/vetting.py`` lets none of them in, except for the few that a file may
carry, which it compares with the types. An attribute, a target, a symbol or a location of ours has one of ``PREFIXES``,
so that vetting need not know each of them; a test compares the list with the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class On(Enum):
    """What of a program has the mark's name."""

    MODULE = "attribute of the module"
    OPERATION = "attribute of an operation"
    TARGET = "target of a custom call"
    SYMBOL = "symbol"
    LOCATION = "location"


@dataclass(frozen=True)
class Mark:
    """One mark.

    Attributes:
        name: of the attribute, target, symbol or location; of a symbol or location what it begins with.
        on: what has the name.
        written: the files that write it.
        read: the files that believe it.
        carried: whether a file may bring it; then vetting checks what it says.
    """

    name: str
    on: On
    written: str
    read: str
    carried: bool = False


# What names of ours begin with, and no name in a file may.
PREFIX = "hloforge."
# Symbols, too: functions that the compiled module imports of the host, and code that dispatches share.
HOST_IMPORT = "host.call_"
# Numbers for locations: of HLO's instructions, of operations that XLA cuts, of those that are profiled.
INSTRUCTION_LABEL, PART_LABEL, PROFILE_LABEL = "hloforge#", "hloforge:", "hloforge.op."

# The signature: documented, and what ``hloforge translate`` writes into StableHLO.
PARAMETER_NAMES, PARAMETER_SHAPES = "hloforge.parameter_names", "hloforge.parameter_shapes"
RESULT_SHAPE, INPUT_OUTPUT_ALIAS = "hloforge.result_shape", "hloforge.input_output_alias"
RESULT_NAMES, LABELS = "hloforge.result_names", "hloforge.labels"
NUM_PARTITIONS, NUM_REPLICAS = "hloforge.num_partitions", "hloforge.num_replicas"
PARTITIONED = "hloforge.partitioned"
# What a custom call remembers of a tuple that was its result, beside RESULT_SHAPE.
RESULT_ALIASES = "hloforge.result_aliases"

# Facts about a module or operation that a pass has established.
PHYSICAL_ABI, GRID, SHARDED = "hloforge.physical_abi", "hloforge.grid", "hloforge.sharded"
# Of a module for code generation: the sizes of what main returns, some of which are results after it.
BOUNDED_RESULTS = "hloforge.bounded_results"
HOST_FUNCTIONS, HOST_CALL = "hloforge.host_functions", "hloforge.host_call"
DROPPED_ATTRIBUTES, ELIDED = "hloforge.dropped_attributes", "hloforge.elided"
# Of a scatter or gather: its indices lie in bounds, and a scatter's rows lead, so that IREE takes it as it is.
IN_BOUNDS = "hloforge.in_bounds"
# Of a conversion: its operand is clamped to the integer's range.
IN_RANGE = "hloforge.in_range"
# Of a conversion: it rounds to the nearest integer, and its operand is no NaN and clamped to the integer's range.
NEAREST = "hloforge.nearest"
# Of a comparison: with the extreme of the first operand's own elements, which so have to be the same in all readers.
OF_EXTREME = "hloforge.of_extreme"
# On a gather: of bytes, by bytes, out of a table of 256.
BYTE_TABLE = "hloforge.byte_table"
# Of ceil, floor and log: the operand holds no subnormal number that the result depends on, or one that is to be zero.
NORMAL = "hloforge.normal"
# Of a conversion from bf16 that a decomposition made: what it converts is rounded before.
ROUNDED = "hloforge.rounded"
# Of a feed or transfer of a folded program: for which device it is.
DEVICE = "hloforge.device"
OPAQUE_SIZES = "hloforge.opaque_sizes"
# Of a collective: its group is all members that there are, whatever its groups say.
AMONG_ALL = "hloforge.among_all"
KEY, SHAPE = "hloforge.key", "hloforge.shape"
REFLECTION = "iree.reflection"

# Calls that a pass makes and a later one, or the session, takes for its own.
CHOLESKY, LU, QR, ORTHOGONAL = "hloforge.cholesky", "hloforge.lu", "hloforge.qr", "hloforge.orthogonal"
TRIDIAGONAL_QL, BIDIAGONAL_QR = "hloforge.tridiagonal_ql", "hloforge.bidiagonal_qr"
TRIDIAGONAL, BIDIAGONAL, HESSENBERG = "hloforge.tridiagonal", "hloforge.bidiagonal", "hloforge.hessenberg"
REFLECTED = "hloforge.reflected"
TRIDIAGONAL_EIGENVECTORS = "hloforge.tridiagonal_eigenvectors"
BIDIAGONAL_VECTORS = "hloforge.bidiagonal_vectors"
# A product of rows with the matrix of their group, and sums of products over the rows of each group.
GROUPED_PRODUCT, GROUPED_CONTRACTION = "hloforge.grouped_product", "hloforge.grouped_contraction"
# A product of bytes in blocks with a scale each.
BLOCK_PRODUCT = "hloforge.block_product"
# Functions of CHLO while other passes run; the function's name follows.
KEPT_FUNCTION = "hloforge.kept."
RNG_STATE, SCALED_DOT, GRAPH = "hloforge.rng_state", "hloforge.scaled_dot", "hloforge.graph"
COMBINE, GATHER, MOVE = "hloforge.combine", "hloforge.gather", "hloforge.move"
REPLICA_ID, PARTITION_ID = "hloforge.replica_id", "hloforge.partition_id"
# A check of elements by the host: see pipelines/decompose/shape_assertions.py.
CHECK = "hloforge.check"
INFEED, OUTFEED, SEND, RECV = "hloforge.infeed", "hloforge.outfeed", "hloforge.send", "hloforge.recv"

# Symbols of what IREE's dialect declares.
WEIGHT, RNG_BLOCKS, KEEP_BUFFERS = "hloforge.weight.", "hloforge.rng_blocks", "hloforge.keep_buffers"

# What JAX's platform ``hloforge`` calls LAPACK's functions by, so that one name serves all element types.
# A program of JAX, and so an export for that platform, brings them: each checks its values like any library's.
LIBRARY_FUNCTIONS = frozenset(
    PREFIX + name
    for name in (
        *("gees", "geev", "gehrd", "geqp3", "geqrf", "gesdd", "gesvd", "getrf", "gtsv", "heevd", "hetrd", "orgqr"),
        *("ormqr", "potrf", "syevd", "sytrd", "trsm", "ungqr", "unmqr"),
    )
)

_SIGNATURE, _REPLICAS, _LINALG = "dialect/program.py", "pipelines/replicas", "pipelines/library_calls"
_COLLECTIVES, _FEEDS = "pipelines/replicas/lower_collectives.py", "pipelines/replicas/lower_feeds.py"

_ALL = (
    Mark(PARAMETER_NAMES, On.MODULE, _SIGNATURE, _SIGNATURE, carried=True),
    Mark(PARAMETER_SHAPES, On.MODULE, _SIGNATURE, _SIGNATURE, carried=True),
    Mark(RESULT_SHAPE, On.MODULE, _SIGNATURE, _SIGNATURE, carried=True),
    Mark(INPUT_OUTPUT_ALIAS, On.MODULE, _SIGNATURE, _SIGNATURE, carried=True),
    Mark(RESULT_NAMES, On.MODULE, _SIGNATURE, _SIGNATURE, carried=True),
    Mark(LABELS, On.MODULE, _SIGNATURE, _SIGNATURE, carried=True),
    Mark(NUM_PARTITIONS, On.MODULE, "importers/signature.py", _REPLICAS, carried=True),
    Mark(NUM_REPLICAS, On.MODULE, "importers/signature.py", _REPLICAS, carried=True),
    Mark(PARTITIONED, On.MODULE, "importers/reader.py", "pipelines/replicas/annotations.py", carried=True),
    Mark(PHYSICAL_ABI, On.MODULE, "pipelines/legalize/entry_abi.py", "pipelines/legalize/entry_abi.py"),
    Mark(GRID, On.MODULE, "pipelines/replicas/grid.py", _REPLICAS),
    Mark(BOUNDED_RESULTS, On.MODULE, "codegen/passes/bounded_results.py", "codegen/generate.py"),
    Mark(SHARDED, On.MODULE, "pipelines/replicas/shards.py", "pipelines/replicas/shards.py"),
    Mark(HOST_FUNCTIONS, On.MODULE, "pipelines/host_calls.py", "pipelines/host_calls.py"),
    Mark(DROPPED_ATTRIBUTES, On.MODULE, "importers/reader.py", "who called hloforge.read"),
    Mark(RESULT_SHAPE, On.OPERATION, "dialect/tuples.py", "pipelines/legalize/host_calls.py", carried=True),
    Mark(RESULT_ALIASES, On.OPERATION, "dialect/tuples.py", "pipelines/legalize/host_calls.py", carried=True),
    Mark(HOST_CALL, On.OPERATION, "pipelines/legalize/host_calls.py", "codegen/reading.py, import_host_calls.py …"),
    Mark(ELIDED, On.OPERATION, "importers/elided.py", "importers/elided.py"),
    Mark(OF_EXTREME, On.OPERATION, "codegen/passes/extreme_places.py", "codegen/steps.py"),
    Mark(IN_BOUNDS, On.OPERATION, "dialect/idioms.py, clamp_gather_indices.py", "scatter.py, codegen/elements …"),
    Mark(IN_RANGE, On.OPERATION, "pipelines/workarounds/float_to_integer.py", "pipelines/analysis/forms.py"),
    Mark(NEAREST, On.OPERATION, "codegen/passes/requantization.py", "codegen/emit.py"),
    Mark(BYTE_TABLE, On.OPERATION, "codegen/passes/byte_tables.py", "codegen/reading.py"),
    Mark(
        NORMAL,
        On.OPERATION,
        "keep_truncations.py, subnormal_rounding.py …",
        "pipelines/analysis/forms.py, logarithm.py",
    ),
    Mark(ROUNDED, On.OPERATION, "pipelines/decompose/real_arithmetic.py", "pipelines/legalize/bf16.py"),
    Mark(OPAQUE_SIZES, On.OPERATION, "pipelines/dynamic/dynamic_shapes.py", "pipelines/dynamic/dynamic_shapes.py"),
    Mark(AMONG_ALL, On.OPERATION, "importers/reader.py", "pipelines/replicas/grid.py"),
    Mark(DEVICE, On.OPERATION, "pipelines/replicas/folder.py", _FEEDS),
    Mark(KEY, On.OPERATION, "pipelines/weights.py", "pipelines/weights.py, codegen/reading.py"),
    Mark(SHAPE, On.OPERATION, "pipelines/weights.py", "pipelines/weights.py"),
    Mark(REFLECTION, On.OPERATION, "runtime/compile/by_iree.py", "runtime/artifact/manifest.py"),
    *(
        Mark(name, On.TARGET, _LINALG, f"{_LINALG}/decompose_factorizations.py, codegen/factorizations.py")
        for name in (
            *(CHOLESKY, LU, QR, ORTHOGONAL, TRIDIAGONAL_QL, BIDIAGONAL_QR),
            *(TRIDIAGONAL, BIDIAGONAL, HESSENBERG, REFLECTED, TRIDIAGONAL_EIGENVECTORS, BIDIAGONAL_VECTORS),
        )
    ),
    Mark(GROUPED_PRODUCT, On.TARGET, "codegen/passes/grouped_products.py", "codegen/reading.py"),
    Mark(BLOCK_PRODUCT, On.TARGET, "codegen/passes/block_products.py", "codegen/reading.py"),
    Mark(GROUPED_CONTRACTION, On.TARGET, "codegen/passes/grouped_products.py", "codegen/reading.py"),
    Mark(
        KEPT_FUNCTION, On.TARGET, "pipelines/codegen/passes/keep_functions.py", "the same pass, as keep-functions{back}"
    ),
    Mark(RNG_STATE, On.TARGET, "pipelines/normalize/lower_mhlo.py", f"{_LINALG}/random_state.py"),
    Mark(SCALED_DOT, On.TARGET, "importers/hlo_scaled.py", "pipelines/normalize/scaled_dot.py"),
    Mark(GRAPH, On.TARGET, "importers/template.py, front ends", "none: a template is imported again"),
    Mark(HOST_CALL, On.TARGET, "pipelines/legalize/host_calls.py", "pipelines/legalize/import_host_calls.py"),
    *(
        Mark(name, On.TARGET, _COLLECTIVES, "runtime/replicas/calls.py")
        for name in (COMBINE, GATHER, MOVE, REPLICA_ID, PARTITION_ID)
    ),
    Mark(CHECK, On.TARGET, "pipelines/decompose/shape_assertions.py", "runtime/host/host.py"),
    *(Mark(name, On.TARGET, _FEEDS, "runtime/session/feeds.py") for name in (INFEED, OUTFEED, SEND, RECV)),
    Mark(HOST_IMPORT, On.SYMBOL, "pipelines/legalize/import_host_calls.py", "runtime/host/vm_module.py"),
    Mark(WEIGHT, On.SYMBOL, "pipelines/weights.py", "pipelines/weights.py"),
    Mark(RNG_BLOCKS, On.SYMBOL, "pipelines/decompose/rng.py", "pipelines/framework/variables.py"),
    Mark(KEEP_BUFFERS, On.SYMBOL, "pipelines/workarounds/loop_buffers.py", "pipelines/workarounds/loop_buffers.py"),
    Mark(INSTRUCTION_LABEL, On.LOCATION, "importers/hlo_proto.py", "importers/locations.py"),
    Mark(PART_LABEL, On.LOCATION, "runtime/compile/partition.py", "runtime/compile/partition.py"),
    Mark(PROFILE_LABEL, On.LOCATION, "runtime/profiling/labels.py", "runtime/profiling/sites.py"),
)


def _listed(marks: tuple[Mark, ...]) -> Mapping[tuple[On, str], Mark]:
    found: dict[tuple[On, str], Mark] = {}
    for mark in marks:
        if (mark.on, mark.name) in found:
            raise ValueError(f"the mark {mark.name} ({mark.on.value}) is listed twice")
        found[mark.on, mark.name] = mark
    return found


# All marks, by what has them and by name.
MARKS = _listed(_ALL)
# Beginnings of symbols that are ours.
RESERVED_SYMBOLS = (PREFIX, HOST_IMPORT)

# --- What else a file may say, which is no mark of ours.

# Dialects of which programs consist. What a pass or the audit makes of their operations is decided by tables.
# Dialects below StableHLO, which IREE takes as they are: it checks no index of ``tensor.extract`` and no divisor of
# ``arith.divsi``. Our passes write their operations, and no file may.
BELOW = frozenset(
    {"arith", "cf", "complex", "flow", "iree_tensor_ext", "linalg", "math", "scf", "tensor", "util", "vector"}
)
# Prefixes of attributes that XLA, JAX and Shardy write beside StableHLO's own; ``strip-attributes`` takes them away.
FOREIGN_PREFIXES = ("mhlo.", "sdy.", "xla.", "jax.", "tf.", "tpu.")
# Layouts inside the program, likewise; they mean nothing after drop-copies and lower-bitcast.
FOREIGN_NAMES = frozenset({"result_layout", "operand_layout", "source_layout", "xla_shape", "execution_thread"})


def is_own_target(target: str) -> bool:
    """Whether a name that begins with ``PREFIX`` is one that our passes call."""
    return target in LIBRARY_FUNCTIONS or (On.TARGET, target) in MARKS or target.startswith(KEPT_FUNCTION)


def is_carried(name: str, on: On) -> bool:
    """Whether a file may bring this attribute of ours."""
    mark = MARKS.get((on, name))
    return mark is not None and mark.carried


def is_foreign(name: str) -> bool:
    """Whether XLA, JAX or Shardy writes an attribute of this name."""
    return name in FOREIGN_NAMES or name.startswith(FOREIGN_PREFIXES)
