// Adam with clipping and a schedule: states, the step counter, and formulas of
// optax.
// RUN: shardc-opt %s --shardc-differentiate --mlir-print-local-scope | FileCheck %s

module attributes {shardc.training = #shardc.training<loss = @loss,
    optimizer = <adam, learning_rate = 0.5>, clip_norm = 2.0,
    schedule = <linear_warmup, warmup_steps = 10>>} {
  shardc.mesh @mesh <["data" = 4]>
  // A state inherits the sharding of its parameter unless annotated.
  // CHECK-LABEL: func @train_step
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<16x8xf32>
  // CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<8xf32>
  // CHECK-SAME: %[[WM:[a-z0-9]+]]: tensor<16x8xf32> {shardc.role = #shardc.state<"w.m", constant(0), of = "w">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}
  // CHECK-SAME: %[[WV:[a-z0-9]+]]: tensor<16x8xf32> {shardc.role = #shardc.state<"w.v", constant(0), of = "w">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}
  // CHECK-SAME: %[[BM:[a-z0-9]+]]: tensor<8xf32> {shardc.role = #shardc.state<"b.m", constant(0), of = "b">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>}
  // CHECK-SAME: %[[BV:[a-z0-9]+]]: tensor<8xf32>
  // CHECK-SAME: %[[STEP:[a-z0-9]+]]: tensor<i32> {shardc.role = #shardc.state<"step", constant(0)>}
  // CHECK-SAME: {shardc.result = "w", shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>}
  // CHECK-SAME: {shardc.result = "b", shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>}
  // CHECK-SAME: {shardc.result = "w.m", shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}
  // CHECK-SAME: {shardc.result = "w.v"
  // CHECK-SAME: {shardc.result = "b.m"
  // CHECK-SAME: {shardc.result = "b.v"
  // CHECK-SAME: tensor<i32> {shardc.result = "step"}
  // CHECK-SAME: {shardc.result = "loss"}
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x8xf32> {shardc.role = #shardc.parameter<"w", he_normal>,
          shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>,
          shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %b: tensor<8xf32> {shardc.role = #shardc.parameter<"b", constant(0.0)>,
          shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w, %b : tensor<32x16xf32>, tensor<16x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %0, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
  // CHECK: %[[G:.*]] = shardc.dot_general {{.*}} -> tensor<16x8xf32>
  // Clipping by the global norm.
  // CHECK: %[[NORM:.*]] = shardc.sqrt %{{.*}} : tensor<f32>
  // CHECK: %[[LIMIT:.*]] = shardc.constant {{.*}} dense<2.000000e+00> : tensor<f32>
  // CHECK: %[[KEEP:.*]] = shardc.compare lt %[[NORM]], %[[LIMIT]]
  // CHECK: %[[RATIO:.*]] = shardc.div %[[LIMIT]], %[[NORM]]
  // CHECK: %[[SCALE:.*]] = shardc.select %[[KEEP]], %{{.*}}, %[[RATIO]]
  // CHECK: %[[ALL:.*]] = shardc.broadcast %[[SCALE]] dims = [] {{.*}} -> tensor<16x8xf32>
  // CHECK: %[[CLIPPED:.*]] = shardc.mul %[[G]], %[[ALL]]
  // The schedule counts from 0.
  // CHECK: %[[NOW:.*]] = shardc.convert %[[STEP]]
  // CHECK: shardc.min %[[NOW]], %
  // Adam counts from 1; log of the f32 nearest to 0.9 and 0.999.
  // CHECK: %[[COUNT:.*]] = shardc.add %[[NOW]], %
  // CHECK: shardc.constant {{.*}} dense<-0.105360545> : tensor<f32>
  // CHECK: shardc.expm1
  // CHECK: shardc.constant {{.*}} dense<-0.00100048748> : tensor<f32>
  // CHECK: shardc.expm1
  // CHECK: shardc.mul %[[WM]], %
  // CHECK: shardc.mul %[[CLIPPED]], %
  // CHECK: shardc.mul %[[CLIPPED]], %[[CLIPPED]]
  // CHECK: shardc.mul %[[WV]], %
  // CHECK: shardc.sqrt %{{.*}} : tensor<16x8xf32>
  // CHECK: shardc.sub %[[W]], %
  // CHECK: shardc.add %[[STEP]], %
}
