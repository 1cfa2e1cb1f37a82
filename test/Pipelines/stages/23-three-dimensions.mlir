// Scenario 23: one block 16-64-16 per stage, 3-D. The gradients of a stage are reduced
// over "data" once per step: 4288 bytes. Each microbatch has all-reduces over "model"
// of 256 bytes, one on stage 0 and two on stage 1, and one transfer of 256 bytes. The
// cheapest plan lets a half cross, behind a reduce-scatter and before an all-gather.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=FOLLOW
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=CHEAPEST
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes --verify-partition -o /dev/null

// FOLLOW-LABEL: @train_step
// FOLLOW: on pipeline rank 0: 6336
// FOLLOW-NEXT: on pipeline rank 1: 7364
// FOLLOW-NEXT: on all ranks together: 13700
// FOLLOW-NEXT: wire bytes per device: 7364

// CHEAPEST-LABEL: @train_step
// CHEAPEST: on pipeline rank 0: 5824
// CHEAPEST-NEXT: on pipeline rank 1: 6852
// CHEAPEST-NEXT: on all ranks together: 12676
// CHEAPEST-NEXT: wire bytes per device: 6852

module @three_dimensions attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2, "model" = 2]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"model"}]>},
      %w2: tensor<64x16xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>},
      %b2: tensor<16xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w3: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w3", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
      %b3: tensor<64xf32> {shardc.role = #shardc.parameter<"b3", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"model"}]>},
      %w4: tensor<64x16xf32> {shardc.role = #shardc.parameter<"w4", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>},
      %b4: tensor<16xf32> {shardc.role = #shardc.parameter<"b4", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h0 = shardc.linear %x, %w1, %b1 {shardc.stage = 0 : i64} : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a0 = shardc.relu %h0 : tensor<32x64xf32>
    %o0 = shardc.linear %a0, %w2, %b2 {shardc.stage = 0 : i64} : tensor<32x64xf32>, tensor<64x16xf32>, tensor<16xf32> -> tensor<32x16xf32>
    %h1 = shardc.linear %o0, %w3, %b3 {shardc.stage = 1 : i64} : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a1 = shardc.relu %h1 : tensor<32x64xf32>
    %o1 = shardc.linear %a1, %w4, %b4 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x16xf32>, tensor<16xf32> -> tensor<32x16xf32>
    %loss = shardc.mse %o1, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
