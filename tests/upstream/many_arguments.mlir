// A dispatch binds more arrays than the runtime takes, which only the runtime says.
// cause: Fusion of elementwise operations does not count the bindings of the dispatch that it makes. The runtime
// cause: allows 32 of them, and refuses the executable when the module is loaded. Known as a side note of iree-
// cause: org/iree#5191 (36 bindings) since 2021.
// fault: run-error "binding count"
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// input: 4xf32=1
// expected: 4xf32=40
func.func @main(%x0: tensor<4xf32>, %x1: tensor<4xf32>, %x2: tensor<4xf32>, %x3: tensor<4xf32>, %x4: tensor<4xf32>, %x5:
    tensor<4xf32>, %x6: tensor<4xf32>, %x7: tensor<4xf32>, %x8: tensor<4xf32>, %x9: tensor<4xf32>, %x10:
    tensor<4xf32>, %x11: tensor<4xf32>, %x12: tensor<4xf32>, %x13: tensor<4xf32>, %x14: tensor<4xf32>, %x15:
    tensor<4xf32>, %x16: tensor<4xf32>, %x17: tensor<4xf32>, %x18: tensor<4xf32>, %x19: tensor<4xf32>, %x20:
    tensor<4xf32>, %x21: tensor<4xf32>, %x22: tensor<4xf32>, %x23: tensor<4xf32>, %x24: tensor<4xf32>, %x25:
    tensor<4xf32>, %x26: tensor<4xf32>, %x27: tensor<4xf32>, %x28: tensor<4xf32>, %x29: tensor<4xf32>, %x30:
    tensor<4xf32>, %x31: tensor<4xf32>, %x32: tensor<4xf32>, %x33: tensor<4xf32>, %x34: tensor<4xf32>, %x35:
    tensor<4xf32>, %x36: tensor<4xf32>, %x37: tensor<4xf32>, %x38: tensor<4xf32>, %x39: tensor<4xf32>) -> tensor<4xf32> {
  %s1 = stablehlo.add %x0, %x1 : tensor<4xf32>
  %s2 = stablehlo.add %s1, %x2 : tensor<4xf32>
  %s3 = stablehlo.add %s2, %x3 : tensor<4xf32>
  %s4 = stablehlo.add %s3, %x4 : tensor<4xf32>
  %s5 = stablehlo.add %s4, %x5 : tensor<4xf32>
  %s6 = stablehlo.add %s5, %x6 : tensor<4xf32>
  %s7 = stablehlo.add %s6, %x7 : tensor<4xf32>
  %s8 = stablehlo.add %s7, %x8 : tensor<4xf32>
  %s9 = stablehlo.add %s8, %x9 : tensor<4xf32>
  %s10 = stablehlo.add %s9, %x10 : tensor<4xf32>
  %s11 = stablehlo.add %s10, %x11 : tensor<4xf32>
  %s12 = stablehlo.add %s11, %x12 : tensor<4xf32>
  %s13 = stablehlo.add %s12, %x13 : tensor<4xf32>
  %s14 = stablehlo.add %s13, %x14 : tensor<4xf32>
  %s15 = stablehlo.add %s14, %x15 : tensor<4xf32>
  %s16 = stablehlo.add %s15, %x16 : tensor<4xf32>
  %s17 = stablehlo.add %s16, %x17 : tensor<4xf32>
  %s18 = stablehlo.add %s17, %x18 : tensor<4xf32>
  %s19 = stablehlo.add %s18, %x19 : tensor<4xf32>
  %s20 = stablehlo.add %s19, %x20 : tensor<4xf32>
  %s21 = stablehlo.add %s20, %x21 : tensor<4xf32>
  %s22 = stablehlo.add %s21, %x22 : tensor<4xf32>
  %s23 = stablehlo.add %s22, %x23 : tensor<4xf32>
  %s24 = stablehlo.add %s23, %x24 : tensor<4xf32>
  %s25 = stablehlo.add %s24, %x25 : tensor<4xf32>
  %s26 = stablehlo.add %s25, %x26 : tensor<4xf32>
  %s27 = stablehlo.add %s26, %x27 : tensor<4xf32>
  %s28 = stablehlo.add %s27, %x28 : tensor<4xf32>
  %s29 = stablehlo.add %s28, %x29 : tensor<4xf32>
  %s30 = stablehlo.add %s29, %x30 : tensor<4xf32>
  %s31 = stablehlo.add %s30, %x31 : tensor<4xf32>
  %s32 = stablehlo.add %s31, %x32 : tensor<4xf32>
  %s33 = stablehlo.add %s32, %x33 : tensor<4xf32>
  %s34 = stablehlo.add %s33, %x34 : tensor<4xf32>
  %s35 = stablehlo.add %s34, %x35 : tensor<4xf32>
  %s36 = stablehlo.add %s35, %x36 : tensor<4xf32>
  %s37 = stablehlo.add %s36, %x37 : tensor<4xf32>
  %s38 = stablehlo.add %s37, %x38 : tensor<4xf32>
  %s39 = stablehlo.add %s38, %x39 : tensor<4xf32>
  return %s39 : tensor<4xf32>
}
