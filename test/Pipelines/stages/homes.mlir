// A parameter has one home in all programs: in the evaluation, where no dropout is left,
// stage 1 alone uses it. An input that nothing uses is an input all the same.

// RUN: shardc-compile %s -o %t.shardc
// RUN: shardc-run %t.shardc --check-plan | FileCheck %s
// RUN: shardc-opt %s --compile-to=memory | FileCheck %s --check-prefix=RANKS

// CHECK: evaluate {{.*}}2 ranks
// CHECK: predict {{.*}}2 ranks
// RANKS-LABEL: func.func @train_step.0(
// RANKS-SAME: "w"
// RANKS-SAME: "unused"
// RANKS-LABEL: func.func @train_step.1(
// RANKS-NOT: #shardc.parameter<"w"
// RANKS-LABEL: func.func @evaluate.0(
// RANKS-SAME: "w"
// RANKS-LABEL: func.func @evaluate.1(
// RANKS-NOT: #shardc.parameter<"w"
// RANKS-LABEL: func.func @predict.0(
// RANKS-SAME: "w"
// RANKS-NOT: #shardc.label
// RANKS-LABEL: func.func @predict.1(
// RANKS-NOT: #shardc.parameter<"w"

module @homes attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 2>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %unused: tensor<8x4xf32> {shardc.role = #shardc.input<"unused">},
      %y: tensor<8x4xf32> {shardc.role = #shardc.label<"y">},
      %v: tensor<4x4xf32> {shardc.role = #shardc.parameter<"v", he_normal>},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %h = shardc.linear %x, %v {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %d = shardc.dropout %w rate = 0.5 stream = 0 {shardc.stage = 0 : i64} : tensor<4x4xf32>
    %z = shardc.linear %h, %d {shardc.stage = 1 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %loss = shardc.mse %z, %y : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
