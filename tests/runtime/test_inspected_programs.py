"""What ``hloforge inspect --html`` finds out of a program: memory, outline, and lines followed through passes."""

from __future__ import annotations

from itertools import pairwise

from hloforge.importers.reader import read
from hloforge.pipelines.named import stages
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.debug.lowering_record import record_lowering
from hloforge.runtime.debug.memory_estimate import memory_estimate
from hloforge.runtime.debug.outline import outline, scope_of
from hloforge.runtime.debug.tracked_text import TextTracker

CHAIN = """
func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {
  %a = stablehlo.abs %x : tensor<256xf32> loc("net/left/abs")
  %b = stablehlo.negate %a : tensor<256xf32> loc("net/right/negate")
  %c = stablehlo.add %a, %b : tensor<256xf32> loc("net/left/add")
  %d = stablehlo.floor %c : tensor<256xf32>
  return %d : tensor<256xf32>
}
"""

LOOP = """
func.func @main(%x: tensor<256xf32>, %n: tensor<i32>) -> tensor<256xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%v = %x, %i = %n) : tensor<256xf32>, tensor<i32>
    cond {
      %go = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %s = stablehlo.abs %v : tensor<256xf32>
      %t = stablehlo.negate %s : tensor<256xf32>
      %j = stablehlo.subtract %i, %one : tensor<i32>
      stablehlo.return %t, %j : tensor<256xf32>, tensor<i32>
    }
  return %r#0 : tensor<256xf32>
}
"""


def test_memory_is_what_lives_at_the_same_time() -> None:
    program = read(CHAIN)
    found = memory_estimate(program.module, program.signature)
    # a and b live while c is computed; then c and d.
    assert (found.arguments, found.results, found.constants, found.peak) == (1024, 1024, 0, 3 * 1024)
    assert found.at is not None and found.at.operation == "stablehlo.add"
    assert [value.operation for value in found.largest] == ["stablehlo.abs", "stablehlo.negate", "stablehlo.add"]
    assert found.total == 4 * 1024


def test_memory_inside_of_loops_counts_beside_their_results() -> None:
    program = read(LOOP)
    found = memory_estimate(program.module, program.signature)
    # The loop's results (1024 + 4) beside s and t of a turn.
    assert (found.constants, found.peak) == (4, 1028 + 2048)
    assert found.at is not None and found.at.operation == "stablehlo.negate"


def test_the_outline_follows_scopes_and_what_is_read() -> None:
    program = read(CHAIN)
    nodes = outline(program.module, program.signature, 100).nodes
    names = [node.name for node in nodes]
    assert names == [
        "arg0",
        "net",
        "left",
        "stablehlo.abs",
        "stablehlo.add",
        "right",
        "stablehlo.negate",
        "stablehlo.floor",
    ]
    by_name = dict(zip(names, nodes, strict=True))
    assert [names[place] for place in by_name["stablehlo.add"].operands] == ["stablehlo.abs", "stablehlo.negate"]
    assert [names[place] for place in by_name["stablehlo.floor"].operands] == ["stablehlo.add"]
    assert (by_name["net"].end, by_name["left"].end) == (7, 5)
    cut = outline(program.module, program.signature, 2)
    assert cut.left_out == 2 and sum(node.kind == "operation" for node in cut.nodes) == 2


def test_what_is_in_a_loop_stands_below_it() -> None:
    program = read(LOOP)
    nodes = outline(program.module, program.signature, 100).nodes
    loop = next(number for number, node in enumerate(nodes) if node.name == "stablehlo.while")
    inner = [node.name for node in nodes[loop + 1 : nodes[loop].end]]
    assert inner == ["stablehlo.compare", "stablehlo.abs", "stablehlo.negate", "stablehlo.subtract"]
    # What a turn reads of the loop's values, the loop gives it.
    assert nodes[loop + 2].operands == (loop,)


def test_slashes_in_parentheses_belong_to_a_name() -> None:
    text = CHAIN.replace("net/left/abs", "jit(f)/transpose(jvp(a/b))/dot")
    module = read(text).module
    (function,) = module.body.operations
    assert scope_of(next(iter(function.regions[0].blocks[0])).operation) == ("jit(f)", "transpose(jvp(a/b))")


def test_deep_names_are_cut() -> None:
    program = read(CHAIN.replace("net/left/abs", "/".join(["a"] * 5000)))
    nodes = outline(program.module, program.signature, 100).nodes
    assert sum(node.kind == "operation" for node in nodes) == 4


def test_lines_keep_their_names_when_others_come_before_them() -> None:
    program = read(CHAIN)
    tracker = TextTracker(100)
    before, _ = tracker.follow(program.module.operation.get_asm(enable_debug_info=True))
    # In the same line of the file, so that locations stay.
    longer = CHAIN.replace("  %a =", "  %z = stablehlo.sine %x : tensor<256xf32> %a =")
    after, count = tracker.follow(read(longer).module.operation.get_asm(enable_debug_info=True))
    assert count == len(after) == len(before) + 1
    old = {line.track: line.text for line in before}
    (new,) = [line for line in after if line.track not in old]
    assert "stablehlo.sine" in new.text
    assert [line.text for line in after if line.track in old] == [line.text for line in before]
    # The new value has a name of its own.
    name = new.text.split()[0]
    assert not any(name in line.text.split() for line in before)


def test_a_record_tells_each_pass_that_changed_something() -> None:
    text = CHAIN.replace("stablehlo.floor %c : ", "chlo.acosh %c : tensor<256xf32> -> ")
    program = read(text)
    record = record_lowering(program, stages("cpu"), most_lines=1000)
    assert record.error is None
    assert program.text() == read(text).text()
    changed = [snapshot for snapshot in record.snapshots if "chlo.acosh" in snapshot.removed]
    assert [snapshot.name for snapshot in changed] == ["func.func(chlo-legalize-to-stablehlo)"]
    assert changed[0].reason and changed[0].added
    for before, after in pairwise(record.snapshots):
        assert [line.text for line in before.lines] != [line.text for line in after.lines]
        kept = {line.track for line in before.lines} & {line.track for line in after.lines}
        orders = [[line.track for line in lines if line.track in kept] for lines in (before.lines, after.lines)]
        assert orders[0] == orders[1]


def test_a_normalized_program_reads_like_its_outline() -> None:
    program = read(LOOP)
    normalize(program.module)
    assert outline(program.module, program.signature, 0).left_out == 2
