// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-differentiate --shardc-split-microbatches

// The gradient of a function of the mean needs the mean first.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 2>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    // expected-error @+1 {{works on rows of the batch and needs a sum over all of them}}
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    %2 = shardc.exp %1 : tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// A GEMM of rows with rows.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 2>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    // expected-error @+1 {{makes rows of the batch depend on each other}}
    %1 = shardc.dot_general %0, %0 contracting = [1] x [1] : tensor<8x2xf32>, tensor<8x2xf32> -> tensor<8x8xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x8xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// A parameter with a value per row.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 2>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{dimension 0 of this argument is rows of the batch, but only inputs and labels are cut into microbatches}}
      %w: tensor<8x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.mul %x, %w : tensor<8x4xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// The position of a row decides the number that is added to it.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 2>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      %b: tensor<4xf32> {shardc.role = #shardc.parameter<"b", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    // expected-error @+1 {{cuts the 8 rows of the batch into 2 groups}}
    %1 = shardc.reshape %0 : tensor<8x2xf32> -> tensor<2x4x2xf32>
    %2 = shardc.broadcast %b dims = [1] : tensor<4xf32> -> tensor<2x4x2xf32>
    %3 = shardc.mul %1, %2 : tensor<2x4x2xf32>
    %4 = shardc.reduce sum %3 dims = [0, 1, 2] : tensor<2x4x2xf32> -> tensor<f32>
    return %4 : tensor<f32>
  }
}

// -----
// Padding is forbidden for the rows.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 4>} {
  shardc.mesh @mesh <["data" = 2]>
  // expected-error @+1 {{a batch of 10 rows does not divide into 4 microbatches x 2 shards, and the policy is uneven=error}}
  func.func @loss(
      %x: tensor<10x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}], uneven = error>},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<10x4xf32>, tensor<4x2xf32> -> tensor<10x2xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<10x2xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// More rows than a tensor may have.
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 3>} {
  // expected-error @+1 {{a batch of 2147483647 rows does not divide into 3 microbatches x 1 shards, and padding would make more than 2147483647}}
  func.func @loss(
      %x: tensor<2147483647x1xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<1x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<2147483647x1xf32>, tensor<1x1xf32> -> tensor<2147483647x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<2147483647x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}
