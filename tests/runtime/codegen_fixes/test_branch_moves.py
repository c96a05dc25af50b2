"""The order of moves at branches of IREE's virtual machine: none overwrites what a later one reads."""

from __future__ import annotations

import io
import random
import subprocess
import zipfile

import pytest
from iree import runtime

from hloforge.dialect.errors import CompileError
from hloforge.runtime.codegen_fixes.branch_moves import _ordered, with_ordered_moves
from hloforge.runtime.codegen_fixes.bytecode import functions
from hloforge.runtime.compile.iree import compiler_binary

# The 64 bits of %sum go where %next waits for its move.
COUNTED = """vm.module @counted {
  vm.export @total
  vm.func @total(%n: i32) -> i64 {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %start = vm.const.i64 5
    vm.br ^loop(%zero, %start : i32, i64)
  ^loop(%i: i32, %s: i64):
    %last = vm.trunc.i64.i32 %s : i64 -> i32
    %next = vm.add.i32 %i, %one : i32
    %both = vm.add.i32 %last, %i : i32
    %sum = vm.ext.i32.i64.s %both : i32 -> i64
    %more = vm.cmp.lt.i32.s %next, %n : i32
    vm.cond_br %more, ^loop(%next, %sum : i32, i64), ^end
  ^end:
    vm.return %sum : i64
  }
}"""
# A branch that exchanges numbers, one of several targets, and floats.
EXCHANGED = """vm.module @exchanged {
  vm.export @total
  vm.func @total(%n: i32) -> i64 {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %a = vm.const.i64 1
    %b = vm.const.i64 10
    %f = vm.const.f32 2.5
    vm.br ^loop(%zero, %a, %b, %f : i32, i64, i64, f32)
  ^loop(%i: i32, %p: i64, %q: i64, %g: f32):
    %next = vm.add.i32 %i, %one : i32
    %h = vm.add.f32 %g, %g : f32
    vm.br_table %i {
      default: ^end(%p : i64),
      0: ^loop(%next, %q, %p, %h : i32, i64, i64, f32),
      1: ^loop(%next, %q, %p, %g : i32, i64, i64, f32),
      2: ^loop(%next, %q, %p, %h : i32, i64, i64, f32)
    }
  ^end(%r: i64):
    %whole = vm.cast.f32.si32 %g : f32 -> i32
    %wide = vm.ext.i32.i64.s %whole : i32 -> i64
    %sum = vm.add.i64 %r, %wide : i64
    vm.return %sum : i64
  }
}"""


# What %b refers to stays where it is, and is moved besides.
REPEATED = """vm.module @repeated {
  vm.export @total
  vm.func @total(%n: i32) -> i64 {
    %size = vm.const.i64 7
    %align = vm.const.i32 16
    %a = vm.buffer.alloc %size, %align : !vm.buffer
    %b = vm.buffer.alloc %size, %align : !vm.buffer
    vm.br ^end(%a, %b, %b : !vm.buffer, !vm.buffer, !vm.buffer)
  ^end(%x: !vm.buffer, %y: !vm.buffer, %z: !vm.buffer):
    %i = vm.buffer.length %x : !vm.buffer -> i64
    %j = vm.buffer.length %y : !vm.buffer -> i64
    %k = vm.buffer.length %z : !vm.buffer -> i64
    %ij = vm.add.i64 %i, %j : i64
    %sum = vm.add.i64 %ij, %k : i64
    vm.return %sum : i64
  }
}"""


def compiled(text: str) -> bytes:
    command = [compiler_binary(), "-", "-o", "-", "--compile-mode=vm"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def total(vmfb: bytes, number: int) -> int:
    instance = runtime.VmInstance()
    module = runtime.VmModule.copy_buffer(instance, vmfb)
    arguments, results = runtime.VmVariantList(1), runtime.VmVariantList(1)
    arguments.push_int(number)
    runtime.VmContext(instance, [module]).invoke(module.lookup_function("total"), arguments, results)
    return int(results.get_variant(0))


def test_a_counter_beside_a_wide_number_counts_on() -> None:
    vmfb = compiled(COUNTED)
    ordered = with_ordered_moves(vmfb)
    assert ordered != vmfb, "IREE orders its moves now: branch_moves.py can go"
    assert total(ordered, 4) == 5 + 0 + 1 + 2 + 3
    assert with_ordered_moves(ordered) is ordered
    with zipfile.ZipFile(io.BytesIO(ordered)) as archive:
        assert archive.testzip() is None


def test_exchanges_by_a_spare_register_stay_as_they_are() -> None:
    vmfb = compiled(EXCHANGED)
    assert any(len(pairs) > 4 for function in functions(vmfb) for _, pairs in function.moves)
    assert with_ordered_moves(vmfb) is vmfb
    assert total(vmfb, 0) == 10 + 10


def test_what_is_passed_twice_is_there_twice() -> None:
    assert total(with_ordered_moves(compiled(REPEATED)), 0) == 21


@pytest.mark.parametrize("seed", range(20))
def test_moves_in_order_end_where_all_at_once_would(seed: int) -> None:
    draw = random.Random(seed)
    targets = draw.sample(range(8), draw.randint(1, 8))
    moves = [(draw.randrange(8), target) for target in targets]
    # As IREE writes them: whatever is exchanged waits in a register that nothing else uses.
    numbers = [(source, 100 + k) for k, (source, _) in enumerate(moves)]
    numbers += [(100 + k, target) for k, (_, target) in enumerate(moves)]
    registers = dict(enumerate("abcdefgh"))
    expected = registers | {target: registers[source] for source, target in moves}
    made = _ordered(numbers, set(range(100, 108)))
    assert len(made) == len(numbers)
    for source, target in made:
        registers[target] = registers[source]
    assert {number: registers[number] for number in range(8)} == expected


def test_an_exchange_without_a_spare_register_is_refused() -> None:
    with pytest.raises(CompileError, match="no register"):
        _ordered([(1, 2), (2, 1)], set())


def test_a_damaged_function_is_refused_and_other_files_pass() -> None:
    assert with_ordered_moves(b"module {}") == b"module {}"
    vmfb = compiled(COUNTED)
    ((place, _), *_) = next(functions(vmfb)).moves
    damaged = bytearray(vmfb)
    damaged[place - 2] = 0xFF
    with pytest.raises(CompileError, match="what IREE's compiler made"):
        with_ordered_moves(bytes(damaged))
