// A weight that two stages use is at home on stage 0. It crosses once per step, and the
// sum of its gradients on stage 1 comes back once: 4096 bytes each.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=TIED
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null
// RUN: shardc-opt %s --compile-to=differentiate | FileCheck %s --check-prefix=IR

// TIED-LABEL: @train_step
// TIED: on pipeline rank 0: 12288
// TIED-NEXT: on pipeline rank 1: 12288
// TIED-NEXT: on all ranks together: 24576
// TIED-NEXT: wire bytes per device: 12288

// IR-LABEL: func.func @train_step
// IR: shardc.transfer %{{.*}} from 0 to 1 {shardc.part = #shardc.part<forward>} : tensor<16x64xf32>
// IR: %[[SUMS:.*]]:3 = shardc.accumulate 4
// IR: shardc.yield
// IR: %[[G:.*]] = shardc.transfer %[[SUMS]]#{{.*}} from 1 to 0 {shardc.part = #shardc.part<backward>} : tensor<16x64xf32>
// IR: shardc.add %[[G]], %[[SUMS]]#

module @tied attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 1]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>})
      -> tensor<f32> {
    %z = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %z : tensor<32x64xf32>
    %o = shardc.dot_general %a, %w contracting = [1] x [1] {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<16x64xf32> -> tensor<32x16xf32>
    %loss = shardc.mse %o, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
