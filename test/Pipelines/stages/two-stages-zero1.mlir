// ZeRO-1: gradients are scattered to the states, new parameters gathered, on each
// stage for itself.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=ZERO
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null

// ZERO-LABEL: @train_step
// ZERO: on pipeline rank 0: 8448
// ZERO-NEXT: on pipeline rank 1: 6180
// ZERO-NEXT: on all ranks together: 14628
// ZERO-NEXT: wire bytes per device: 8448

module @two_stages_zero1 attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h {shardc.stage = 0 : i64} : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
