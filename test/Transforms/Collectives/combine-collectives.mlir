// RUN: shardc-opt %s --split-input-file --shardc-combine-collectives | FileCheck %s
// RUN: shardc-opt %s --split-input-file --shardc-combine-collectives=bucket-bytes=32 | FileCheck %s --check-prefix=BUCKET
// RUN: not shardc-opt %s --split-input-file --shardc-combine-collectives=bucket-bytes=-5 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// NEGATIVE: error: bucket-bytes: expected 0 (no limit) or more, found -5{{$}}

shardc.mesh @mesh <["a" = 2, "b" = 2]>

// One needs the other: they stay two.
// CHECK-LABEL: func.func @dependent
// CHECK: shardc.all_reduce
// CHECK: shardc.exp
// CHECK: shardc.all_reduce
func.func @dependent(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shardc.all_reduce sum %x over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shardc.exp %0 : tensor<4xf32>
  %2 = shardc.all_reduce sum %1 over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2]>

// Independent ones become one, after the last operand; users move below.
// CHECK-LABEL: func.func @independent
// CHECK-SAME: %[[X:[^ ]*]]: tensor<4xf32>, %[[Y:[^ ]*]]: tensor<8xf32>
// CHECK: %[[E:.*]] = shardc.exp %[[Y]]
// CHECK: %[[R:.*]]:2 = shardc.all_reduce sum %[[X]], %[[E]] over @mesh["a"]
// CHECK-SAME: shardc.cause = "x; y", shardc.part = #shardc.part<backward>
// CHECK: shardc.tanh %[[R]]#0
// CHECK: return %{{.*}}, %[[R]]#1
// BUCKET-LABEL: func.func @independent
// BUCKET: all_reduce sum %{{[^,]*}} over
// BUCKET: all_reduce sum %{{[^,]*}} over
func.func @independent(%x: tensor<4xf32>, %y: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = shardc.all_reduce sum %x over @mesh["a"] {shardc.cause = "x", shardc.part = #shardc.part<forward>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shardc.tanh %0 : tensor<4xf32>
  %2 = shardc.exp %y : tensor<8xf32>
  %3 = shardc.all_reduce sum %2 over @mesh["a"] {shardc.cause = "y", shardc.part = #shardc.part<backward>} : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<4xf32>, tensor<8xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2]>

// Other axes, another reduction, another kind: nothing in common.
// CHECK-LABEL: func.func @different
// CHECK-COUNT-2: shardc.all_reduce
// CHECK: shardc.reduce_scatter
func.func @different(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
  %0 = shardc.all_reduce sum %x over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shardc.all_reduce max %y over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %2 = shardc.reduce_scatter sum %y over @mesh["a"] dims = [0] : (tensor<4xf32>) -> tensor<2xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2]>

// Two pairs that need each other crosswise: one pair merges, the other cannot.
// CHECK-LABEL: func.func @crosswise
// CHECK-COUNT-3: over @mesh
// CHECK-NOT: over @mesh
func.func @crosswise(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = shardc.all_reduce sum %x over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shardc.all_reduce sum %y over @mesh["b"] : (tensor<4xf32>) -> tensor<4xf32>
  %2 = shardc.exp %0 : tensor<4xf32>
  %3 = shardc.exp %1 : tensor<4xf32>
  %4 = shardc.all_reduce sum %2 over @mesh["b"] : (tensor<4xf32>) -> tensor<4xf32>
  %5 = shardc.all_reduce sum %3 over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %5 : tensor<4xf32>, tensor<4xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2]>

// Gathers keep the dimension of each tensor.
// CHECK-LABEL: func.func @gathers
// CHECK: shardc.all_gather %{{.*}}, %{{.*}} over @mesh["a"] dims = [0, 1]
func.func @gathers(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>) -> (tensor<8x2xf32>, tensor<4x4xf32>) {
  %0 = shardc.all_gather %x over @mesh["a"] dims = [0] : (tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = shardc.all_gather %y over @mesh["a"] dims = [1] : (tensor<4x2xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<8x2xf32>, tensor<4x4xf32>
}

// -----

shardc.mesh @mesh <["a" = 2]>

// Weights held for one pass: on average 21 elements. The larger ones and their
// gradients stay alone, small ones are put together, each pass by itself.
// CHECK-LABEL: func.func @held_briefly
// CHECK-SAME: %[[W:[^ ]*]]: tensor<32xf32>, %[[V:[^ ]*]]: tensor<32xf32>, %[[B:[^ ]*]]: tensor<1xf32>, %[[C:[^ ]*]]: tensor<1xf32>
// CHECK: shardc.all_gather %[[W]] over
// CHECK: shardc.all_gather %[[B]], %[[C]] over
// CHECK: shardc.all_gather %[[V]] over
// CHECK: shardc.all_gather %[[V]] over
// CHECK: shardc.reduce_scatter sum %{{[^,]*}} over {{.*}} (tensor<64xf32>)
// CHECK: shardc.reduce_scatter sum %{{.*}}, %{{.*}} over {{.*}} (tensor<2xf32>, tensor<2xf32>)
// CHECK: shardc.reduce_scatter sum %{{[^,]*}} over {{.*}} (tensor<64xf32>)
func.func @held_briefly(%w: tensor<32xf32>, %v: tensor<32xf32>, %b: tensor<1xf32>, %c: tensor<1xf32>)
    -> (tensor<32xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) {
  %w1 = shardc.all_gather %w over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<forward>} : (tensor<32xf32>) -> tensor<64xf32>
  %b1 = shardc.all_gather %b over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<forward>} : (tensor<1xf32>) -> tensor<2xf32>
  %v1 = shardc.all_gather %v over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<forward>} : (tensor<32xf32>) -> tensor<64xf32>
  %c1 = shardc.all_gather %c over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<forward>} : (tensor<1xf32>) -> tensor<2xf32>
  %0 = shardc.mul %w1, %v1 : tensor<64xf32>
  %1 = shardc.mul %b1, %c1 : tensor<2xf32>
  %2 = shardc.exp %0 : tensor<64xf32>
  %v2 = shardc.all_gather %v over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<backward>} : (tensor<32xf32>) -> tensor<64xf32>
  %3 = shardc.mul %v2, %2 : tensor<64xf32>
  %dv = shardc.reduce_scatter sum %2 over @mesh["a"] dims = [0] : (tensor<64xf32>) -> tensor<32xf32>
  %db = shardc.reduce_scatter sum %1 over @mesh["a"] dims = [0] : (tensor<2xf32>) -> tensor<1xf32>
  %4 = shardc.exp %1 : tensor<2xf32>
  %dc = shardc.reduce_scatter sum %4 over @mesh["a"] dims = [0] : (tensor<2xf32>) -> tensor<1xf32>
  %dw = shardc.reduce_scatter sum %3 over @mesh["a"] dims = [0] : (tensor<64xf32>) -> tensor<32xf32>
  return %dw, %dv, %db, %dc : tensor<32xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// In the microbatches of a pipeline one sum is needed by another stage, and the other makes the
// gradient of a weight: these are two tasks, and two collectives.

// CHECK-LABEL: module @parts
// CHECK: shardc.accumulate
// CHECK: shardc.all_reduce sum %{{[^,]*}} over
// CHECK: shardc.all_reduce sum %{{[^,]*}} over
module @parts attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "zero-bubble">} {
  shardc.mesh @mesh <["stage" = 2, "model" = 2]>
  func.func @train_step(%x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %0:2 = shardc.accumulate 2 of (%x) {shardc.part = #shardc.part<backward>} : (tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    ^bb0(%a: tensor<4x4xf32>):
      %d = shardc.exp %a {shardc.part = #shardc.part<backward>, shardc.stage = 1 : i64} : tensor<4x4xf32>
      %i = shardc.all_reduce sum %a over @mesh["model"] {shardc.part = #shardc.part<backward>, shardc.stage = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %w = shardc.all_reduce sum %d over @mesh["model"] {shardc.part = #shardc.part<backward>, shardc.stage = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %t = shardc.transfer %i from 1 to 0 {shardc.part = #shardc.part<backward>} : tensor<4x4xf32>
      %u = shardc.neg %t {shardc.part = #shardc.part<backward>, shardc.stage = 0 : i64} : tensor<4x4xf32>
      shardc.yield %u, %w : tensor<4x4xf32>, tensor<4x4xf32>
    }
    return %0#0, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
