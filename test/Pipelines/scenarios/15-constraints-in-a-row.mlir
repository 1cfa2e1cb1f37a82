// Two constraints on one value in a row: the value is resharded in between.

// RUN: shardc-opt %s --compile-to=partition --verify-partition -o - 2>&1 | FileCheck %s
// RUN: shardc-opt %s --compile-to=partition --verify-partition --partition=cheapest --objective=bytes -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHEAPEST
// CHEAPEST: partition verified

// CHECK: partition verified
// CHECK: func.func @train_step
// CHECK: shardc.all_to_all

module @m attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %c = shardc.sharding_constraint %h sharding = <@mesh, [{"d"}, {}]> : tensor<32x16xf32>
    %e = shardc.sharding_constraint %c sharding = <@mesh, [{}, {"d"}]> : tensor<32x16xf32>
    %loss = shardc.mse %e, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
