// RUN: shardc-opt %s --shardc-expand-accumulations | FileCheck %s

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// The sum so far is an argument, added to where the summand is there.

// CHECK-LABEL: func.func @sums
// CHECK: shardc.accumulate 2 of(%{{.*}})
// CHECK: ^bb0(%[[X:.*]]: tensor<4x3xf32>, %[[ALL:.*]]: tensor<f32>, %[[COLUMNS:.*]]: tensor<3xf32>):
// CHECK: %[[R:.*]] = shardc.reduce sum %[[X]] dims = [0, 1]
// CHECK: %[[C:.*]] = shardc.reduce sum %[[X]] dims = [0]
// CHECK: %[[NEXT:.*]] = shardc.add %[[ALL]], %[[R]] {shardc.part = #shardc.part<backward>}
// CHECK: %[[NEXTS:.*]] = shardc.add %[[COLUMNS]], %[[C]]
// CHECK: shardc.yield %[[NEXT]], %[[NEXTS]]
func.func @sums(%x: tensor<8x3xf32>) -> (tensor<f32>, tensor<3xf32>) {
  %0:2 = shardc.accumulate 2 of (%x) {shardc.part = #shardc.part<backward>} : (tensor<8x3xf32>) -> (tensor<f32>, tensor<3xf32>) {
  ^bb0(%a: tensor<4x3xf32>):
    %1 = shardc.reduce sum %a dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
    %2 = shardc.reduce sum %a dims = [0] : tensor<4x3xf32> -> tensor<3xf32>
    shardc.yield %1, %2 : tensor<f32>, tensor<3xf32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<3xf32>
}

// Once is enough.

// CHECK-LABEL: func.func @expanded
// CHECK: ^bb0(%{{.*}}: tensor<4x3xf32>, %{{.*}}: tensor<f32>):
// CHECK-COUNT-1: shardc.add
// CHECK-NOT: shardc.add
func.func @expanded(%x: tensor<8x3xf32>) -> tensor<f32> {
  %0 = shardc.accumulate 2 of (%x) : (tensor<8x3xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<4x3xf32>, %s: tensor<f32>):
    %1 = shardc.reduce sum %a dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
    %2 = shardc.add %s, %1 : tensor<f32>
    shardc.yield %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// Rows at their places: repeated for each microbatch, and kept for the current one.

// CHECK-LABEL: func.func @rows
// CHECK: ^bb0(%[[X:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<12xf32>):
// CHECK: %[[ROW:.*]] = shardc.iota dim = 1 microbatch = [3, 4] {shardc.part = #shardc.part<forward>} : tensor<3x4xi32>
// CHECK: %[[FIRST:.*]] = shardc.iota dim = 1 {{.*}} : tensor<3x4xi32>
// CHECK: %[[START:.*]] = shardc.sub %[[ROW]], %[[FIRST]]
// CHECK: %[[NUMBER:.*]] = shardc.iota dim = 0
// CHECK: %[[FOUR:.*]] = shardc.constant {{.*}}dense<4> : tensor<3x4xi32>
// CHECK: %[[BEFORE:.*]] = shardc.mul %[[NUMBER]], %[[FOUR]]
// CHECK: %[[IS:.*]] = shardc.compare eq %[[START]], %[[BEFORE]]
// CHECK: %[[ALL:.*]] = shardc.broadcast %[[X]] dims = [1]
// CHECK: %[[KEPT:.*]] = shardc.select %[[IS]], %[[ALL]], %{{.*}}
// CHECK: %[[ROWS:.*]] = shardc.reshape %[[KEPT]] {shardc.part = #shardc.part<forward>} : tensor<3x4xf32> -> tensor<12xf32>
// CHECK: shardc.add %[[S]], %[[ROWS]]
// CHECK-NOT: shardc.scatter_rows
func.func @rows(%x: tensor<12xf32>) -> tensor<12xf32> {
  %0 = shardc.accumulate 3 of (%x) {shardc.part = #shardc.part<forward>} : (tensor<12xf32>) -> tensor<12xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = shardc.scatter_rows %a of 3 {shardc.part = #shardc.part<forward>} : tensor<4xf32> -> tensor<12xf32>
    shardc.yield %1 : tensor<12xf32>
  }
  return %0 : tensor<12xf32>
}
