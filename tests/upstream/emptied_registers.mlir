// A block that reads one buffer under two names finds nothing under the first.
// cause: One of the two arguments has the register in which the buffer already is, and needs no move. The branch copies
// cause: the buffer to the other one's register with the flag MOVE, which empties the first. What a branch passes several
// cause: times must not be moved if it stays in one of its registers. iree-org/iree#24781 (open) does that.
// target: vm
// fault: run-error "buffer is null"
// function: total
// input: 4
// expected: i64=14
vm.module @repeated {
  vm.export @total
  vm.func @total(%n: i32) -> i64 {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %align = vm.const.i32 16
    %size = vm.const.i64 7
    %a = vm.buffer.alloc %size, %align : !vm.buffer
    vm.br ^loop(%zero, %a, %a : i32, !vm.buffer, !vm.buffer)
  ^loop(%i: i32, %x: !vm.buffer, %y: !vm.buffer):
    %next = vm.add.i32 %i, %one : i32
    %more = vm.cmp.lt.i32.s %next, %n : i32
    vm.cond_br %more, ^loop(%next, %x, %x : i32, !vm.buffer, !vm.buffer), ^end
  ^end:
    %j = vm.buffer.length %x : !vm.buffer -> i64
    %k = vm.buffer.length %y : !vm.buffer -> i64
    %sum = vm.add.i64 %j, %k : i64
    vm.return %sum : i64
  }
}
