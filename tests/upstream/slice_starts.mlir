// A negative start of 8 bits is taken for a large one.
// cause: The start is loaded on the host by hal.buffer.load, as i8. In the VM this is a load of one byte into an i32
// cause: without its sign, and vm.ext.i32.i64.s then finds a positive number: -1 is 255. arith.index_cast of an i8
// cause: that was loaded so has to extend from 8 bits. Starts of 32 and 64 bits are right.
// fault: wrong
// input: 10xf32=0 1 2 3 4 5 6 7 8 9
// input: i8=-1
// expected: 3xf32=0 1 2
func.func @main(%x: tensor<10xf32>, %i: tensor<i8>) -> tensor<3xf32> {
  %r = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<10xf32>, tensor<i8>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
