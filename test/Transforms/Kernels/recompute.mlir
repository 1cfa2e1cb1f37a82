// RUN: shardc-opt %s --split-input-file --shardc-recompute | FileCheck %s

// What a layer hands on is kept: the values behind the GEMMs, from which little is left
// to compute. The exponential of the first is repeated, in front of its first user.

// CHECK-LABEL: func.func @layers
// CHECK: %[[H0:.*]] = shardc.dot_general %{{.*}}, %{{.*}} {{.*}}forward
// CHECK: %[[T0:.*]] = shardc.exp %[[H0]] {{.*}}forward
// CHECK: %[[H1:.*]] = shardc.dot_general %[[T0]], {{.*}}forward
// CHECK: %[[T1:.*]] = shardc.exp %[[H1]] {{.*}}forward
// CHECK: %[[Z:.*]] = shardc.dot_general %[[T1]], {{.*}}forward
// The last layer is kept: its values are needed at once.
// CHECK: shardc.dot_general %[[T1]], %{{.*}} {{.*}}backward
// CHECK: shardc.mul %{{.*}}, %[[H1]] {{.*}}backward
// CHECK: %[[AGAIN:.*]] = shardc.exp %[[H0]] {shardc.part = #shardc.part<backward>, shardc.recomputed}
// CHECK: shardc.dot_general %[[AGAIN]], %{{.*}} {{.*}}backward
// CHECK: shardc.mul %{{.*}}, %[[H0]] {{.*}}backward
module attributes {shardc.recompute = "layer"} {
  shardc.mesh @mesh <["data" = 1]>
  func.func @layers(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
                    %u: tensor<4x4xf32>, %v: tensor<4x4xf32>, %w: tensor<4x4xf32>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
    %h0 = shardc.dot_general %x, %u contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %t0 = shardc.exp %h0 {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>
    %h1 = shardc.dot_general %t0, %v contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %t1 = shardc.exp %h1 {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>
    %z = shardc.dot_general %t1, %w contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %dw = shardc.dot_general %t1, %z contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    %dt1 = shardc.dot_general %z, %w contracting = [1] x [1] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %dh1 = shardc.mul %dt1, %h1 {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>
    %dv = shardc.dot_general %t0, %dh1 contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    %dt0 = shardc.dot_general %dh1, %v contracting = [1] x [1] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %dh0 = shardc.mul %dt0, %h0 {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>
    %du = shardc.dot_general %x, %dh0 contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    return %du, %dv, %dw : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// A residual block is one layer: its input is kept, and the GEMM in it is repeated.

// CHECK-LABEL: func.func @residual
// CHECK: %[[H:.*]] = shardc.dot_general %{{.*}} {{.*}}forward
// CHECK: %[[A:.*]] = shardc.dot_general %[[H]], {{.*}}forward
// CHECK: %[[SUM:.*]] = shardc.add {{.*}}forward
// CHECK: shardc.dot_general %[[SUM]], {{.*}}backward
// CHECK: %[[A2:.*]] = shardc.dot_general %[[H]], %{{.*}} {{.*}}backward>, shardc.recomputed}
// CHECK: %[[T2:.*]] = shardc.exp %[[A2]] {{.*}}shardc.recomputed}
// CHECK: shardc.dot_general %[[T2]], %{{.*}} {shardc.part = #shardc.part<backward>}
module attributes {shardc.recompute = "layer"} {
  shardc.mesh @mesh <["data" = 1]>
  func.func @residual(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
                      %t: tensor<4x4xf32>, %u: tensor<4x4xf32>, %v: tensor<4x4xf32>, %w: tensor<4x4xf32>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %h = shardc.dot_general %x, %t contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %a = shardc.dot_general %h, %u contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %e = shardc.exp %a {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>
    %b = shardc.dot_general %e, %v contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %sum = shardc.add %h, %b {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>
    %z = shardc.dot_general %sum, %w contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %dw = shardc.dot_general %sum, %z contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    %db = shardc.dot_general %z, %w contracting = [1] x [1] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %dv = shardc.dot_general %e, %db contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    return %dv, %dw : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// Without a policy nothing is repeated.

// CHECK-LABEL: func.func @none
// CHECK-NOT: shardc.recomputed
func.func @none(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">}, %u: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %h0 = shardc.dot_general %x, %u contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  %t0 = shardc.exp %h0 {shardc.part = #shardc.part<forward>} : tensor<8x4xf32>
  %d = shardc.mul %t0, %t0 {shardc.part = #shardc.part<backward>} : tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}
