// Every kind of contract, broken: the found and the expected value at the contract,
// then the offenders at the line to blame. Each is reported for the first program
// that breaks it.

// RUN: shardc-opt %s --split-input-file --compile-to=memory --verify-diagnostics -o /dev/null

// Counts by kind, axis and part, and bytes, on a module.
// expected-note @+4 {{shardc-compile --ignore-expect --explain says what would remove them}}
// expected-error @+3 {{contract broken: @train_step: found 1, expected at most 0 collectives of reduce_scatter over "model" in backward}}
// expected-error @+2 {{contract broken: @train_step: found 5638, expected at most 5637 bytes on the wire}}
// expected-error @+1 {{contract broken: @train_step: found 2048, expected at most 2047 bytes on the wire of reduce_scatter}}
module @counts attributes {
    shardc.expect = [
      #shardc.max_collectives<0 of reduce_scatter over "model" in backward>,
      #shardc.max_bytes<5637>,
      #shardc.max_bytes<2047 of reduce_scatter>],
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 2, "model" = 2]>
  func.func @loss(
      // expected-note @+2 {{all_reduce over "data" in backward sends 1536 bytes: gradient of w0, gradient of w1}}
      // expected-note @+1 {{all_reduce over "data", "model" in forward sends 6 bytes: loss}}
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      // expected-note @+1 {{all_gather over "model" in forward sends 2048 bytes: result of relu at contracts-broken.mlir:}}
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
      // expected-note @+1 {{reduce_scatter over "model" in backward sends 2048 bytes: backward of linear at contracts-broken.mlir:}}
      %w1: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %h0 = shardc.relu %z0 : tensor<64x32xf32>
    %z1 = shardc.linear %h0, %w1 : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// On a function, a parameter and an op: of w1 alone the exchange, of the second
// linear alone its reduction.
module @values attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["model" = 2]>
  // expected-note @+2 {{says what would remove them}}
  // expected-error @+1 {{contract broken: @train_step: found 1, expected at most 0 collectives in update}}
  func.func @loss(
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
      // expected-note @+2 {{says what would remove them}}
      // expected-error @+1 {{contract broken: @train_step: found 256, expected at most 255 bytes on the wire for this value}}
      %w1: tensor<32x8xf32> {shardc.expect = [#shardc.max_bytes<255>, #shardc.max_bytes<256>],
          shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}) -> tensor<f32>
      attributes {shardc.expect = [#shardc.max_collectives<0 in update>]} {
    %z0 = shardc.linear %x, %w0 {shardc.expect = [#shardc.max_collectives<0>]} : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %h0 = shardc.relu %z0 : tensor<64x32xf32>
    // expected-note @+3 {{all_to_all over "model" in update sends 256 bytes}}
    // expected-note @+2 {{all_to_all over "model" in forward sends 256 bytes: w1}}
    // expected-note @+1 {{all_reduce over "model" in forward sends 2048 bytes: result of linear}}
    %v1 = shardc.sharding_constraint %w1 sharding = <@mesh, [{"model"}, {}]> : tensor<32x8xf32>
    // expected-note @+2 {{says what would remove them}}
    // expected-error @+1 {{contract broken: @train_step: found 1, expected at most 0 collectives for this value}}
    %z1 = shardc.linear %h0, %v1 {shardc.expect = [#shardc.max_collectives<0>, #shardc.max_collectives<1>]} : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A region: the gradient of the tail's weight is reduced, the body receives
// nothing in the forward part.
// expected-note @+2 {{says what would remove them}}
// expected-error @+1 {{contract broken: @train_step: found 1, expected at most 0 collectives in region "tail"}}
module @regions attributes {
    shardc.expect = [
      #shardc.max_collectives<0 region "tail">,
      #shardc.max_collectives<1 region "tail">,
      #shardc.max_collectives<0 in forward region "body">],
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      // expected-note @+1 {{all_reduce over "data" in backward sends 3076 bytes: gradient of w0, gradient of w1, loss}}
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 {shardc.region = "body"} : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %h0 = shardc.relu %z0 {shardc.region = "body"} : tensor<64x32xf32>
    %z1 = shardc.linear %h0, %w1 {shardc.region = "tail"} : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y {shardc.region = "tail"} : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Redundant GEMMs: nothing is sharded over "model", and the second linear is
// told not to be over anything.
// expected-error @+1 {{contract broken: @train_step: found 229376, expected 114688 FLOPs of GEMMs on all devices together}}
module @flops attributes {
    shardc.expect = [#shardc.no_redundant_flops],
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  // expected-remark @+1 {{axis "model" shards nothing}}
  shardc.mesh @mesh <["data" = 2, "model" = 2]>
  func.func @loss(
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<16x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    // expected-note @+2 {{this GEMM is computed 2 times: "model" shards none of its factors}}
    // expected-note @+1 {{this GEMM (of its gradient) is computed 2 times: "model" shards none of its factors}}
    %z0 = shardc.linear %x, %w0 : tensor<64x16xf32>, tensor<16x16xf32> -> tensor<64x16xf32>
    // expected-error @+3 {{contract broken: @train_step: found 98304, expected 49152 FLOPs of GEMMs on all devices together for this value}}
    // expected-note @+2 {{this GEMM is computed 2 times}}
    // expected-note @+1 {{this GEMM (of its gradient) is computed 2 times}}
    %z1 = shardc.linear %z0, %w1 {shardc.expect = [#shardc.no_redundant_flops]} : tensor<64x16xf32>, tensor<16x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Memory, with the largest buffers.
// expected-error @+3 {{expected at most 4096 bytes of memory per device}}
// expected-note @+2 {{w1: 1024 bytes of parameters}}
// expected-note @+1 {{bytes of}}
module @memory attributes {
    shardc.expect = [#shardc.max_memory<4096>, #shardc.max_memory<1048576>],
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %z1 = shardc.linear %z0, %w1 : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
