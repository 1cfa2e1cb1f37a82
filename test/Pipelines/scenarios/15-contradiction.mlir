// Contradicting closed annotations of one value: an error that names both.

// RUN: shardc-opt %s --verify-diagnostics --compile-to=propagate
// RUN: shardc-opt %s --verify-diagnostics --compile-to=propagate --partition=cheapest --objective=bytes

module @m attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    // expected-note @+1 {{by this constraint}}
    %c = shardc.sharding_constraint %h sharding = <@mesh, [{"d"}, {}]> : tensor<32x16xf32>
    // expected-error @+1 {{closes dimension 0 over {}, but its operand is closed over {"d"} and has no other use}}
    %e = shardc.sharding_constraint %c sharding = <@mesh, [{}, {"d"}]> : tensor<32x16xf32>
    %loss = shardc.mse %e, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
