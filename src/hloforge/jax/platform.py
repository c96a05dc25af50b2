"""The platform ``hloforge`` of JAX: how its operations are lowered, and what else of JAX is private.

JAX lowers an operation by the rule of the platform, else by its default rule. The default rules write StableHLO, except
that some have none (``eigh``), are slow programs of loops (``lu``, ``svd``), or want to know the platform
(``pure_callback``). The CPU's rules call functions of LAPACK, which the pipelines decompose; so they serve here too,
their calls under names of our own (``hloforge.getrf``).

This module, ``backend`` and ``names`` are those with private imports of JAX. Tried with 0.10.2.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax._src import api_util, config, core, xla_bridge
from jax._src.array import ArrayImpl
from jax._src.buffer_callback import buffer_callback_p
from jax._src.callback import io_callback_p, pure_callback_p
from jax._src.debugging import debug_callback_p, debug_print_p, inspect_sharding_p
from jax._src.export import _export, shape_poly
from jax._src.interpreters import mlir
from jax._src.lax.control_flow.conditionals import cond_p, platform_index_p
from jax._src.random import prng

from hloforge.dialect.host_calls import INTERNAL
from hloforge.dialect.mlir import _jax, ir
from hloforge.jax import callbacks, custom_partitioning, inspections

PLATFORM = "hloforge"

# Rules of the CPU that call a library, or refuse algorithms (``TF32_TF32_F32``), where the default rule writes one
# operation that the pipelines decompose.
_PORTABLE = frozenset({"cholesky", "triangular_solve", "dot_general"})
# Options that name an algorithm, of which the CPU's rules refuse those of GPUs and TPUs: the pipelines have their own.
_ALGORITHMS = {"eig": "implementation", "eigh": "algorithm", "svd": "algorithm"}
_CALLBACKS = (pure_callback_p, io_callback_p, debug_callback_p, debug_print_p, buffer_callback_p)
_CPU = {PLATFORM: "cpu"}
_LIBRARY_CALL = re.compile(r"lapack_[sdcz](\w+)_ffi")

_COPY = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_SHOW = _jax.HostBufferSemantics.ZERO_COPY

_lock = threading.Lock()
_registered = False

Rule = Callable[..., Any]


def register() -> None:
    """Make ``hloforge`` a name that JAX lowers for. A second call does nothing."""
    global _registered
    with _lock:
        if _registered:
            return
        # A plugin of this name may be there already.
        if not xla_bridge.is_known_platform(PLATFORM):
            xla_bridge.register_backend_factory(PLATFORM, _no_backend, priority=-2000)
        if PLATFORM not in mlir._platforms_with_donation:
            mlir._platforms_with_donation.append(PLATFORM)
        mlir._platform_specific_lowerings[PLATFORM] = _Rules(mlir._platform_specific_lowerings[PLATFORM])
        for primitive, rule in _rules().items():
            mlir.register_lowering(primitive, rule, platform=PLATFORM)
        targets = {_own_name(target) for target in _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE}
        _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.update(targets)
        custom_partitioning.register(_of_custom_partitioning)
        _registered = True


class _Rules(dict[Any, Any]):
    """Rules of a platform by primitive, and those of the CPU for primitives that are defined later on and have no
    default rule: ``checkify.check``, ``sparse.linalg.spsolve``, those of users.
    """

    def __contains__(self, primitive: object) -> bool:
        if super().__contains__(primitive):
            return True
        of_cpu = mlir._platform_specific_lowerings["cpu"]
        if primitive in mlir._lowerings or primitive not in of_cpu:
            return False
        entry = of_cpu[primitive]
        self[primitive] = replace(entry, rule=_as_on_cpu(entry.rule))
        return True


def _no_backend() -> Any:
    raise RuntimeError("programs are lowered for hloforge, but its PJRT plugin is not registered")


def _of_custom_partitioning() -> Any:
    """JAX's module, which is there already where a program asks for it."""
    from jax._src import custom_partitioning as of_jax

    return of_jax


def _rules() -> dict[Any, Rule]:
    """Our rules by primitive: those of the CPU, less those whose operation has a portable form of its own."""
    of_cpu = {primitive: entry.rule for primitive, entry in mlir._platform_specific_lowerings["cpu"].items()}
    chosen = {primitive: rule for primitive, rule in of_cpu.items() if primitive.name not in _PORTABLE}
    chosen |= {primitive: of_cpu.get(primitive) or mlir._lowerings[primitive].rule for primitive in _CALLBACKS}
    rules = {primitive: _as_on_cpu(_by_any_algorithm(primitive.name, rule)) for primitive, rule in chosen.items()}
    call = mlir._lowerings[_export.call_exported_p].rule
    inspection = inspections.adopting(mlir._lowerings[inspect_sharding_p].rule)
    erf = {jax.lax.erf_p: _by_wider_floats(mlir._lowerings[jax.lax.erf_p].rule, jax.lax.erf)}
    own = {_export.call_exported_p: _of_exported(call, _as_on_cpu(call)), inspect_sharding_p: inspection}
    for primitive, parameter in ((platform_index_p, "platforms"), (cond_p, "branches_platforms")):
        own[primitive] = _by_platforms(mlir._lowerings[primitive].rule, parameter)
    return rules | erf | own


def _by_wider_floats(rule: Rule, function: Callable[..., Any]) -> Rule:
    """A function of 8-bit floats through f32: jaxlib cannot hand it to a plugin as it is."""

    def widened(x: Any) -> Any:
        return jax.lax.convert_element_type(function(jax.lax.convert_element_type(x, "float32")), x.dtype)

    by_f32 = mlir.lower_fun(widened, multiple_results=False)

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        is_small = context.avals_in[0].dtype.itemsize == 1
        return by_f32(context, *operands) if is_small else rule(context, *operands, **parameters)

    return lower


def _by_any_algorithm(name: str, rule: Rule) -> Rule:
    """The rule of a factorization without the algorithm that is asked for; any other rule as it is."""
    option = _ALGORITHMS.get(name)
    if option is None:
        return rule
    return lambda context, *operands, **parameters: rule(context, *operands, **parameters | {option: None})


def _as_on_cpu(rule: Rule) -> Rule:
    """The rule run as if for the CPU, with names of our own for what it calls."""

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        ours = context.module_context
        block = ir.InsertionPoint.current.block
        before, called = len(block.operations), len(ours.host_callbacks)
        is_backend = ours.backend is not None and ours.backend.platform == PLATFORM
        # Not a copy of the context, on which a rule leaves its tokens.
        context.module_context = ours.replace(
            platforms=tuple(_CPU.get(name, name) for name in ours.platforms),
            backend=callbacks.CPU_BACKEND if is_backend else ours.backend,
        )
        try:
            results = rule(context, *operands, **parameters)
        finally:
            context.module_context = ours
        written = list(block.operations)[before:]
        if is_backend:
            callbacks.adopt(ours, called, written)
        for op in written:
            if op.operation.name == "stablehlo.custom_call":
                name = _own_name(op.attributes["call_target_name"].value)
                op.attributes["call_target_name"] = ir.StringAttr.get(name)
        return results

    return lower


def _of_exported(rule: Rule, on_cpu: Rule) -> Rule:
    """The rule for calls of exported programs: those for the CPU run here."""

    def lower(context: Any, *operands: Any, exported: Any, **parameters: Any) -> Any:
        is_of_cpu = PLATFORM not in exported.platforms and _CPU[PLATFORM] in exported.platforms
        chosen = on_cpu if is_of_cpu else rule
        return chosen(context, *operands, exported=exported, **parameters)

    return lower


def _by_platforms(rule: Rule, parameter: str) -> Rule:
    """The rule for ``lax.platform_dependent``: what is given for the CPU serves here, unless something is for hloforge.

    Args:
        parameter: of the rule, with the platforms of each branch; None of the default one, or without such branches.
    """

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        branches = parameters.get(parameter) or ()
        if not any(PLATFORM in (platforms or ()) for platforms in branches):
            served = tuple((*names, PLATFORM) if names and _CPU[PLATFORM] in names else names for names in branches)
            parameters |= {parameter: served} if branches else {}
        return rule(context, *operands, **parameters)

    return lower


def _own_name(target: str) -> str:
    return _LIBRARY_CALL.sub(rf"{INTERNAL}\1", target)


# --- What a call needs to know of JAX, each in one line.

Array = ArrayImpl
Tracer = core.Tracer
KeyArray = prng.PRNGKeyArray


def context() -> Any:
    """The settings that tracing depends on (x64, precision, mesh …), to be compared."""
    return config.trace_context()


def is_tracing() -> bool:
    """Whether JAX traces or transforms on this thread, or runs without ``jit`` at all."""
    return not is_eager() or config.disable_jit.value


# Whether JAX neither traces nor transforms on this thread.
is_eager = core.trace_state_clean


def aval(leaf: Any) -> Any:
    """The shape, type and weakness of an argument. Raises TypeError for what JAX takes for no argument."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return core.ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
    return core.typeof(leaf)


def static_arguments(
    function: Callable[..., Any], numbers: int | Sequence[int] | None, names: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of static arguments, one completed from the other as ``jax.jit`` does."""
    signature = api_util.fun_signature(function)
    if signature is None:
        signature = inspect.Signature()
    found: tuple[tuple[int, ...], tuple[str, ...]] = api_util.infer_argnums_and_argnames(signature, numbers, names)
    return found


def compile_arguments(lowered: Any) -> dict[str, Any]:
    """What a ``jax.stages.Lowered`` hands to XLA beside the module."""
    arguments: dict[str, Any] = lowered._lowering.compile_args
    return arguments


def constant_arguments(lowered: Any) -> list[Any]:
    """Constants of the program that are passed with each call, before its arguments."""
    return list(lowered._lowering.const_args)


def put(array: Any, aval: Any, device: Any, sharding: Any, *, copy: bool) -> Any:
    """A ``jax.Array`` of a numpy array: a copy, or what shows its memory, which starts at a multiple of 64 bytes."""
    return _jax.batched_device_put(aval, sharding, [array], [device], False, False, _COPY if copy else _SHOW)


def release() -> None:
    """Let go of what JAX's deleted arrays refer to."""
    _jax.collect_garbage()


def require(condition: Any, message: str) -> None:
    """End a call of the traced program with this message where the condition, a scalar of booleans, does not hold."""
    shape_poly.shape_assertion(condition, error_message=message)


def key_data(leaf: Any) -> Any:
    """The numbers of an array of typed keys."""
    return leaf._base_array


def wrapped_keys(numbers: Any, aval: Any) -> Any:
    """Typed keys of numbers that are traced."""
    return prng.random_wrap(numbers, impl=aval.dtype._impl)


def keys(numbers: Any, aval: Any) -> Any:
    """An array of typed keys from its numbers."""
    return prng.PRNGKeyArray(aval.dtype._impl, numbers)


def held(leaf: Any) -> Any:
    """The array that a ``Ref`` holds now; any other leaf as it is."""
    return leaf._refs._buf if isinstance(leaf, core.Ref) else leaf


def hold(reference: Any, array: Any) -> None:
    """Give a ``Ref`` its next value, where the one before lies; that one ends, as if it were donated."""
    own = reference._refs._buf
    own._replace_with(array if array.sharding == own.sharding else jax.device_put(array, own.sharding))


def is_key(aval: Any) -> bool:
    """Whether an aval is of typed keys."""
    return bool(jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key))


def plain_aval(aval: Any) -> Any:
    """The physical aval without what is known of places."""
    found = core.physical_aval(aval)
    return core.ShapedArray(found.shape, found.dtype, weak_type=found.weak_type)


def physical(aval: Any) -> Any:
    """The aval as a program sees it: keys are their numbers."""
    return core.physical_aval(aval)
