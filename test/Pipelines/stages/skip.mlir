// A residual connection over stage 1: its addition is on that stage, so that one
// value crosses each boundary.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=SKIP
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null

// SKIP-LABEL: @train_step
// SKIP: on pipeline rank 0: 8192
// SKIP-NEXT: on pipeline rank 1: 16384
// SKIP-NEXT: on pipeline rank 2: 8192
// SKIP-NEXT: on all ranks together: 32768
// SKIP-NEXT: wire bytes per device: 16384

module @skip attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 3, "data" = 1]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w1: tensor<64x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w0 {shardc.stage = 0 : i64} : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %z = shardc.linear %h, %w1 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32>
    %r = shardc.relu %z : tensor<32x64xf32>
    %s = shardc.add %h, %r : tensor<32x64xf32>
    %o = shardc.linear %s, %w2 {shardc.stage = 2 : i64} : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
