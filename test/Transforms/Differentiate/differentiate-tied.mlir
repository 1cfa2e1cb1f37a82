// A weight that is used twice sums its gradients once; a constraint on its
// gradient stands after the sum (scenario 18).
// RUN: shardc-opt %s --shardc-differentiate --mlir-print-local-scope | FileCheck %s

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 4]>
  // CHECK-LABEL: func @train_step
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>,
          shardc.grad_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<f32> {
    // CHECK: %[[G2:.*]] = shardc.dot_general {{.*}} contracting = [0] x [0] {shardc.part = #shardc.part<backward>}
    // CHECK: %[[G1:.*]] = shardc.dot_general {{.*}} contracting = [0] x [0] {shardc.part = #shardc.part<backward>}
    // CHECK: %[[G:.*]] = shardc.add %[[G2]], %[[G1]] {shardc.part = #shardc.part<backward>}
    // CHECK: %[[C:.*]] = shardc.sharding_constraint %[[G]] sharding = <@mesh, [{"data"}, {}]>
    // CHECK: shardc.mul %[[C]], %{{.*}} {shardc.part = #shardc.part<update>}
    %0 = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %1 = shardc.linear %0, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<32x16xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}
