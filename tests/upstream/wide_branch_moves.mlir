// The 64 bits of %sum overwrite the register of %next, which a later move of the branch reads.
// cause: The moves of a branch are ordered so that no one overwrites what a later one reads. 64-bit numbers take two
// cause: registers of 32 bits; the order compares the first of them only. With i58 -> i48, i59 -> i49, i49 -> i2, the
// cause: last move reads what the second has overwritten.
// target: vm
// fault: wrong
// function: total
// input: 4
// expected: i64=11
vm.module @counted {
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
}
