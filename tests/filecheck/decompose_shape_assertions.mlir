// RUN: hloforge opt %s --pass=decompose-shape-assertions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[SIZE:%.+]] = stablehlo.get_dimension_size %arg0, dim = 0
// CHECK: [[B:%.+]] = tensor.extract [[SIZE]][] : tensor<i32>
// CHECK: [[ONE:%.+]] = tensor.extract {{%.+}}[] : tensor<i32>
// CHECK: [[OK:%.+]] = arith.cmpi sge, [[B]], [[ONE]] : i32
// CHECK: cf.assert [[OK]], "shape assertion: b is {dimension 0 of x}, which is less than 1"
module attributes {hloforge.parameter_names = ["x"], hloforge.parameter_shapes = ["f32[?]"],
    hloforge.result_shape = "f32[?]", hloforge.input_output_alias = []} {
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %fits = stablehlo.compare GE, %b, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%fits, %b) {error_message = "b is {0}, which is less than 1",
      has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    return %x : tensor<?xf32>
  }
}
