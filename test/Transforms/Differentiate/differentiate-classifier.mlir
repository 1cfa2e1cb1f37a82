// Dropout has its step counter in the train step and is gone in the evaluation,
// which counts correct rows. The sum over labels goes straight to a scalar.
// RUN: shardc-opt %s --shardc-differentiate --mlir-print-local-scope | FileCheck %s

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  // CHECK-LABEL: func @train_step
  // CHECK-SAME: %[[STEP:[a-z0-9]+]]: tensor<i32> {shardc.role = #shardc.state<"step", constant(0)>}
  // CHECK: shardc.random_uniform %[[STEP]] stream = 7
  // CHECK: shardc.reduce max %{{.*}} dims = [1]
  // CHECK: %[[E:.*]] = shardc.exp
  // CHECK: %[[LABEL:.*]] = shardc.compare eq
  // CHECK: %[[PICKED:.*]] = shardc.select %[[LABEL]]
  // CHECK: shardc.reduce sum %[[PICKED]] dims = [0, 1] {{.*}} -> tensor<f32>
  // CHECK: shardc.constant {{.*}} dense<3.200000e+01> : tensor<f32>
  // No gradient flows through the maximum, so nothing is compared with it.
  // CHECK: shardc.mul %{{.*}}, %[[E]] {shardc.part = #shardc.part<backward>}
  // CHECK-NOT: shardc.compare eq
  // CHECK-LABEL: func @evaluate
  // CHECK-NOT: shardc.random_uniform
  // CHECK: (tensor<f32> {shardc.result = "loss"}, tensor<32xf32> {shardc.result = "per_example_loss"}, tensor<32xi32> {shardc.result = "correct"})
  // CHECK: shardc.convert %{{.*}} : tensor<32xi1> -> tensor<32xi32>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32xi32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x10xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.dropout %x rate = 0.1 stream = 7 : tensor<32x16xf32>
    %1 = shardc.linear %0, %w : tensor<32x16xf32>, tensor<16x10xf32> -> tensor<32x10xf32>
    %loss = shardc.softmax_cross_entropy %1, %y : tensor<32x10xf32>, tensor<32xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
