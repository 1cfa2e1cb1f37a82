// Three stages of different widths.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=THREE
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null

// THREE-LABEL: @train_step
// THREE: on pipeline rank 0: 8192
// THREE-NEXT: on pipeline rank 1: 12288
// THREE-NEXT: on pipeline rank 2: 4096
// THREE-NEXT: on all ranks together: 24576
// THREE-NEXT: wire bytes per device: 12288

module @three_stages attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 3, "data" = 1]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b0: tensor<64xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w1: tensor<64x32xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<32xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 {shardc.stage = 0 : i64} : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a0 = shardc.relu %z0 : tensor<32x64xf32>
    %z1 = shardc.linear %a0, %w1, %b1 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x32xf32>, tensor<32xf32> -> tensor<32x32xf32>
    %a1 = shardc.relu %z1 : tensor<32x32xf32>
    %z2 = shardc.linear %a1, %w2, %b2 {shardc.stage = 2 : i64} : tensor<32x32xf32>, tensor<32x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %z2, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
