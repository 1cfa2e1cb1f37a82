// Errors of pipelines, at the op or the module that they are about.
// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-import

// an axis that the mesh lacks
// expected-error @+1 {{`shardc.pipeline` uses axis "pipe", but mesh @mesh has axes "stage", "data"}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "pipe", schedule = "1f1b", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// an unknown schedule
// expected-error @+1 {{`shardc.pipeline`: unknown schedule 'pipedream'; expected one of gpipe, 1f1b, interleaved, zero-bubble}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "pipedream", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// microbatches that interleaving cannot divide
// expected-error @+1 {{`shardc.pipeline`: schedule 'interleaved' needs a number of microbatches that the 4 ranks of the pipeline divide, found 2}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 2>} {
  shardc.mesh @mesh <["stage" = 4]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// chunks of a schedule without them
// expected-error @+1 {{`shardc.pipeline`: schedule '1f1b' has one stage per rank, found 2; several need 'interleaved' or a schedule from a file}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 2>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// a schedule in text that waits forever
// expected-error @+1 {{`shardc.pipeline`: schedule: the schedule waits forever: 0B0 (rank 0) waits for 1B0, which stands behind 1F1 on rank 1; 1F1 (rank 1) waits for 0F1, which stands behind 0B0 on rank 0}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "0F0,0B0,0F1,0B1\0A1F0,1F1,1B0,1B1\0A", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 2>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// a schedule in text that is no schedule
// expected-error @+1 {{`shardc.pipeline`: schedule:2:5: expected a task such as 0F0 (stage, one of F, B, I and W, microbatch), found '\x1b'}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "0F0,0B0\0A1F0,\1B,1B0\0A", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(%w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.reduce sum %w dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----
// more stages than there is memory for
// expected-error @+1 {{`shardc.pipeline`: a schedule of 1 microbatches on 8 ranks with 1048576 stages each has more than 4194304 tasks}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "0F0,0B0\0A", chunks = 1048576>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 8]>
  func.func @loss(%w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.reduce sum %w dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----
// a stage with the result alone
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(%w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.reduce sum %w dims = [0, 1] {shardc.stage = 0 : i64} : tensor<4x4xf32> -> tensor<f32>
    // expected-error @+1 {{has a `shardc.stage`; the loss is on the stage of the op that makes it}}
    return {shardc.stage = 1 : i64} %0 : tensor<f32>
  }
}

// -----
// the largest number
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(%w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // expected-error @+1 {{is on stage 9223372036854775807, but the pipeline has stages 0 to 1}}
    %0 = shardc.reduce sum %w dims = [0, 1] {shardc.stage = 9223372036854775807 : i64} : tensor<4x4xf32> -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----
// a rule that names the axis
// expected-error @+1 {{the rule of logical axis "batch" names "stage", which is the axis of the stages of `shardc.pipeline`; nothing is sharded over it}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>, shardc.rules = {batch = ["stage"]}} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// a stage that is not there
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    // expected-error @+1 {{is on stage 2, but the pipeline has stages 0 to 1}}
    %1 = shardc.tanh %0 {shardc.stage = 2 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// stages that run backwards
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // expected-note @+1 {{that value is made here}}
    %0 = shardc.linear %x, %w {shardc.stage = 1 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 : tensor<8x4xf32>
    // expected-error @+1 {{is on stage 0, but it needs a value of stage 1: stages follow the forward pass}}
    %2 = shardc.reduce sum %1 dims = [0, 1] {shardc.stage = 0 : i64} : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// a stage without ops
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 3]>
    // expected-error @+1 {{no op is on stage 1 of 3: expected one with `shardc.stage = 1 : i64`}}
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 2 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// stages without a pipeline
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // expected-error @+1 {{has a `shardc.stage`, but the module has no `shardc.pipeline`}}
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----
// a sharding over the axis
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 1>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      // expected-error @+1 {{argument 0: `shardc.sharding` uses axis "stage", which is that of the stages of `shardc.pipeline`; nothing is sharded over it}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"stage"}, {}]>},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}
