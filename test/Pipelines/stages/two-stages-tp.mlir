// Tensor parallelism inside of the stages: the boundary is sharded over "model", so
// that a device sends half of it.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=TP
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=CHEAPEST
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null

// TP-LABEL: @train_step
// TP: on pipeline rank 0: 4096
// TP-NEXT: on pipeline rank 1: 5120
// TP-NEXT: on all ranks together: 9216
// TP-NEXT: wire bytes per device: 5120

// CHEAPEST-LABEL: @train_step
// CHEAPEST: on pipeline rank 0: 4096
// CHEAPEST-NEXT: on pipeline rank 1: 5120
// CHEAPEST-NEXT: on all ranks together: 9216
// CHEAPEST-NEXT: wire bytes per device: 5120

module @two_stages_tp attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 1, "model" = 2]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"model"}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h {shardc.stage = 0 : i64} : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
