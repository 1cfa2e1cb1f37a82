// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-differentiate

// A parameter without a gradient, its state annotated (scenario 25).
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      // expected-error @+1 {{parameter "v" has no gradient: the loss does not depend on it}}
      %v: tensor<16x16xf32> {shardc.role = #shardc.parameter<"v", he_normal>,
          shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<32x16xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// Through stop_gradient nothing flows.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  func.func @loss(
      // expected-error @+1 {{parameter "w" has no gradient}}
      %w: tensor<16xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.stop_gradient %w : tensor<16xf32>
    %1 = shardc.reduce sum %0 dims = [0] : tensor<16xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// expected-error @+1 {{has no `shardc.training`}}
module {
}

// -----
// expected-error @+1 {{names loss function @loss, but the module has none of that name}}
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
}
