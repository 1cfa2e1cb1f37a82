// RUN: shardc-opt %s --compile-to=partition --verify-partition -o /dev/null 2>&1 | FileCheck %s

// Around a sum or a dropout two constraints may differ. In the backward pass
// the gradient of the sum is the identity, in the evaluation the dropout is:
// there they meet.
// CHECK: partition verified

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["a" = 2, "b" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x4xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %c = shardc.sharding_constraint %h sharding = <@mesh, [{"a"}, {}]> : tensor<8x4xf32>
    %s = shardc.add %c, %x : tensor<8x4xf32>
    %d = shardc.sharding_constraint %s sharding = <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
    %p = shardc.dropout %d rate = 0.5 stream = 0 : tensor<8x4xf32>
    %e = shardc.sharding_constraint %p sharding = <@mesh, [{"b"}, {"a"}]> : tensor<8x4xf32>
    %loss = shardc.mse %e, %y : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
