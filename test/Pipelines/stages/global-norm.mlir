// Clipping by the global norm: the squares of a stage are one scalar, and one
// all-reduce adds those of all stages, over all axes over which they are partial
// sums.

// RUN: shardc-opt %s --compile-to=collectives  \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=NORM
// RUN: shardc-opt %s --compile-to=collectives --verify-partition -o /dev/null
// RUN: shardc-opt %s --compile-to=schedule | FileCheck %s --check-prefix=RANKS
// RUN: shardc-opt %S/four-stages.mlir --clip-norm=1 --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=FOUR
// RUN: shardc-opt %S/four-stages.mlir --clip-norm=1 --stages=2 --virtual-stages=2 --pipeline-schedule=interleaved --compile-to=schedule \
// RUN:   | FileCheck %s --check-prefix=CHUNKS
// RUN: shardc-opt %S/two-stages-fsdp.mlir --clip-norm=1 --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s --check-prefix=FSDP

// NORM-LABEL: @train_step
// NORM: on pipeline rank 0: 8196
// NORM-NEXT: on pipeline rank 1: 8196
// NORM-NEXT: on all ranks together: 16392
// NORM-NEXT: wire bytes per device: 8196

// Each rank has zero in the place of what the other has.
// RANKS-LABEL: @train_step.0
// RANKS: %[[OTHER:.*]] = shardc.zeros {shardc.part = #shardc.part<update>}
// RANKS: shardc.kernel(%{{.*}}, %[[OTHER]])
// RANKS: shardc.all_reduce sum %{{.*}} over @mesh["stage"] {shardc.cause = "sum over stages"
// RANKS-LABEL: @train_step.1
// RANKS: %[[OTHER:.*]] = shardc.zeros {shardc.part = #shardc.part<update>}
// RANKS: shardc.kernel(%[[OTHER]], %{{.*}})
// RANKS: shardc.all_reduce sum %{{.*}} over @mesh["stage"]

// FOUR-LABEL: @train_step
// FOUR: all_reduce         stage                 4              4              6  update
// FOUR: on pipeline rank 0:      8198
// FOUR-NEXT: on pipeline rank 1:      16390
// FOUR-NEXT: on pipeline rank 2:      16390
// FOUR-NEXT: on pipeline rank 3:      8198

// A rank adds what its two stages have.
// CHUNKS-LABEL: @train_step.0
// CHUNKS-COUNT-1: shardc.all_reduce sum %{{.*}} over @mesh["stage"]
// CHUNKS-NOT: shardc.all_reduce
// CHUNKS-LABEL: @train_step.1

// FSDP-LABEL: @train_step
// FSDP: all_reduce         stage,data            4              4              6  update {{.*}} partial sums over "data"; sum over stages
// FSDP: on pipeline rank 0:      8454
// FSDP-NEXT: on pipeline rank 1:      6186

module @global_norm attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, clip_norm = 1.0, microbatches = 4>,
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
