// Mixed precision: each parameter and input is converted once, where it is first
// used, all but the loss works on bf16.
// RUN: shardc-opt %s --split-input-file --shardc-import=dtype=bf16 | FileCheck %s

// Nothing to do.
// RUN: shardc-opt %s --split-input-file --shardc-import > %t.kept
// RUN: shardc-opt %s --split-input-file --shardc-import=dtype=f32 | cmp - %t.kept

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  // CHECK-LABEL: func @loss
  // CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32>
  // CHECK-SAME: %[[Y:[^:]*]]: tensor<8xi32>
  // CHECK-SAME: %[[W:[^:]*]]: tensor<4x4xf32>
  // CHECK-SAME: %[[B:[^:]*]]: tensor<4xf32>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8xi32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      %b: tensor<4xf32> {shardc.role = #shardc.parameter<"b", constant(0.0)>}) -> tensor<f32> {
    // CHECK: %[[XB:.*]] = shardc.convert %[[X]] : tensor<8x4xf32> -> tensor<8x4xbf16>
    // CHECK: %[[WB:.*]] = shardc.convert %[[W]] : tensor<4x4xf32> -> tensor<4x4xbf16>
    // CHECK: %[[BB:.*]] = shardc.convert %[[B]] : tensor<4xf32> -> tensor<4xbf16>
    // CHECK: %[[Z:.*]] = shardc.linear %[[XB]], %[[WB]], %[[BB]] : tensor<8x4xbf16>, tensor<4x4xbf16>, tensor<4xbf16> -> tensor<8x4xbf16>
    %0 = shardc.linear %x, %w, %b : tensor<8x4xf32>, tensor<4x4xf32>, tensor<4xf32> -> tensor<8x4xf32>
    // CHECK: %[[H:.*]] = shardc.gelu %[[Z]] : tensor<8x4xbf16>
    %1 = shardc.gelu %0 : tensor<8x4xf32>
    // CHECK: %[[LOGITS:.*]] = shardc.linear %[[H]], %[[WB]] : tensor<8x4xbf16>, tensor<4x4xbf16> -> tensor<8x4xbf16>
    %2 = shardc.linear %1, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    // CHECK: %[[WIDE:.*]] = shardc.convert %[[LOGITS]] : tensor<8x4xbf16> -> tensor<8x4xf32>
    // CHECK: %[[LOSS:.*]] = shardc.softmax_cross_entropy %[[WIDE]], %[[Y]] : tensor<8x4xf32>, tensor<8xi32> -> tensor<f32>
    %3 = shardc.softmax_cross_entropy %2, %y : tensor<8x4xf32>, tensor<8xi32> -> tensor<f32>
    // CHECK: return %[[LOSS]] : tensor<f32>
    return %3 : tensor<f32>
  }
}

// -----

// A loss written by hand: ops that depend on labels or make a scalar stay
// in f32, and so do constants and comparisons, which other ops convert.

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  // CHECK-LABEL: func @loss
  // CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32>
  // CHECK-SAME: %[[Y:[^:]*]]: tensor<8x4xf32>
  // CHECK-SAME: %[[W:[^:]*]]: tensor<8x4xf32>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x4xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<8x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // CHECK: %[[C:.*]] = shardc.constant dense<2.000000e+00> : tensor<8x4xf32>
    %c = shardc.constant dense<2.0> : tensor<8x4xf32>
    // CHECK: %[[D:.*]] = shardc.sub %{{.*}}, %{{.*}} : tensor<8x4xbf16>
    %d = shardc.sub %x, %w : tensor<8x4xf32>
    // CHECK: %[[P:.*]] = shardc.compare gt %[[D]], %{{.*}} : tensor<8x4xbf16> -> tensor<8x4xi1>
    %p = shardc.compare gt %d, %c : tensor<8x4xf32> -> tensor<8x4xi1>
    // CHECK: %[[S:.*]] = shardc.select %[[P]], %[[D]], %{{.*}} : tensor<8x4xi1>, tensor<8x4xbf16>
    %s = shardc.select %p, %d, %w : tensor<8x4xi1>, tensor<8x4xf32>
    // CHECK: %[[SW:.*]] = shardc.convert %[[S]] : tensor<8x4xbf16> -> tensor<8x4xf32>
    // CHECK: %[[M:.*]] = shardc.mul %[[SW]], %[[Y]] : tensor<8x4xf32>
    %m = shardc.mul %s, %y : tensor<8x4xf32>
    // CHECK: %[[MC:.*]] = shardc.add %[[M]], %[[C]] : tensor<8x4xf32>
    %mc = shardc.add %m, %c : tensor<8x4xf32>
    // CHECK: %[[A:.*]] = shardc.reduce sum %[[MC]] dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    %a = shardc.reduce sum %mc dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    // CHECK: %[[R:.*]] = shardc.reduce sum %[[D]] dims = [0] : tensor<8x4xbf16> -> tensor<4xbf16>
    %r = shardc.reduce sum %d dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
    // CHECK: %[[RW:.*]] = shardc.convert %[[R]] : tensor<4xbf16> -> tensor<4xf32>
    // CHECK: %[[T:.*]] = shardc.reduce sum %[[RW]] dims = [0] : tensor<4xf32> -> tensor<f32>
    %t = shardc.reduce sum %r dims = [0] : tensor<4xf32> -> tensor<f32>
    // CHECK: shardc.add %[[A]], %[[T]] : tensor<f32>
    %l = shardc.add %a, %t : tensor<f32>
    return %l : tensor<f32>
  }
}
