// RUN: shardc-opt %s --split-input-file --shardc-form-gemms --shardc-form-relu-gradients | FileCheck %s

// After differentiation: the sums of the gradient's columns stay with
// the weight's GEMM, and the gradient of the relu goes with the activation's.

// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x384xf32>, %[[B:.*]]: tensor<384xf32>, %[[V:.*]]: tensor<384x512xf32>, %[[G:.*]]: tensor<256x512xf32>
// CHECK: %[[H:.*]], %[[MASK:.*]] = shardc.gemm %[[X]], %[[W]], %[[B]] relu
// CHECK: %[[DZ:.*]] = shardc.gemm %[[G]], %[[V]] where %[[MASK]] transpose_rhs
// CHECK-NOT: sums_result
// CHECK: %[[DW:.*]], %[[DB:.*]] = shardc.gemm %[[X]], %[[DZ]] transpose_lhs sums_rhs
// CHECK: return %[[H]], %[[DW]], %[[DB]]
func.func @layer(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %b: tensor<384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>) {
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %2 = shardc.broadcast %b dims = [1] : tensor<384xf32> -> tensor<256x384xf32>
  %z = shardc.add %1, %2 : tensor<256x384xf32>
  %h = shardc.max %z, %0 : tensor<256x384xf32>
  %dh = shardc.dot_general %g, %v contracting = [1] x [1] : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %3 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %3, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  %db = shardc.reduce sum %dz dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %dw = shardc.dot_general %x, %dz contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  return %h, %dw, %db : tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>
}

// -----

// Another op reads the operand of the relu: it is not in the epilogue, and so
// its gradient is not.

// CHECK-LABEL: func.func @second_user
// CHECK-NOT: {{ relu | where | mask }}
// CHECK: shardc.max
// CHECK: shardc.select
func.func @second_user(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %b: tensor<384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>, tensor<256x384xf32>) {
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %2 = shardc.broadcast %b dims = [1] : tensor<384xf32> -> tensor<256x384xf32>
  %z = shardc.add %1, %2 : tensor<256x384xf32>
  %h = shardc.max %z, %0 : tensor<256x384xf32>
  %a = shardc.abs %z : tensor<256x384xf32>
  %dh = shardc.dot_general %g, %v contracting = [1] x [1] : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %3 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %3, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  %db = shardc.reduce sum %dz dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %dw = shardc.dot_general %x, %dz contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  return %h, %dw, %db, %a : tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>, tensor<256x384xf32>
}

// -----

// In a loop over microbatches a mask is a value of one run.

// CHECK-LABEL: func.func @microbatches
// CHECK: ^bb0(%[[X:.*]]: tensor<128x512xf32>, %[[SUM:.*]]: tensor<512x512xf32>):
// CHECK: %[[H:.*]], %[[MASK:.*]] = shardc.gemm %[[X]], %{{.*}} relu : {{.*}} mask tensor<128x16xi32>
// CHECK: %[[DZ:.*]] = shardc.gemm %[[H]], %{{.*}} where %[[MASK]]
// CHECK: shardc.gemm %[[X]], %[[DZ]] plus %[[SUM]] transpose_lhs
func.func @microbatches(%x: tensor<256x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = shardc.accumulate 2 of (%x) : (tensor<256x512xf32>) -> tensor<512x512xf32> {
  ^bb0(%a: tensor<128x512xf32>, %s: tensor<512x512xf32>):
    %zero = shardc.constant dense<0.0> : tensor<128x512xf32>
    %z = shardc.dot_general %a, %w contracting = [1] x [0] : tensor<128x512xf32>, tensor<512x512xf32> -> tensor<128x512xf32>
    %h = shardc.max %z, %zero : tensor<128x512xf32>
    %dh = shardc.dot_general %h, %w contracting = [1] x [1] : tensor<128x512xf32>, tensor<512x512xf32> -> tensor<128x512xf32>
    %c = shardc.compare gt %h, %zero : tensor<128x512xf32> -> tensor<128x512xi1>
    %dz = shardc.select %c, %dh, %zero : tensor<128x512xi1>, tensor<128x512xf32>
    %dw = shardc.dot_general %a, %dz contracting = [0] x [0] : tensor<128x512xf32>, tensor<128x512xf32> -> tensor<512x512xf32>
    %1 = shardc.add %s, %dw : tensor<512x512xf32>
    shardc.yield %1 : tensor<512x512xf32>
  }
  return %0 : tensor<512x512xf32>
}
