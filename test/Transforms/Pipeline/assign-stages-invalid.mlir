// Without import before it, the pass finds the errors of a pipeline itself.
// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-assign-stages

// expected-error @+1 {{`shardc.pipeline`: unknown schedule 'pipedream'}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "pipedream">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(%w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.exp %w : tensor<4x4xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(%w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // expected-note @+1 {{that value is made here}}
    %0 = shardc.exp %w {shardc.stage = 1 : i64} : tensor<4x4xf32>
    // expected-error @+1 {{is on stage 0, but it needs a value of stage 1: stages follow the forward pass}}
    %1 = shardc.reduce sum %0 dims = [0, 1] {shardc.stage = 0 : i64} : tensor<4x4xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}
