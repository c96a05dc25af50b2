// Where a branch passes on a value that its target reads besides, another branch to there overwrites the value.
// cause: %x gets the register of %a, as the second branch passes it and nothing of its own block reads it later. But %a
// cause: lives on in the target block: the first branch moves %b to that register, and %a * 10 is %b * 10 (88). For
// cause: references it is the same where no vm.discard.refs follows: a result of a conditional overwrites the allocation
// cause: of what is returned beside it ("attempted to access an address outside of the valid buffer range").
// target: vm
// fault: wrong
// function: total
// input: 1
// expected: i64=58
vm.module @joined {
  vm.export @total
  vm.func @total(%p: i32) -> i64 {
    %ten = vm.const.i64 10
    %three = vm.const.i64 3
    %four = vm.const.i64 4
    %wide = vm.ext.i32.i64.s %p : i32 -> i64
    %a = vm.add.i64 %wide, %four : i64
    vm.cond_br %p, ^one, ^two
  ^one:
    %b = vm.add.i64 %a, %three : i64
    vm.br ^both(%b : i64)
  ^two:
    vm.br ^both(%a : i64)
  ^both(%x: i64):
    %m = vm.mul.i64 %a, %ten : i64
    %sum = vm.add.i64 %m, %x : i64
    vm.return %sum : i64
  }
}
