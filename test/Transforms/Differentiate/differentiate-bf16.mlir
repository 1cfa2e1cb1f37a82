// A parameter of f32 that is used in bf16 has its gradient in f32: GEMMs and
// sums are not rounded, and uses are added up in f32. Gradients of activations
// are of bf16.
// RUN: shardc-opt %s --shardc-differentiate --mlir-print-local-scope | FileCheck %s

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 4]>
  // CHECK-LABEL: func @train_step
  // CHECK-SAME: %[[W:[^:]*]]: tensor<16x16xf32>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>,
          shardc.grad_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %b: tensor<16xf32> {shardc.role = #shardc.parameter<"b", constant(0.0)>}) -> tensor<f32> {
    %xb = shardc.convert %x : tensor<32x16xf32> -> tensor<32x16xbf16>
    // CHECK: %[[WB:.*]] = shardc.convert %[[W]] {{.*}} : tensor<16x16xf32> -> tensor<16x16xbf16>
    %wb = shardc.convert %w : tensor<16x16xf32> -> tensor<16x16xbf16>
    // A constraint does not change the type of the sum.
    %wc = shardc.sharding_constraint %wb sharding = <@mesh, [{}, {}]> : tensor<16x16xbf16>
    %bb = shardc.convert %b : tensor<16xf32> -> tensor<16xbf16>
    %0 = shardc.linear %xb, %wc : tensor<32x16xbf16>, tensor<16x16xbf16> -> tensor<32x16xbf16>
    %1 = shardc.tanh %0 : tensor<32x16xbf16>
    %2 = shardc.linear %1, %wb, %bb : tensor<32x16xbf16>, tensor<16x16xbf16>, tensor<16xbf16> -> tensor<32x16xbf16>
    %3 = shardc.mul %2, %2 : tensor<32x16xbf16>
    %4 = shardc.convert %3 : tensor<32x16xbf16> -> tensor<32x16xf32>
    %5 = shardc.reduce sum %4 dims = [0, 1] : tensor<32x16xf32> -> tensor<f32>
    return %5 : tensor<f32>
    // CHECK: %[[ROWS:.*]] = shardc.convert %[[DZ:.*]] {shardc.part = #shardc.part<backward>} : tensor<32x16xbf16> -> tensor<32x16xf32>
    // CHECK: shardc.reduce sum %[[ROWS]] dims = [0] {{.*}} : tensor<32x16xf32> -> tensor<16xf32>
    // CHECK: shardc.dot_general %[[DZ]], %[[WB]] contracting = [1] x [1] {{.*}} -> tensor<32x16xbf16>
    // CHECK: %[[G2:.*]] = shardc.dot_general %{{.*}}, %[[DZ]] contracting = [0] x [0] {{.*}} : tensor<32x16xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
    // CHECK: %[[G1:.*]] = shardc.dot_general {{.*}} contracting = [0] x [0] {{.*}} -> tensor<16x16xf32>
    // CHECK: %[[C1:.*]] = shardc.sharding_constraint %[[G1]] sharding = <@mesh, [{}, {}]> {{.*}} : tensor<16x16xf32>
    // CHECK: %[[G:.*]] = shardc.add %[[G2]], %[[C1]] {{.*}} : tensor<16x16xf32>
    // CHECK: shardc.sharding_constraint %[[G]] sharding = <@mesh, [{"data"}, {}]>
    // CHECK: func @evaluate
  }
}
