// RUN: shardc-opt %s --split-input-file --shardc-simplify-collectives | FileCheck %s

shardc.mesh @mesh <["a" = 2, "b" = 2, "c" = 3]>

// Used whole, used twice, sliced over an axis that it is not reduced over:
// nothing to do.
// CHECK-LABEL: func.func @nothing
// CHECK-COUNT-3: shardc.all_reduce
// CHECK-NOT: shardc.reduce_scatter
func.func @nothing(%x: tensor<4xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>)
    -> (tensor<4xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = shardc.all_reduce sum %x over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shardc.all_reduce sum %y over @mesh["a"] : (tensor<8xf32>) -> tensor<8xf32>
  %2 = shardc.slice %1 over @mesh["a"] dim = 0 : tensor<8xf32> -> tensor<4xf32>
  %3 = shardc.all_reduce sum %z over @mesh["a"] : (tensor<8xf32>) -> tensor<8xf32>
  %4 = shardc.slice %3 over @mesh["b"] dim = 0 : tensor<8xf32> -> tensor<4xf32>
  return %0, %1, %2, %4 : tensor<4xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2, "c" = 3]>

// A reduction of a reduction is one over both axes.
// CHECK-LABEL: func.func @nested
// CHECK: shardc.all_reduce sum %{{.*}} over @mesh["a", "b"] {shardc.cause = "x; y"}
// CHECK-NOT: shardc.all_reduce
func.func @nested(%x: tensor<256xf32>) -> tensor<256xf32> {
  %0 = shardc.all_reduce sum %x over @mesh["b"] {shardc.cause = "x"} : (tensor<256xf32>) -> tensor<256xf32>
  %1 = shardc.all_reduce sum %0 over @mesh["a"] {shardc.cause = "y"} : (tensor<256xf32>) -> tensor<256xf32>
  return %1 : tensor<256xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2, "c" = 3]>

// Only its own shard is used: scattered, with the order of the slice's axes,
// and the reduction's cause. 7 over 6 devices is uneven.
// CHECK-LABEL: func.func @scattered
// CHECK-SAME: %[[X:[^ ]*]]: tensor<5x7xf32>
// CHECK-NEXT: %[[S:.*]] = shardc.reduce_scatter max %[[X]] over @mesh["c", "a"] dims = [1]
// CHECK-SAME: shardc.cause = "x", shardc.part = #shardc.part<backward>
// CHECK-SAME: (tensor<5x7xf32>) -> tensor<5x2xf32>
// CHECK-NEXT: return %[[S]]
func.func @scattered(%x: tensor<5x7xf32>) -> tensor<5x2xf32> {
  %0 = shardc.all_reduce max %x over @mesh["a", "c"] {shardc.cause = "x", shardc.part = #shardc.part<backward>} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %1 = shardc.slice %0 over @mesh["c", "a"] dim = 1 {shardc.part = #shardc.part<update>} : tensor<5x7xf32> -> tensor<5x2xf32>
  return %1 : tensor<5x2xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2, "c" = 3]>

// Two equal slices are one; the axes that no slice takes are reduced over on
// the shard, and a slice of the slice scatters that as well.
// CHECK-LABEL: func.func @rest
// CHECK-NEXT: %[[A:.*]] = shardc.reduce_scatter sum %{{.*}} over @mesh["a"] dims = [0]
// CHECK-NEXT: %[[B:.*]] = shardc.reduce_scatter sum %[[A]] over @mesh["b"] dims = [1]
// CHECK-NEXT: %[[C:.*]] = shardc.all_reduce sum %[[B]] over @mesh["c"]
// CHECK-SAME: (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return %[[C]], %[[C]]
func.func @rest(%x: tensor<8x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = shardc.all_reduce sum %x over @mesh["a", "b", "c"] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = shardc.slice %0 over @mesh["a"] dim = 0 : tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = shardc.slice %0 over @mesh["a"] dim = 0 : tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = shardc.slice %1 over @mesh["b"] dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %4 = shardc.slice %2 over @mesh["b"] dim = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  return %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

shardc.mesh @mesh <["a" = 2, "b" = 2, "c" = 3]>

// Equal but for their part of the step and their cause: one, with both causes. Another
// attribute, other axes or another operand keep them apart.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:[^ ]*]]: tensor<4xf32>, %[[Y:[^ ]*]]: tensor<4xf32>
// CHECK-NEXT: %[[G:.*]] = shardc.all_gather %[[X]] over @mesh["a"] dims = [0]
// CHECK-SAME: shardc.cause = "p; q", shardc.part = #shardc.part<forward>
// CHECK-NEXT: %[[H:.*]] = shardc.all_gather %[[X]] over @mesh["b"] dims = [0]
// CHECK-NEXT: %[[I:.*]] = shardc.all_gather %[[Y]] over @mesh["a"] dims = [0]
// CHECK-NEXT: %[[J:.*]] = shardc.all_gather %[[X]] over @mesh["a"] dims = [0] {again}
// CHECK-NEXT: return %[[G]], %[[G]], %[[H]], %[[I]], %[[J]]
func.func @shared(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = shardc.all_gather %x over @mesh["a"] dims = [0] {shardc.cause = "p", shardc.part = #shardc.part<forward>} : (tensor<4xf32>) -> tensor<8xf32>
  %1 = shardc.all_gather %x over @mesh["a"] dims = [0] {shardc.cause = "q", shardc.part = #shardc.part<backward>} : (tensor<4xf32>) -> tensor<8xf32>
  %2 = shardc.all_gather %x over @mesh["b"] dims = [0] : (tensor<4xf32>) -> tensor<8xf32>
  %3 = shardc.all_gather %y over @mesh["a"] dims = [0] : (tensor<4xf32>) -> tensor<8xf32>
  %4 = shardc.all_gather %x over @mesh["a"] dims = [0] {again} : (tensor<4xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

shardc.mesh @mesh <["a" = 2]>

// A weight that each pass gathers for itself stays two, one per pass.
// CHECK-LABEL: func.func @gathered_again
// CHECK: shardc.all_gather {{.*}}shardc.gathered_for = #shardc.part<forward>
// CHECK: shardc.all_gather {{.*}}shardc.gathered_for = #shardc.part<backward>
// CHECK-NOT: shardc.all_gather
func.func @gathered_again(%w: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = shardc.all_gather %w over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<forward>} : (tensor<4xf32>) -> tensor<8xf32>
  %1 = shardc.all_gather %w over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<backward>} : (tensor<4xf32>) -> tensor<8xf32>
  %2 = shardc.all_gather %w over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<backward>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
