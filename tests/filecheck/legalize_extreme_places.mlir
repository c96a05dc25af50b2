// RUN: hloforge opt %s --pass=legalize-extreme-places | filecheck %s

// The first of the largest numbers.
// CHECK-LABEL: func.func @main
// CHECK: %[[MOST:.+]] = stablehlo.reduce(%arg0 init: %{{.+}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: %[[ALL:.+]] = stablehlo.broadcast_in_dim %[[MOST]], dims = [0]
// CHECK: %[[SAME:.+]] = stablehlo.compare EQ, %arg0, %[[ALL]]
// CHECK-NOT: hloforge.of_extreme
// CHECK: %[[NAN:.+]] = stablehlo.compare NE, %arg0, %arg0
// CHECK: %[[FOUND:.+]] = stablehlo.or %[[SAME]], %[[NAN]]
// CHECK: %[[PLACES:.+]] = stablehlo.select %[[FOUND]], %{{.+}}, %{{.+}} : tensor<32x9xi1>, tensor<32x9xi32>
// CHECK: stablehlo.reduce(%[[PLACES]] init: %{{.+}}) applies stablehlo.minimum across dimensions = [1]
// CHECK: return
func.func @main(%x: tensor<32x9xf32>) -> tensor<32xi32> {
  %i = stablehlo.iota dim = 1 : tensor<32x9xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1]
    : (tensor<32x9xf32>, tensor<32x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<32xf32>, tensor<32xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %larger = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %mine = stablehlo.or %larger, %nan : tensor<i1>
      %equal = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %before = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %first = stablehlo.and %equal, %before : tensor<i1>
      %kept = stablehlo.or %mine, %first : tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %kept, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<32xi32>
}

// The last of the smallest integers, of 64-bit places.
// CHECK-LABEL: func.func @last
// CHECK: %[[LEAST:.+]] = stablehlo.reduce(%arg0 init: %{{.+}}) applies stablehlo.minimum across dimensions = [0]
// CHECK: stablehlo.compare EQ
// CHECK-NOT: stablehlo.compare NE
// CHECK: %[[LAST:.+]] = stablehlo.reduce(%{{.+}} init: %{{.+}}) applies stablehlo.maximum across dimensions = [0]
// CHECK: stablehlo.convert %[[LAST]] : (tensor<9xi32>) -> tensor<9xi64>
func.func @last(%x: tensor<32x9xi32>) -> tensor<9xi64> {
  %i = stablehlo.iota dim = 0 : tensor<32x9xi64>
  %most = stablehlo.constant dense<2147483647> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r:2 = stablehlo.reduce(%i init: %zero), (%x init: %most) across dimensions = [0]
    : (tensor<32x9xi64>, tensor<32x9xi32>, tensor<i64>, tensor<i32>) -> (tensor<9xi64>, tensor<9xi32>)
    reducer(%p: tensor<i64>, %q: tensor<i64>) (%a: tensor<i32>, %b: tensor<i32>) {
      %mine = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<i32>
      %w = stablehlo.select %mine, %p, %q : tensor<i1>, tensor<i64>
      stablehlo.return %w, %v : tensor<i64>, tensor<i32>
    }
  return %r#0 : tensor<9xi64>
}

// The extreme is read as well: of equal zeros the region keeps the last one's sign.
// CHECK-LABEL: func.func @both
// CHECK: stablehlo.reduce({{.*}}), ({{.*}}) across dimensions = [1]
func.func @both(%x: tensor<32x9xf32>) -> (tensor<32xf32>, tensor<32xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<32x9xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1]
    : (tensor<32x9xf32>, tensor<32x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<32xf32>, tensor<32xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %larger = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %mine = stablehlo.or %larger, %nan : tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %mine, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<32xf32>, tensor<32xi32>
}

// NaN is no number's neighbour in this region, so that the order of the elements decides.
// CHECK-LABEL: func.func @ordered
// CHECK: stablehlo.reduce({{.*}}), ({{.*}}) across dimensions = [1]
func.func @ordered(%x: tensor<32x9xf32>) -> tensor<32xi32> {
  %i = stablehlo.iota dim = 1 : tensor<32x9xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1]
    : (tensor<32x9xf32>, tensor<32x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<32xf32>, tensor<32xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %mine = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %mine, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<32xi32>
}

// A sum of products may be contracted to one rounding in one loop and not in another: it is in memory.
// CHECK-LABEL: func.func @contracted
// CHECK: stablehlo.compare EQ, {{.*}} {hloforge.of_extreme}
// CHECK: return
func.func @contracted(%x: tensor<32x9xf32>, %y: tensor<32x9xf32>) -> tensor<32xi32> {
  %t = stablehlo.multiply %x, %y : tensor<32x9xf32>
  %s = stablehlo.add %t, %x : tensor<32x9xf32>
  %i = stablehlo.iota dim = 1 : tensor<32x9xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%s init: %least), (%i init: %zero) across dimensions = [1]
    : (tensor<32x9xf32>, tensor<32x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<32xf32>, tensor<32xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %larger = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %mine = stablehlo.or %larger, %nan : tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %mine, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<32xi32>
}

// Each number with each other one, exact: it is computed twice.
// CHECK-LABEL: func.func @differences
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum
// CHECK-NOT: hloforge.of_extreme
// CHECK: return
func.func @differences(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xi32> {
  %m = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %n = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %s = stablehlo.subtract %m, %n : tensor<1024x1024xf32>
  %i = stablehlo.iota dim = 1 : tensor<1024x1024xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%s init: %least), (%i init: %zero) across dimensions = [1]
    : (tensor<1024x1024xf32>, tensor<1024x1024xi32>, tensor<f32>, tensor<i32>) -> (tensor<1024xf32>, tensor<1024xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %larger = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %mine = stablehlo.or %larger, %nan : tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %mine, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<1024xi32>
}

// The same of a function: memory for all would be large.
// CHECK-LABEL: func.func @expanded
// CHECK: stablehlo.reduce({{.*}}), ({{.*}}) across dimensions = [1]
// CHECK: return
func.func @expanded(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xi32> {
  %m = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %n = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %t = stablehlo.subtract %m, %n : tensor<1024x1024xf32>
  %s = stablehlo.sine %t : tensor<1024x1024xf32>
  %i = stablehlo.iota dim = 1 : tensor<1024x1024xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%s init: %least), (%i init: %zero) across dimensions = [1]
    : (tensor<1024x1024xf32>, tensor<1024x1024xi32>, tensor<f32>, tensor<i32>) -> (tensor<1024xf32>, tensor<1024xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %larger = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %mine = stablehlo.or %larger, %nan : tensor<i1>
      %v = stablehlo.select %mine, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %mine, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<1024xi32>
}
