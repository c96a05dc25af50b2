// RUN: hloforge opt %s --pass='legalize-long-chains{longest=64}' | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = "linalg.generic"(%arg0, %arg1,
// CHECK: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-COUNT-61: arith.{{addf|mulf}}
// CHECK-NEXT: [[LAST:%.+]] = arith.mulf
// CHECK-NEXT: "linalg.yield"([[LAST]])
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[A]]
// CHECK-NEXT: [[C:%.+]] = stablehlo.add [[B]], %arg1
// CHECK-NEXT: stablehlo.multiply [[C]], %arg1
func.func @main(%0: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  %2 = stablehlo.multiply %1, %x : tensor<4xf32>
  %3 = stablehlo.add %2, %x : tensor<4xf32>
  %4 = stablehlo.multiply %3, %x : tensor<4xf32>
  %5 = stablehlo.add %4, %x : tensor<4xf32>
  %6 = stablehlo.multiply %5, %x : tensor<4xf32>
  %7 = stablehlo.add %6, %x : tensor<4xf32>
  %8 = stablehlo.multiply %7, %x : tensor<4xf32>
  %9 = stablehlo.add %8, %x : tensor<4xf32>
  %10 = stablehlo.multiply %9, %x : tensor<4xf32>
  %11 = stablehlo.add %10, %x : tensor<4xf32>
  %12 = stablehlo.multiply %11, %x : tensor<4xf32>
  %13 = stablehlo.add %12, %x : tensor<4xf32>
  %14 = stablehlo.multiply %13, %x : tensor<4xf32>
  %15 = stablehlo.add %14, %x : tensor<4xf32>
  %16 = stablehlo.multiply %15, %x : tensor<4xf32>
  %17 = stablehlo.add %16, %x : tensor<4xf32>
  %18 = stablehlo.multiply %17, %x : tensor<4xf32>
  %19 = stablehlo.add %18, %x : tensor<4xf32>
  %20 = stablehlo.multiply %19, %x : tensor<4xf32>
  %21 = stablehlo.add %20, %x : tensor<4xf32>
  %22 = stablehlo.multiply %21, %x : tensor<4xf32>
  %23 = stablehlo.add %22, %x : tensor<4xf32>
  %24 = stablehlo.multiply %23, %x : tensor<4xf32>
  %25 = stablehlo.add %24, %x : tensor<4xf32>
  %26 = stablehlo.multiply %25, %x : tensor<4xf32>
  %27 = stablehlo.add %26, %x : tensor<4xf32>
  %28 = stablehlo.multiply %27, %x : tensor<4xf32>
  %29 = stablehlo.add %28, %x : tensor<4xf32>
  %30 = stablehlo.multiply %29, %x : tensor<4xf32>
  %31 = stablehlo.add %30, %x : tensor<4xf32>
  %32 = stablehlo.multiply %31, %x : tensor<4xf32>
  %33 = stablehlo.add %32, %x : tensor<4xf32>
  %34 = stablehlo.multiply %33, %x : tensor<4xf32>
  %35 = stablehlo.add %34, %x : tensor<4xf32>
  %36 = stablehlo.multiply %35, %x : tensor<4xf32>
  %37 = stablehlo.add %36, %x : tensor<4xf32>
  %38 = stablehlo.multiply %37, %x : tensor<4xf32>
  %39 = stablehlo.add %38, %x : tensor<4xf32>
  %40 = stablehlo.multiply %39, %x : tensor<4xf32>
  %41 = stablehlo.add %40, %x : tensor<4xf32>
  %42 = stablehlo.multiply %41, %x : tensor<4xf32>
  %43 = stablehlo.add %42, %x : tensor<4xf32>
  %44 = stablehlo.multiply %43, %x : tensor<4xf32>
  %45 = stablehlo.add %44, %x : tensor<4xf32>
  %46 = stablehlo.multiply %45, %x : tensor<4xf32>
  %47 = stablehlo.add %46, %x : tensor<4xf32>
  %48 = stablehlo.multiply %47, %x : tensor<4xf32>
  %49 = stablehlo.add %48, %x : tensor<4xf32>
  %50 = stablehlo.multiply %49, %x : tensor<4xf32>
  %51 = stablehlo.add %50, %x : tensor<4xf32>
  %52 = stablehlo.multiply %51, %x : tensor<4xf32>
  %53 = stablehlo.add %52, %x : tensor<4xf32>
  %54 = stablehlo.multiply %53, %x : tensor<4xf32>
  %55 = stablehlo.add %54, %x : tensor<4xf32>
  %56 = stablehlo.multiply %55, %x : tensor<4xf32>
  %57 = stablehlo.add %56, %x : tensor<4xf32>
  %58 = stablehlo.multiply %57, %x : tensor<4xf32>
  %59 = stablehlo.add %58, %x : tensor<4xf32>
  %60 = stablehlo.multiply %59, %x : tensor<4xf32>
  %61 = stablehlo.add %60, %x : tensor<4xf32>
  %62 = stablehlo.multiply %61, %x : tensor<4xf32>
  %63 = stablehlo.add %62, %x : tensor<4xf32>
  %64 = stablehlo.multiply %63, %x : tensor<4xf32>
  %65 = stablehlo.add %64, %x : tensor<4xf32>
  %66 = stablehlo.multiply %65, %x : tensor<4xf32>
  return %66 : tensor<4xf32>
}
