// RUN: shardc-opt %s --split-input-file --shardc-fuse-kernels | FileCheck %s

// No compute: no kernel.

// CHECK-LABEL: func.func @nothing
// CHECK-NOT: shardc.kernel
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// A GEMM, its bias and its activation are one kernel.

// CHECK-LABEL: func.func @layer
// CHECK: %[[Y:.*]] = shardc.kernel
// CHECK: shardc.dot_general
// CHECK: shardc.add
// CHECK: shardc.tanh
// CHECK: shardc.yield
// CHECK-NOT: shardc.kernel
// CHECK: return %[[Y]]
func.func @layer(%x: tensor<8x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  %1 = shardc.broadcast %b dims = [1] : tensor<8xf32> -> tensor<8x8xf32>
  %2 = shardc.add %0, %1 : tensor<8x8xf32>
  %3 = shardc.tanh %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// A softmax over rows is one kernel: its stages share a row.

// CHECK-LABEL: func.func @softmax
// CHECK: shardc.kernel
// CHECK: shardc.reduce max
// CHECK: shardc.reduce sum
// CHECK-NOT: shardc.kernel
// CHECK: return
func.func @softmax(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = shardc.reduce max %x dims = [1] : tensor<8x16xf32> -> tensor<8xf32>
  %1 = shardc.broadcast %0 dims = [0] : tensor<8xf32> -> tensor<8x16xf32>
  %2 = shardc.sub %x, %1 : tensor<8x16xf32>
  %3 = shardc.exp %2 : tensor<8x16xf32>
  %4 = shardc.reduce sum %3 dims = [1] : tensor<8x16xf32> -> tensor<8xf32>
  %5 = shardc.broadcast %4 dims = [0] : tensor<8xf32> -> tensor<8x16xf32>
  %6 = shardc.div %3, %5 : tensor<8x16xf32>
  return %6 : tensor<8x16xf32>
}

// -----

// A collective stays outside and separates the ops before it from those after it.

// CHECK-LABEL: func.func @collective
// CHECK: %[[BEFORE:.*]] = shardc.kernel
// CHECK: %[[SUM:.*]] = shardc.all_reduce sum %[[BEFORE]]
// CHECK: shardc.kernel(%[[SUM]])
module {
  shardc.mesh @mesh <["d" = 2]>
  func.func @collective(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = shardc.exp %x : tensor<8xf32>
    %1 = shardc.all_reduce sum %0 over @mesh["d"] : (tensor<8xf32>) -> tensor<8xf32>
    %2 = shardc.log %1 : tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// A loop's body has kernels of its own; values that it reads from outside are stored
// there, and the addition joins the kernel of the summand.

// CHECK-LABEL: func.func @loop
// CHECK: %[[K:.*]] = shardc.kernel
// CHECK: shardc.constant dense<2.0{{.*}}> : tensor<f32>
// CHECK: %[[SUM:.*]] = shardc.accumulate
// CHECK: ^bb0(%[[A:.*]]: tensor<4x3xf32>, %[[S:.*]]: tensor<f32>):
// CHECK-NEXT: %[[NEXT:.*]] = shardc.kernel(%[[A]], %[[K]], %[[S]])
// CHECK: shardc.mul
// CHECK: shardc.reduce sum
// CHECK: shardc.add
// CHECK: shardc.yield
// CHECK: shardc.yield %[[NEXT]]
// CHECK: shardc.kernel(%[[SUM]])
// CHECK: shardc.neg
func.func @loop(%x: tensor<8x3xf32>) -> tensor<f32> {
  %c = shardc.constant dense<2.0> : tensor<f32>
  %0 = shardc.accumulate 2 of (%x) : (tensor<8x3xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<4x3xf32>, %s: tensor<f32>):
    %1 = shardc.broadcast %c dims = [] : tensor<f32> -> tensor<4x3xf32>
    %2 = shardc.mul %a, %1 : tensor<4x3xf32>
    %3 = shardc.reduce sum %2 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
    %4 = shardc.add %s, %3 : tensor<f32>
    shardc.yield %4 : tensor<f32>
  }
  %5 = shardc.neg %0 : tensor<f32>
  return %5 : tensor<f32>
}

// -----

// Values of bf16 are widened where they are read: stored values stay in bf16.
// Small parameters that the update rounds share a kernel.

// CHECK-LABEL: func.func @narrow
// CHECK-SAME: %[[X:.*]]: tensor<8x16xbf16>, %[[V:.*]]: tensor<16xf32>, %[[W:.*]]: tensor<4xf32>
// CHECK-DAG: %[[CASTS:.*]]:2 = shardc.kernel(%[[V]], %[[W]]) {{.*}}: (tensor<16xf32>, tensor<4xf32>) -> (tensor<16xbf16>, tensor<4xbf16>)
// CHECK-DAG: %[[ROWS:.*]]:2 = shardc.kernel(%[[X]]) : (tensor<8x16xbf16>) -> (tensor<8xf32>, tensor<8x16xbf16>)
// CHECK: shardc.kernel(%[[ROWS]]#1) : (tensor<8x16xbf16>) -> tensor<16xf32>
// CHECK: shardc.convert %{{.*}} : tensor<8x16xbf16> -> tensor<8x16xf32>
// CHECK: shardc.reduce sum
func.func @narrow(%x: tensor<8x16xbf16>, %v: tensor<16xf32>, %w: tensor<4xf32>) -> (tensor<16xbf16>, tensor<4xbf16>, tensor<8xf32>, tensor<16xf32>) {
  %0 = shardc.convert %v {shardc.part = #shardc.part<update>} : tensor<16xf32> -> tensor<16xbf16>
  %1 = shardc.convert %w {shardc.part = #shardc.part<update>} : tensor<4xf32> -> tensor<4xbf16>
  %2 = shardc.exp %x : tensor<8x16xbf16>
  %3 = shardc.convert %2 : tensor<8x16xbf16> -> tensor<8x16xf32>
  %4 = shardc.reduce max %3 dims = [1] : tensor<8x16xf32> -> tensor<8xf32>
  %5 = shardc.broadcast %4 dims = [0] : tensor<8xf32> -> tensor<8x16xf32>
  %6 = shardc.sub %3, %5 : tensor<8x16xf32>
  %7 = shardc.convert %6 : tensor<8x16xf32> -> tensor<8x16xbf16>
  %8 = shardc.convert %7 : tensor<8x16xbf16> -> tensor<8x16xf32>
  %9 = shardc.reduce sum %8 dims = [0] : tensor<8x16xf32> -> tensor<16xf32>
  return %0, %1, %4, %9 : tensor<16xbf16>, tensor<4xbf16>, tensor<8xf32>, tensor<16xf32>
}
