// A rule for a logical axis that the model does not name is an error.

// RUN: not shardc-opt %s --compile-to=import --rules=hiden=d 2>&1 | FileCheck %s --check-prefix=NEAR
// NEAR: error: rules 'hiden=d': the model has no logical axis 'hiden'; did you mean 'hidden'?
// RUN: not shardc-opt %s --compile-to=import --rules=vocabulary=d 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: the model has no logical axis 'vocabulary'; expected one of batch, hidden
// RUN: shardc-opt %s --compile-to=import --rules=hidden=d,batch= | FileCheck %s
// CHECK: @loss

module attributes {
    shardc.rules = {batch = ["d"]},
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["d" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", ""]},
      %y: tensor<8x4xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.logical_axes = ["", "hidden"]}) -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %loss = shardc.mse %h, %y : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
