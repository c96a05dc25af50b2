"""fold-replicas: one program for all devices, against XLA's client on that many."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import OptionError, UnsupportedError
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_tokens import DropTokens
from hloforge.pipelines.replicas.fold import fold_replicas
from tests.engines import interpret
from tests.replicated_engine import run_on_grid

ADD = """({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %s = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
# Not elementwise: the larger of the two by a branch.
LARGER = """({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %c = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %s = "stablehlo.if"(%c) ({ stablehlo.return %p : tensor<f32> }, { stablehlo.return %q : tensor<f32> })
    : (tensor<i1>) -> tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
TYPE = "tensor<4x6xf32>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>"


def program(body: str, result: str = TYPE) -> str:
    return f"func.func @main(%x: {TYPE}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def groups(*rows: list[int]) -> str:
    return f"replica_groups = dense<{[list(row) for row in rows]}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def data(devices: int) -> np.ndarray:
    return np.random.default_rng(devices).integers(-9, 9, (devices, 4, 6)).astype(np.float32)


def folded(text: str, replicas: int, partitions: int, *inputs: np.ndarray) -> list[np.ndarray]:
    return interpret(fold_replicas(read(text), replicas, partitions).module, *inputs)


def same_as_xla(text: str, replicas: int, partitions: int) -> None:
    x = data(replicas * partitions)
    for actual, expected in zip(
        folded(text, replicas, partitions, x), run_on_grid(text, replicas, partitions, [x]), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def reducing(name: str, attributes: str, region: str = ADD, result: str = TYPE) -> str:
    return program(f'%r = "stablehlo.{name}"(%x) {region} {{{attributes}}} : ({TYPE}) -> {result}', result)


def plain(name: str, attributes: str, result: str = TYPE) -> str:
    return program(f'%r = "stablehlo.{name}"(%x) {{{attributes}}} : ({TYPE}) -> {result}', result)


CASES = {
    "all_reduce": (reducing("all_reduce", groups([0, 2], [1, 3])), 4, 1),
    "all_reduce of all": (reducing("all_reduce", "replica_groups = dense<> : tensor<0x0xi64>"), 3, 1),
    "all_reduce of ragged groups": (reducing("all_reduce", groups([1, 0], [2, -1])), 3, 1),
    "all_reduce of both": (reducing("all_reduce", f"{groups([0, 1])}, {CHANNEL}"), 2, 2),
    "all_reduce of devices": (
        reducing("all_reduce", f"{groups([0, 3], [1, 2])}, {CHANNEL}, use_global_device_ids"),
        2,
        2,
    ),
    "all_reduce of each partition": (reducing("all_reduce", groups([0, 1])), 2, 2),
    "reduce_scatter": (
        reducing("reduce_scatter", f"{groups([1, 0])}, scatter_dimension = 1 : i64", ADD, "tensor<4x3xf32>"),
        2,
        1,
    ),
    "all_gather": (
        plain("all_gather", f"{groups([0, 2], [3, 1])}, all_gather_dim = 1 : i64", "tensor<4x12xf32>"),
        4,
        1,
    ),
    "all_to_all": (
        plain(
            "all_to_all",
            f"{groups([1, 2, 0])}, split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 3 : i64",
            "tensor<12x2xf32>",
        ),
        3,
        1,
    ),
    "all_to_all of partitions": (
        plain(
            "all_to_all",
            f"{groups([1, 0])}, {CHANNEL}, split_dimension = 0 : i64, concat_dimension = 0 : i64, "
            "split_count = 2 : i64",
        ),
        2,
        2,
    ),
    "collective_permute": (
        plain("collective_permute", "source_target_pairs = dense<[[0, 1], [2, 0]]> : tensor<2x2xi64>"),
        3,
        1,
    ),
    "collective_permute of partitions": (
        plain("collective_permute", f"source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>, {CHANNEL}"),
        2,
        2,
    ),
    "a loop around a collective": (
        program(f"""%n = stablehlo.constant dense<3> : tensor<i32>
%zero = stablehlo.constant dense<0> : tensor<i32>
%w:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, {TYPE} cond {{
  %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %j = stablehlo.add %i, %one : tensor<i32>
  %t = "stablehlo.all_reduce"(%a) {ADD} {{{groups([0, 1])}}} : ({TYPE}) -> {TYPE}
  %d = stablehlo.subtract %t, %x : {TYPE}
  stablehlo.return %j, %d : tensor<i32>, {TYPE}
}}
%r = stablehlo.add %w#1, %x : {TYPE}"""),
        2,
        1,
    ),
    "a loop of unequal counts": (
        program(f"""%id = stablehlo.replica_id : tensor<ui32>
%zero = stablehlo.constant dense<0> : tensor<ui32>
%w:2 = stablehlo.while(%i = %zero, %r = %x) : tensor<ui32>, {TYPE} cond {{
  %c = stablehlo.compare LT, %i, %id : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  %one = stablehlo.constant dense<1> : tensor<ui32>
  %j = stablehlo.add %i, %one : tensor<ui32>
  %d = stablehlo.add %r, %x : {TYPE}
  stablehlo.return %j, %d : tensor<ui32>, {TYPE}
}}
%r = stablehlo.add %w#1, %x : {TYPE}"""),
        3,
        1,
    ),
    "a branch around a collective": (
        program(f"""%t = "stablehlo.all_reduce"(%x) {ADD} {{{groups([0, 1])}}} : ({TYPE}) -> {TYPE}
%first = stablehlo.slice %t [0:1, 0:1] : ({TYPE}) -> tensor<1x1xf32>
%scalar = stablehlo.reshape %first : (tensor<1x1xf32>) -> tensor<f32>
%zero = stablehlo.constant dense<-100.0> : tensor<f32>
%c = stablehlo.compare GT, %scalar, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
%r = "stablehlo.if"(%c) ({{
  %p = "stablehlo.collective_permute"(%x) {{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}}
    : ({TYPE}) -> {TYPE}
  stablehlo.return %p : {TYPE}
}}, {{ stablehlo.return %x : {TYPE} }}) : (tensor<i1>) -> {TYPE}"""),
        2,
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_folded_program_computes_what_xla_computes_on_as_many_devices(name: str) -> None:
    same_as_xla(*CASES[name])


def test_gathered_replicas_and_partitions_stand_in_the_order_of_stablehlo() -> None:
    text = plain("all_gather", f"{groups([0, 1])}, {CHANNEL}, all_gather_dim = 0 : i64", "tensor<16x6xf32>")
    x = data(4)
    # StableHLO: replicas of the first partition, then of the second. Device 1 is partition 1 of replica 0.
    expected = np.concatenate([x[0], x[2], x[1], x[3]])
    np.testing.assert_array_equal(folded(text, 2, 2, x)[0], np.stack([expected] * 4))


def test_a_computation_may_branch() -> None:
    x = data(3)
    (actual,) = folded(reducing("all_reduce", groups([2, 0, 1]), LARGER), 3, 1, x)
    np.testing.assert_array_equal(actual, np.stack([x.max(axis=0)] * 3))


def test_collective_broadcast_sends_the_first_member_and_zeros_to_outsiders() -> None:
    text = plain("collective_broadcast", groups([2, 1]))
    x = data(3)
    np.testing.assert_array_equal(folded(text, 3, 1, x)[0], np.stack([0 * x[0], x[2], x[2]]))


def test_ids_number_the_grid() -> None:
    text = """func.func @main() -> (tensor<ui32>, tensor<ui32>) {
      %r = stablehlo.replica_id : tensor<ui32>
      %p = stablehlo.partition_id : tensor<ui32>
      return %r, %p : tensor<ui32>, tensor<ui32> }"""
    replica, partition = folded(text, 2, 3)
    np.testing.assert_array_equal(replica, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(partition, [0, 1, 2, 0, 1, 2])


TRANSFER = f"""%t = stablehlo.after_all : !stablehlo.token
%got:2 = "stablehlo.recv"(%t) {{{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}}
  : (!stablehlo.token) -> ({TYPE}, !stablehlo.token)
%y = stablehlo.add %x, {{}} : {TYPE}
%s = "stablehlo.send"(%y, %t) {{{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}}
  : ({TYPE}, !stablehlo.token) -> !stablehlo.token
%r = stablehlo.subtract %got#0, %x : {TYPE}""".replace("{{", "{").replace("}}", "}")


def test_a_transfer_is_the_value_that_its_source_sends_later() -> None:
    x = data(3)
    (actual,) = folded(program(TRANSFER.replace("{}", "%x")), 3, 1, x)
    np.testing.assert_array_equal(actual, np.stack([-x[0], 2 * x[0] - x[1], 2 * x[1] - x[2]]))


def test_a_transfer_of_what_it_brings_is_a_deadlock_that_names_the_channel() -> None:
    with pytest.raises(UnsupportedError, match="channel 3 waits for itself"):
        fold_replicas(read(program(TRANSFER.replace("{}", "%got#0"))), 3)


def test_a_loop_around_communication_may_not_end_by_what_one_device_has() -> None:
    text = program(f"""%w = stablehlo.while(%a = %x) : {TYPE} cond {{
  %f = stablehlo.slice %a [0:1, 0:1] : ({TYPE}) -> tensor<1x1xf32>
  %v = stablehlo.reshape %f : (tensor<1x1xf32>) -> tensor<f32>
  %n = stablehlo.constant dense<3.0> : tensor<f32>
  %c = stablehlo.compare LT, %v, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  %t = "stablehlo.all_reduce"(%a) {ADD} {{{groups([0, 1])}}} : ({TYPE}) -> {TYPE}
  stablehlo.return %t : {TYPE}
}}
%r = stablehlo.add %w, %x : {TYPE}""")
    with pytest.raises(UnsupportedError, match="condition of this while around communication may differ"):
        fold_replicas(read(text), 2)


SUM = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
X = np.arange(8, dtype=np.float32).reshape(2, 4)
HLO = {
    "all-reduce": (
        f"""{SUM} ENTRY e {{ p = f32[4] parameter(0)
          s = f32[4] all-reduce-start(p), replica_groups={{{{0,1}}}}, to_apply=add
          ROOT d = f32[4] all-reduce-done(s) }}""",
        np.stack([X[0] + X[1]] * 2),
    ),
    "all-gather": (
        """ENTRY e { p = f32[4] parameter(0)
          s = (f32[4], f32[8]) all-gather-start(p), replica_groups={{1,0}}, dimensions={0}
          ROOT d = f32[8] all-gather-done(s) }""",
        np.stack([np.concatenate([X[1], X[0]])] * 2),
    ),
    "collective-permute": (
        """ENTRY e { p = f32[4] parameter(0)
          s = (f32[4], f32[4]) collective-permute-start(p), source_target_pairs={{0,1}}
          ROOT d = f32[4] collective-permute-done(s) }""",
        np.stack([0 * X[0], X[0]]),
    ),
    "all-to-all of a tuple": (
        """ENTRY e { p = f32[4] parameter(0)  q = f32[4] multiply(p, p)
          t = (f32[4], f32[4]) all-to-all(p, q), replica_groups={{0,1}}
          a = f32[4] get-tuple-element(t), index=0  b = f32[4] get-tuple-element(t), index=1
          ROOT d = f32[4] subtract(a, b) }""",
        np.stack([X[0] - X[1], X[0] ** 2 - X[1] ** 2]),
    ),
    "groups by iota": (
        f"""{SUM} ENTRY e {{ p = f32[4] parameter(0)
          ROOT s = f32[4] all-reduce(p), replica_groups=[1,2]<=[2], to_apply=add }}""",
        np.stack([X[0] + X[1]] * 2),
    ),
    "send and recv": (
        f"""ENTRY e {{ p = f32[4] parameter(0)  t = token[] after-all()
          r = (f32[4], u32[], token[]) recv(t), channel_id=1, {PAIRS}
          s = (f32[4], u32[], token[]) send(p, t), channel_id=1, {PAIRS}
          rd = (f32[4], token[]) recv-done(r), channel_id=1
          sd = token[] send-done(s), channel_id=1
          ROOT x = f32[4] get-tuple-element(rd), index=0 }}""",
        np.stack([0 * X[0], X[0]]),
    ),
    # Two transfers in opposite directions, each with a channel of its own, though none is named.
    "send and recv without channels": (
        f"""ENTRY e {{ p = f32[4] parameter(0)  n = f32[4] negate(p)  t = token[] after-all()
          r = (f32[4], u32[], token[]) recv(t), {PAIRS}
          s = (f32[4], u32[], token[]) send(p, t), {PAIRS}
          q = (f32[4], u32[], token[]) recv(t), {PAIRS.replace("0,1", "1,0")}
          o = (f32[4], u32[], token[]) send(n, t), {PAIRS.replace("0,1", "1,0")}
          rd = (f32[4], token[]) recv-done(r)  sd = token[] send-done(s)
          qd = (f32[4], token[]) recv-done(q)  od = token[] send-done(o)
          x = f32[4] get-tuple-element(rd), index=0  y = f32[4] get-tuple-element(qd), index=0
          ROOT z = f32[4] add(x, y) }}""",
        np.stack([-X[1], X[0]]),
    ),
}


@pytest.mark.parametrize("name", HLO)
def test_forms_of_hlo(name: str) -> None:
    text, expected = HLO[name]
    program = fold_replicas(read(f"HloModule m, replica_count=2\n{text}"), 2)
    lowered = program.clone()
    PassManager([DropTokens()]).run(lowered.module)
    np.testing.assert_array_equal(interpret(lowered.module, X)[0], expected)


def test_groups_have_to_fit_the_grid() -> None:
    text = reducing("all_reduce", groups([0, 1]))
    with pytest.raises(UnsupportedError, match="it names replica 1"):
        fold_replicas(read(text), 1)
    with pytest.raises(UnsupportedError, match="leave out replica 2"):
        fold_replicas(read(text), 3)
    with pytest.raises(UnsupportedError, match="does not fit a group of 2 members"):
        fold_replicas(read(plain("all_gather", f"{groups([0, 1])}, all_gather_dim = 0 : i64", "tensor<12x6xf32>")), 2)
    with pytest.raises(OptionError, match="replicas must be positive"):
        fold_replicas(read(text), 0)


def test_the_signature_gains_a_leading_dimension_and_loses_layout_and_donation() -> None:
    text = """HloModule m, input_output_alias={ {}: (0, {}) }, entry_computation_layout={(f32[4,6]{0,1})->f32[4,6]{0,1}}
ENTRY e { ROOT p = f32[4,6]{0,1} parameter(0) }"""
    signature = fold_replicas(read(text), 2).signature
    assert str(signature) == "(p: f32[2,4,6]) -> f32[2,4,6]"
    assert not signature.aliases
