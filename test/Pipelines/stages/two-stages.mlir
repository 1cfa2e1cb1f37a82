// The small graph, cut after the relu. Of each microbatch its activation crosses,
// and the gradient of it: 4 * 2048 bytes each. Gradients are reduced once per step.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=TWO
// RUN: shardc-opt %s --compile-to=collectives --mesh=stage=2,data=2 \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=DP
// RUN: shardc-opt %s --compile-to=collectives  --verify-partition -o /dev/null
// RUN: shardc-opt %s --compile-to=collectives --mesh=stage=2,data=2 --verify-partition -o /dev/null
// RUN: shardc-opt %s --compile-to=collectives --mesh=stage=2,data=8,model=8 --verify-partition -o /dev/null 2>&1 | FileCheck %s --check-prefix=SMALLER
// RUN: shardc-opt %s --compile-to=differentiate | FileCheck %s --check-prefix=IR
// RUN: not shardc-opt %s --compile-to=kernels 2>&1 | FileCheck %s --check-prefix=LATER
// RUN: shardc-compile %s --stages=0 --report=comm | FileCheck %s --check-prefix=NONE

// TWO-LABEL: @train_step
// TWO: on pipeline rank 0: 8192
// TWO-NEXT: on pipeline rank 1: 8192
// TWO-NEXT: on all ranks together: 16384
// TWO-NEXT: wire bytes per device: 8192

// The axis of the stages stays as it is where sizes shrink.
// SMALLER: agree on 64 devices {{.*}}; sizes checked: 16 as 8{{$}}

// DP-LABEL: @train_step
// DP: send stage 2 1024 4096 forward {{.*}}: from stage 0 to stage 1 (in each of 4 microbatches)
// DP: send stage 2 1024 4096 backward {{.*}}: from stage 1 to stage 0 (in each of 4 microbatches)
// DP: all_reduce data 2 4352 4352
// DP: all_reduce data 2 2084 2084
// DP: on pipeline rank 0: 8448
// DP-NEXT: on pipeline rank 1: 6180
// DP-NEXT: on all ranks together: 14628
// DP-NEXT: wire bytes per device: 8448

// IR-LABEL: func.func @train_step
// IR: shardc.accumulate 4
// IR: %[[A:.*]] = shardc.max {{.*}}shardc.stage = 0
// IR-NEXT: %[[SENT:.*]] = shardc.transfer %[[A]] from 0 to 1 {shardc.part = #shardc.part<forward>} : tensor<8x64xf32>
// IR: shardc.dot_general %[[SENT]], %{{.*}}shardc.stage = 1
// IR: %[[G:.*]] = shardc.dot_general {{.*}}shardc.stage = 1 : i64} : tensor<8x8xf32>, tensor<64x8xf32> -> tensor<8x64xf32>
// IR-NEXT: shardc.transfer %[[G]] from 1 to 0 {shardc.part = #shardc.part<backward>} : tensor<8x64xf32>
// IR-NOT: shardc.transfer
// IR-LABEL: func.func @evaluate
// IR: shardc.transfer {{.*}} from 0 to 1 {shardc.part = #shardc.part<forward>} : tensor<32x64xf32>
// IR-NOT: shardc.transfer

// LATER: {{.*}}two-stages.mlir:{{.*}}: error: `shardc.pipeline` is not supported yet behind the phase 'collectives': no plan can be made (--stages=0 takes the pipeline away)

// NONE: total: 0 bytes on the wire

module @two_stages attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 1]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h {shardc.stage = 0 : i64} : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
