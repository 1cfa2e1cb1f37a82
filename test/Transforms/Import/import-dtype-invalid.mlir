// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-import=dtype=bf16

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{cannot compute in bf16 as asked for: expected a model of f32 throughout, got 'tensor<4x1xf64>'; a model with types of its own is compiled without that option}}
      %w: tensor<4x1xf64> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f64> {
    %0 = shardc.convert %x : tensor<8x4xf32> -> tensor<8x4xf64>
    %1 = shardc.linear %0, %w : tensor<8x4xf64>, tensor<4x1xf64> -> tensor<8x1xf64>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x1xf64> -> tensor<f64>
    return %2 : tensor<f64>
  }
}

// -----

// Conversions by hand are not overruled.

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<8x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.mul %x, %w : tensor<8x4xf32>
    // expected-error @+1 {{expected a model of f32 throughout, got 'tensor<8x4xbf16>'}}
    %1 = shardc.convert %0 : tensor<8x4xf32> -> tensor<8x4xbf16>
    %2 = shardc.convert %1 : tensor<8x4xbf16> -> tensor<8x4xf32>
    %3 = shardc.reduce sum %2 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %3 : tensor<f32>
  }
}
