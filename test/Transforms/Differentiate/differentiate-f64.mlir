// A parameter of f64 that is used in bf16 has its gradient in f64, made of that
// of its copy: GEMMs keep sums in f32 at most, and only those of bf16 do.
// RUN: shardc-opt %s --shardc-differentiate --mlir-print-local-scope | FileCheck %s

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  // CHECK-LABEL: func @train_step
  func.func @loss(
      %x: tensor<16x8xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<16x4xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<8x4xf64> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %a = shardc.convert %w : tensor<8x4xf64> -> tensor<8x4xbf16>
    %b = shardc.convert %x : tensor<16x8xf32> -> tensor<16x8xbf16>
    %c = shardc.linear %b, %a : tensor<16x8xbf16>, tensor<8x4xbf16> -> tensor<16x4xbf16>
    %d = shardc.convert %c : tensor<16x4xbf16> -> tensor<16x4xf32>
    // CHECK: %[[G:.*]] = shardc.dot_general {{.*}} : tensor<16x8xbf16>, tensor<16x4xbf16> -> tensor<8x4xbf16>
    // CHECK: shardc.convert %[[G]] {{.*}} : tensor<8x4xbf16> -> tensor<8x4xf64>
    %l = shardc.mse %d, %y : tensor<16x4xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
