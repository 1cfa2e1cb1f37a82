// RUN: shardc-opt %s --shardc-decompose-composites | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: shardc-opt %s --shardc-decompose-composites="all" | FileCheck %s --check-prefixes=CHECK,ALL

// The core stays as it is.
// CHECK-LABEL: func @core
// CHECK-NEXT: shardc.exp
// CHECK-NEXT: return
func.func @core(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = shardc.exp %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func @linear
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32>, %[[W:.*]]: tensor<8x3xf32>, %[[B:.*]]: tensor<3xf32>
// CHECK: %[[P:.*]] = shardc.dot_general %[[X]], %[[W]] contracting = [2] x [0] {shardc.part = #shardc.part<forward>}
// CHECK: %[[BB:.*]] = shardc.broadcast %[[B]] dims = [2]
// CHECK: shardc.add %[[P]], %[[BB]]
func.func @linear(%x: tensor<2x4x8xf32>, %w: tensor<8x3xf32>, %b: tensor<3xf32>) -> tensor<2x4x3xf32> {
  %0 = shardc.linear %x, %w, %b {shardc.part = #shardc.part<forward>}
      : tensor<2x4x8xf32>, tensor<8x3xf32>, tensor<3xf32> -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}

// Composites with a gradient of their own stay, unless all go.
// CHECK-LABEL: func @own
// OWN: shardc.relu
// OWN: %[[S:.*]] = shardc.sigmoid
// OWN: shardc.mul %{{.*}}, %[[S]]
// ALL: shardc.max
// ALL: shardc.neg
// ALL: shardc.exp
// ALL: shardc.add
// ALL: %[[S:.*]] = shardc.div
// ALL: shardc.mul %{{.*}}, %[[S]]
func.func @own(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = shardc.relu %x : tensor<4x8xf32>
  %1 = shardc.silu %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func @gelu
// CHECK: shardc.erf
// CHECK: shardc.tanh
func.func @gelu(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = shardc.gelu %x : tensor<4x8xf32>
  %1 = shardc.gelu tanh %x : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Statistics of bf16 are in f32, one number in each row; tensors with a value for each
// element are rounded.
// CHECK-LABEL: func @layer_norm_bf16
// CHECK-SAME: %[[X:.*]]: tensor<4x8xbf16>
// CHECK: %[[W:.*]] = shardc.convert %[[X]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: shardc.reduce sum %[[W]] dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK: %[[D:.*]] = shardc.sub %[[W]], %{{.*}} : tensor<4x8xf32>
// CHECK: %[[H:.*]] = shardc.convert %[[D]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[C:.*]] = shardc.convert %[[H]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: shardc.mul %[[C]], %[[C]] : tensor<4x8xf32>
// CHECK: shardc.rsqrt %{{.*}} : tensor<4xf32>
// CHECK: %[[N:.*]] = shardc.convert %{{.*}} : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: shardc.mul %[[N]], %{{.*}} : tensor<4x8xbf16>
// CHECK: shardc.add %{{.*}} : tensor<4x8xbf16>
func.func @layer_norm_bf16(%x: tensor<4x8xbf16>, %s: tensor<8xbf16>, %b: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %0 = shardc.layer_norm %x, %s, %b epsilon = 1.0e-6 : tensor<4x8xbf16>, tensor<8xbf16>
  return %0 : tensor<4x8xbf16>
}

// CHECK-LABEL: func @layer_norm
// CHECK: %[[SUM:.*]] = shardc.reduce sum %{{.*}} dims = [1]
// CHECK: shardc.div %[[SUM]]
// CHECK: %[[C:.*]] = shardc.sub
// CHECK: shardc.mul %[[C]], %[[C]]
// CHECK: shardc.rsqrt
func.func @layer_norm(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = shardc.layer_norm %x, %s, %b epsilon = 1.0e-6 : tensor<4x8xf32>, tensor<8xf32>
  return %0 : tensor<4x8xf32>
}

// A dropout without a step counter waits for one; at last it is the identity.
// CHECK-LABEL: func @dropout
// OWN: shardc.dropout
// ALL-NEXT: return
func.func @dropout(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = shardc.dropout %x rate = 0.5 stream = 0 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func @dropout_step
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[STEP:.*]]: tensor<i32>
// CHECK: %[[U:.*]] = shardc.random_uniform %[[STEP]] stream = 0
// CHECK: %[[KEEP:.*]] = shardc.compare ge %[[U]]
// CHECK: shardc.select %[[KEEP]]
func.func @dropout_step(%x: tensor<4x8xf32>,
    %step: tensor<i32> {shardc.role = #shardc.state<"step", constant(0.0)>}) -> tensor<4x8xf32> {
  %0 = shardc.dropout %x rate = 0.5 stream = 0 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
