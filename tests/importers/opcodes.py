"""Every opcode of HLO: one module for each, and what becomes of it.

The list is XLA's ``HLO_OPCODE_LIST`` (xla/hlo/ir/hlo_opcode.h, the newest of 2026 and that of jaxlib 0.10);
``test_opcodes.py`` runs each module, and ``opcodes_page.py`` makes docs/opcodes.md of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

# The parameters that a body may name.
PARAMETERS: dict[str, tuple[str, Array]] = {
    "x": ("f32[4]", np.array([0.25, -1.5, 2.5, 0.75], np.float32)),
    "y": ("f32[4]", np.array([1.25, 0.5, -2.0, 3.0], np.float32)),
    "h": ("f32[4]", np.array([0.25, -0.5, 0.75, -0.125], np.float32)),
    "w": ("f32[4]", np.array([1.25, 2.5, 1.0, 3.75], np.float32)),
    "i": ("s32[4]", np.array([3, -7, 1 << 30, 12], np.int32)),
    "j": ("s32[4]", np.array([2, 3, 5, -4], np.int32)),
    "n": ("s32[]", np.array(2, np.int32)),
    "f": ("f32[]", np.array(0.5, np.float32)),
    "b": ("pred[4]", np.array([True, False, True, True])),
    "c": ("c64[4]", np.array([1 + 2j, -0.5j, 3, -1 + 1j], np.complex64)),
    "m": ("f32[3,3]", np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]], np.float32)),
    "k": ("f32[3,3]", np.array([[1, 2, 3], [0, -1, 2], [2, 1, 0]], np.float32)),
    "z": ("f32[1,4,4,2]", np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2) / 7 - 2),
    "v": ("f32[2]", np.array([1.5, -0.5], np.float32)),
    "p": ("f32[2]", np.array([0.75, 2.0], np.float32)),
    "u": ("u32[4]", np.array([1, 2**31, 7, 2**32 - 1], np.uint32)),
}
COMPUTATIONS = """sum { sa = f32[] parameter(0)
  sb = f32[] parameter(1)
  ROOT sc = f32[] add(sa, sb) }
twice { ta = f32[4] parameter(0)
  ROOT tc = f32[4] add(ta, ta) }
minus { ma = f32[4] parameter(0)
  ROOT mc = f32[4] negate(ma) }
less { la = f32[] parameter(0)
  lb = f32[] parameter(1)
  ROOT lc = pred[] compare(la, lb), direction=LT }
greater { ga = f32[] parameter(0)
  gb = f32[] parameter(1)
  ROOT gc = pred[] compare(ga, gb), direction=GE }
below { ba = (s32[], f32[4]) parameter(0)
  bi = s32[] get-tuple-element(ba), index=0
  bn = s32[] constant(3)
  ROOT bc = pred[] compare(bi, bn), direction=LT }
step { ea = (s32[], f32[4]) parameter(0)
  ei = s32[] get-tuple-element(ea), index=0
  ex = f32[4] get-tuple-element(ea), index=1
  en = s32[] constant(1)
  eo = s32[] add(ei, en)
  ey = f32[4] add(ex, ex)
  ROOT er = (s32[], f32[4]) tuple(eo, ey) }
scanned { na = f32[] parameter(0)
  nc = f32[] parameter(1)
  ns = f32[] add(na, nc)
  ROOT nr = (f32[], f32[]) tuple(ns, ns) }
"""


@dataclass(frozen=True)
class Opcode:
    """A row of the table.

    Attributes:
        body: the lines of the entry computation after its parameters; the last one is the root.
        expected: the results by numpy, where XLA's CPU client does not take the module; of the operands by their names.
        refused: words of the error.
        unread: the reader refuses it; else it is the compiler.
        reason: why it is refused, for the page.
        note: what else is to be said of it.
        takes: the queue that gives it the result, one of its session's feeds.
        gives: the queue that takes what it sends.
    """

    body: str
    expected: Callable[..., Any] | None = None
    refused: str = ""
    unread: bool = False
    reason: str = ""
    note: str = ""
    takes: str = ""
    gives: str = ""

    @property
    def names(self) -> list[str]:
        """The parameters that the body names, in order."""
        return [name for name in PARAMETERS if f"${name}" in self.body]

    @property
    def text(self) -> str:
        """The module."""
        given = [f"{name} = {PARAMETERS[name][0]} parameter({number})" for number, name in enumerate(self.names)]
        *lines, root = (line.strip().replace("$", "") for line in self.body.strip().splitlines())
        body = "".join(f"  {line}\n" for line in [*given, *lines, f"ROOT {root}"])
        return f"HloModule one\n{COMPUTATIONS}ENTRY entry {{\n{body}}}\n"

    @property
    def inputs(self) -> list[Array]:
        """The arguments."""
        return [PARAMETERS[name][1] for name in self.names]


def _each(opcodes: str, line: str) -> dict[str, Opcode]:
    return {opcode: Opcode(line.replace("OP", opcode)) for opcode in opcodes.split()}


def _same(x: Array) -> Array:
    return x


_WORK = "asynchronous work is done where it starts"
_DEVICES = "groups and pairs of several devices: [replicas.md](replicas.md)"
_QUEUES = "feeds and channels are queues of the session: [replicas.md](replicas.md)"
_START = "s = ((f32[4]), f32[4], s32[]) async-start($x), calls=minus\n"
_NEWER = "jaxlib 0.10.2's XLA does not know the opcode"

OPCODES: dict[str, Opcode] = {
    **_each("abs ceil floor negate round-nearest-afz round-nearest-even sign", "a = f32[4] OP($x)"),
    **_each("cbrt cosine erf exponential exponential-minus-one logistic sine tan tanh", "a = f32[4] OP($x)"),
    **_each("log log-plus-one rsqrt sqrt", "a = f32[4] OP($w)"),
    "acos": Opcode("a = f32[4] acos($h)", np.arccos),
    "acosh": Opcode("a = f32[4] acosh($w)", np.arccosh),
    "asin": Opcode("a = f32[4] asin($h)", np.arcsin),
    "asinh": Opcode("a = f32[4] asinh($x)", np.arcsinh),
    "atanh": Opcode("a = f32[4] atanh($h)", np.arctanh),
    "cosh": Opcode("a = f32[4] cosh($x)", np.cosh),
    "sinh": Opcode("a = f32[4] sinh($x)", np.sinh),
    **_each("add atan2 divide maximum minimum multiply remainder subtract", "a = f32[4] OP($x, $y)"),
    **_each("and or xor shift-left shift-right-arithmetic shift-right-logical", "a = s32[4] OP($i, $j)"),
    **_each("count-leading-zeros not popcnt", "a = s32[4] OP($i)"),
    **_each("imag real", "a = f32[4] OP($c)"),
    "add-dependency": Opcode("t = token[] after-all()\na = f32[4] add-dependency($x, t)"),
    "after-all": Opcode(
        "t = token[] after-all()\na = (f32[4], token[]) tuple($x, t)\nb = f32[4] get-tuple-element(a), index=0"
    ),
    "all-gather": Opcode("a = f32[4] all-gather($x), dimensions={0}, replica_groups={{0}}", note=_DEVICES),
    "all-gather-start": Opcode(
        "s = (f32[4], f32[4]) all-gather-start($x), dimensions={0}\na = f32[4] all-gather-done(s)", note=_WORK
    ),
    "all-gather-done": Opcode(
        "s = (f32[4], f32[4]) all-gather-start($x), dimensions={0}\na = f32[4] all-gather-done(s)", note=_WORK
    ),
    "all-reduce": Opcode("a = f32[4] all-reduce($x), to_apply=sum, replica_groups={{0}}", note=_DEVICES),
    "all-reduce-start": Opcode(
        "s = f32[4] all-reduce-start($x), to_apply=sum\na = f32[4] all-reduce-done(s)", note=_WORK
    ),
    "all-reduce-done": Opcode(
        "s = f32[4] all-reduce-start($x), to_apply=sum\na = f32[4] all-reduce-done(s)", note=_WORK
    ),
    "all-to-all": Opcode("a = f32[4] all-to-all($x), dimensions={0}", _same, note=_DEVICES),
    "async-start": Opcode(_START + "a = f32[4] async-done(s)", np.negative, note=_WORK),
    "async-update": Opcode(
        _START + "u = ((f32[4]), f32[4], s32[]) async-update(s)\na = f32[4] async-done(u)",
        np.negative,
        note="with operands of its own: refused, because jaxlib 0.10.2's XLA does not read them",
    ),
    "async-done": Opcode(_START + "a = f32[4] async-done(s)", np.negative, note=_WORK),
    "atan": Opcode("a = f32[4] atan($x)", np.arctan),
    "batch-norm-grad": Opcode(
        "g = f32[1,4,4,2] negate($z)\n"
        "a = (f32[1,4,4,2], f32[2], f32[2]) batch-norm-grad($z, $v, $v, $p, g), epsilon=0.001, feature_index=3"
    ),
    "batch-norm-inference": Opcode(
        "a = f32[1,4,4,2] batch-norm-inference($z, $v, $v, $v, $p), epsilon=0.001, feature_index=3"
    ),
    "batch-norm-training": Opcode(
        "a = (f32[1,4,4,2], f32[2], f32[2]) batch-norm-training($z, $v, $p), epsilon=0.001, feature_index=3"
    ),
    "bitcast": Opcode("a = f32[2,2] bitcast($x)", lambda x: x.reshape(2, 2)),
    "bitcast-convert": Opcode("a = s32[4] bitcast-convert($x)"),
    "broadcast": Opcode("a = f32[3,4] broadcast($x), dimensions={1}"),
    "call": Opcode("a = f32[4] call($x), to_apply=twice"),
    "cholesky": Opcode("a = f32[3,3] cholesky($m), lower=true\no = f32[3,3] multiply(a, a)"),
    "clamp": Opcode("a = f32[4] clamp($h, $x, $w)"),
    "collective-broadcast": Opcode("a = f32[4] collective-broadcast($x), replica_groups={{0}}", _same, note=_DEVICES),
    "collective-permute": Opcode("a = f32[4] collective-permute($x), source_target_pairs={{0,0}}", note=_DEVICES),
    "collective-permute-start": Opcode(
        "s = (f32[4], f32[4]) collective-permute-start($x), source_target_pairs={{0,0}}\n"
        "a = f32[4] collective-permute-done(s)",
        note=_WORK,
    ),
    "collective-permute-done": Opcode(
        "s = (f32[4], f32[4]) collective-permute-start($x), source_target_pairs={{0,0}}\n"
        "a = f32[4] collective-permute-done(s)",
        note=_WORK,
    ),
    "collective-reduce": Opcode(
        "a = f32[4] collective-reduce($x), to_apply=sum", refused="Unknown opcode", unread=True, reason=_NEWER
    ),
    "compare": Opcode("a = pred[4] compare($x, $y), direction=LT"),
    "complex": Opcode("a = c64[4] complex($x, $y)"),
    "concatenate": Opcode("a = f32[8] concatenate($x, $y), dimensions={0}"),
    "conditional": Opcode("a = f32[4] conditional($n, $x, $y, $x), branch_computations={twice, twice, minus}"),
    "constant": Opcode("a = f32[4] constant({1, 2.5, -3, nan})\nb = f32[4] add(a, $x)"),
    "convert": Opcode("a = s32[4] convert($x)"),
    "convolution": Opcode(
        "k = f32[2,2,2,1] constant({{{{1},{2}},{{3},{4}}},{{{5},{6}},{{7},{8}}}})\n"
        "a = f32[1,3,3,1] convolution($z, k), window={size=2x2}, dim_labels=b01f_01io->b01f"
    ),
    "copy": Opcode("a = f32[4] copy($x)"),
    "copy-start": Opcode("s = (f32[4], f32[4], u32[]) copy-start($x)\na = f32[4] copy-done(s)", _same, note=_WORK),
    "copy-done": Opcode("s = (f32[4], f32[4], u32[]) copy-start($x)\na = f32[4] copy-done(s)", _same, note=_WORK),
    "custom-call": Opcode(
        'a = f32[4] custom-call($x), custom_call_target="a_function"',
        refused="custom_call @a_function is not supported",
        reason="unless the function is known or registered: [host-calls.md](host-calls.md)",
    ),
    "domain": Opcode(
        'a = f32[4] domain($x), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=0}}'
    ),
    "dot": Opcode("a = f32[3,3] dot($m, $k), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "dynamic-reshape": Opcode("e = s32[] constant(2)\na = f32[<=2,<=2] dynamic-reshape($x, $n, e)"),
    "dynamic-slice": Opcode("a = f32[2] dynamic-slice($x, $n), dynamic_slice_sizes={2}"),
    "dynamic-update-slice": Opcode("a = f32[4] dynamic-update-slice($x, $v, $n)"),
    "fft": Opcode("a = c64[4] fft($c), fft_type=FFT, fft_length={4}"),
    "fusion": Opcode("a = f32[4] fusion($x), kind=kLoop, calls=twice"),
    "gather": Opcode(
        "e = s32[2] constant({2, 0})\na = f32[2,3] gather($m, e), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"
    ),
    "get-dimension-size": Opcode("a = s32[] get-dimension-size($x), dimensions={0}"),
    "get-tuple-element": Opcode("t = (f32[4], s32[]) tuple($x, $n)\na = s32[] get-tuple-element(t), index=1"),
    "infeed": Opcode(
        "t = token[] after-all()\nq = (f32[4], token[]) infeed(t)\na = f32[4] get-tuple-element(q), index=0",
        takes="infeed",
        note=_QUEUES,
    ),
    "iota": Opcode("e = f32[4] iota(), iota_dimension=0\na = f32[4] add(e, $x)"),
    "is-finite": Opcode("a = pred[4] is-finite($x)"),
    "map": Opcode("a = f32[4] map($x, $y), dimensions={0}, to_apply=sum"),
    "mulhi": Opcode(
        "a = u32[4] mulhi($u, $u)", lambda u: ((u.astype(np.uint64) ** 2) >> np.uint64(32)).astype(np.uint32)
    ),
    "opt-barrier": Opcode("a = f32[4] opt-barrier($x)"),
    "outfeed": Opcode(
        "t = token[] after-all()\no = token[] outfeed($x, t), outfeed_shape=f32[4]\na = f32[4] copy($x)",
        gives="outfeed",
        note=_QUEUES,
    ),
    "pad": Opcode("a = f32[9] pad($x, $f), padding=1_1_1"),
    "parameter": Opcode("a = f32[4] copy($x)"),
    "partition-id": Opcode("a = u32[] partition-id()", note=_DEVICES),
    "power": Opcode("a = f32[4] power($w, $x)"),
    "ragged-all-to-all": Opcode(
        "e = s64[1] constant({0})\no = s64[1] constant({1})\nq = s64[1] constant({2})\n"
        "a = f32[4] ragged-all-to-all($x, $y, e, q, o, q), replica_groups={{0}}",
        refused="ragged_all_to_all",
        reason="it exchanges as many rows as the program computes; no communicator of hloforge's does",
    ),
    "ragged-dot": Opcode(
        "g = s32[2] constant({1, 2})\ne = f32[2,3,3] broadcast($k), dimensions={1,2}\n"
        "a = f32[3,3] ragged-dot($m, e, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}",
        lambda m, k: m @ k,
    ),
    "recv": Opcode(
        "t = token[] after-all()\nq = (f32[4], u32[], token[]) recv(t), channel_id=1, is_host_transfer=true\n"
        "d = (f32[4], token[]) recv-done(q), channel_id=1, is_host_transfer=true\n"
        "a = f32[4] get-tuple-element(d), index=0",
        takes="channel",
        note=_QUEUES,
    ),
    "recv-done": Opcode(
        "t = token[] after-all()\nq = (f32[4], u32[], token[]) recv(t), channel_id=1, is_host_transfer=true\n"
        "d = (f32[4], token[]) recv-done(q), channel_id=1, is_host_transfer=true\n"
        "a = f32[4] get-tuple-element(d), index=0",
        takes="channel",
        note=_QUEUES,
    ),
    "reduce": Opcode("a = f32[] reduce($x, $f), dimensions={0}, to_apply=sum"),
    "reduce-precision": Opcode("a = f32[4] reduce-precision($x), exponent_bits=5, mantissa_bits=2"),
    "reduce-scatter": Opcode(
        "a = f32[4] reduce-scatter($x), dimensions={0}, to_apply=sum, replica_groups={{0}}", note=_DEVICES
    ),
    "reduce-window": Opcode("a = f32[3] reduce-window($x, $f), window={size=2}, to_apply=sum"),
    "replica-id": Opcode("a = u32[] replica-id()", note=_DEVICES),
    "reshape": Opcode("a = f32[2,2] reshape($x)"),
    "reverse": Opcode("a = f32[4] reverse($x), dimensions={0}"),
    "rng": Opcode(
        "e = f32[] constant(0)\ng = f32[] constant(1)\nq = f32[4] rng(e, g), distribution=rng_uniform\n"
        "a = pred[4] compare(q, q), direction=EQ",
        note="uniform numbers from an interval, normal ones; other bits than XLA's",
    ),
    "rng-bit-generator": Opcode(
        "e = u64[2] constant({1, 2})\na = (u64[2], u32[4]) rng-bit-generator(e), algorithm=rng_three_fry"
    ),
    "rng-get-and-update-state": Opcode("a = u64[2] rng-get-and-update-state(), delta=1"),
    "scaled-dot": Opcode(
        "o = f8e4m3fn[] constant(1.5)\ng = f8e8m0fnu[] constant(2)\ne = f8e4m3fn[2,32] broadcast(o), dimensions={}\n"
        "q = f8e8m0fnu[2,1] broadcast(g), dimensions={}\n"
        "a = f32[2,2] scaled-dot(e, e, q, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        lambda: np.full((2, 2), 32 * (1.5 * 2) ** 2, np.float32),
    ),
    "scan": Opcode(
        "a = (f32[4], f32[]) scan($x, $f), dimensions={0}, num_carries=1, to_apply=scanned",
    ),
    "scatter": Opcode(
        "e = s32[2,1] constant({{3}, {0}})\na = f32[4] scatter($x, e, $v), update_window_dims={}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"
    ),
    "select": Opcode("a = f32[4] select($b, $x, $y)"),
    "select-and-scatter": Opcode(
        "a = f32[4] select-and-scatter($x, $v, $f), window={size=2 stride=2}, select=greater, scatter=sum"
    ),
    "send": Opcode(
        "t = token[] after-all()\nq = (f32[4], u32[], token[]) send($x, t), channel_id=1, is_host_transfer=true\n"
        "d = token[] send-done(q), channel_id=1, is_host_transfer=true\na = f32[4] copy($x)",
        gives="channel",
        note=_QUEUES,
    ),
    "send-done": Opcode(
        "t = token[] after-all()\nq = (f32[4], u32[], token[]) send($x, t), channel_id=1, is_host_transfer=true\n"
        "d = token[] send-done(q), channel_id=1, is_host_transfer=true\na = f32[4] copy($x)",
        gives="channel",
        note=_QUEUES,
    ),
    "set-dimension-size": Opcode(
        "o = f32[] constant(0)\nq = f32[<=4] set-dimension-size($x, $n), dimensions={0}\n"
        "a = f32[] reduce(q, o), dimensions={0}, to_apply=sum",
    ),
    "shuffle": Opcode("a = f32[4] shuffle($x)", refused="Unknown opcode", unread=True, reason=_NEWER),
    "slice": Opcode("a = f32[2] slice($x), slice={[0:4:2]}"),
    "sort": Opcode("a = f32[4] sort($x), dimensions={0}, to_apply=less"),
    "stochastic-convert": Opcode(
        "a = s32[4] stochastic-convert($x, $u)",
        note="to signed integers; XLA has no rounding to floats",
    ),
    "topk": Opcode("a = (f32[2], s32[2]) topk($x), k=2, largest=true"),
    "transpose": Opcode("a = f32[3,3] transpose($m), dimensions={1,0}"),
    "triangular-solve": Opcode(
        "a = f32[3,3] triangular-solve($m, $k), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
    ),
    "tuple": Opcode("a = (f32[4], s32[]) tuple($x, $n)"),
    "while": Opcode(
        "o = s32[] constant(0)\nq = (s32[], f32[4]) tuple(o, $x)\n"
        "a = (s32[], f32[4]) while(q), condition=below, body=step"
    ),
}
