// Tensors whose sizes would overflow computed sizes are refused
// where they are.
// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-import

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x1000000000xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{argument 1 has more than 2^40 elements, the most that a tensor of a model may have: 'tensor<1000000000x1000000000xf32>'}}
      %w: tensor<1000000000x1000000000xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x1000000000xf32>, tensor<1000000000x1000000000xf32> -> tensor<8x1000000000xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1000000000xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// Each argument is small, their product is not.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<1048577x1xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<1x1048576xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // expected-error @+1 {{result has more than 2^40 elements}}
    %0 = shardc.linear %x, %w : tensor<1048577x1xf32>, tensor<1x1048576xf32> -> tensor<1048577x1048576xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<1048577x1048576xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// The largest tensors.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<1048576x1xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<1x1048576xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<1048576x1xf32>, tensor<1x1048576xf32> -> tensor<1048576x1048576xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<1048576x1048576xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// Plans have room for dimensions below 2^31.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<2x2147483647xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{argument 1 has a dimension of more than 2147483647, the most that a tensor of a model may have: 'tensor<2147483648xf32>'}}
      %w: tensor<2147483648xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.reduce sum %w dims = [0] : tensor<2147483648xf32> -> tensor<f32>
    return %0 : tensor<f32>
  }
}
