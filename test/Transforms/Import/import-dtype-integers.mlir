// Integers are made of f32: bf16 holds them up to 256 alone.
// RUN: shardc-opt %s --shardc-import=dtype=bf16 | FileCheck %s

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  // CHECK: func @loss(%[[X:.*]]: tensor<16x8xf32>
  func.func @loss(
      %x: tensor<16x8xf32> {shardc.role = #shardc.input<"x">},
      %i: tensor<16x8xi32> {shardc.role = #shardc.input<"i">},
      %y: tensor<16x4xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<8x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // CHECK: %[[K:.*]] = shardc.convert %[[X]] : tensor<16x8xf32> -> tensor<16x8xi32>
    // CHECK: shardc.compare eq %[[K]]
    %k = shardc.convert %x : tensor<16x8xf32> -> tensor<16x8xi32>
    %p = shardc.compare eq %k, %i : tensor<16x8xi32> -> tensor<16x8xi1>
    %q = shardc.convert %p : tensor<16x8xi1> -> tensor<16x8xf32>
    // CHECK: shardc.linear {{.*}} tensor<16x4xbf16>
    %z = shardc.linear %q, %w : tensor<16x8xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
    %l = shardc.mse %z, %y : tensor<16x4xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
