// A complete module passes unchanged.
// RUN: shardc-opt %s --shardc-import --mlir-print-local-scope | FileCheck %s
// RUN: shardc-opt %s --shardc-import="mesh=data=8" --mlir-print-local-scope | FileCheck %s --check-prefix=MESH
// RUN: shardc-opt %s --shardc-import="rules=batch=data+model,hidden=" --mlir-print-local-scope | FileCheck %s --check-prefix=RULES
// RUN: shardc-opt %s --shardc-import="batch=48" --mlir-print-local-scope | FileCheck %s --check-prefix=BATCH

module attributes {
    shardc.rules = {batch = ["data"], embed = [], hidden = ["model"]},
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  // CHECK: shardc.mesh @mesh <["data" = 4, "model" = 2]>
  // MESH: shardc.mesh @mesh <["data" = 8, "model" = 1]>
  shardc.mesh @mesh <["data" = 4, "model" = 2]>

  // CHECK-LABEL: func @loss
  // CHECK-SAME: %[[X:.*]]: tensor<32x4x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}, {}]>}
  // CHECK-SAME: tensor<32x4x8xf32> {shardc.role = #shardc.label<"y">}
  // CHECK-SAME: tensor<16x8xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}
  // RULES: [{"data", "model"}, {}, {}]
  // RULES-SAME: #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>
  // BATCH: func @loss(%{{.*}}: tensor<48x4x16xf32>
  // BATCH-SAME: tensor<48x4x8xf32>
  // BATCH-SAME: tensor<16x8xf32>
  func.func @loss(
      %x: tensor<32x4x16xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", "", ""]},
      %y: tensor<32x4x8xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x8xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.logical_axes = ["embed", "hidden"]})
      -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<32x4x16xf32>, tensor<16x8xf32> -> tensor<32x4x8xf32>
    // CHECK: shardc.sharding_constraint %{{.*}} sharding = <@mesh, [{"data"}, {}, {"model"}]>
    %1 = shardc.sharding_constraint %0 logical_axes = ["batch", "", "hidden"] : tensor<32x4x8xf32>
    // A dimension made of the batch and another follows it, and so does a
    // constant that meets it.
    // BATCH: shardc.reshape %{{.*}} : tensor<48x4x8xf32> -> tensor<192x8xf32>
    %2 = shardc.reshape %1 : tensor<32x4x8xf32> -> tensor<128x8xf32>
    // BATCH: shardc.constant dense<2.000000e+00> : tensor<192x8xf32>
    %3 = shardc.constant dense<2.0> : tensor<128x8xf32>
    %4 = shardc.mul %2, %3 : tensor<128x8xf32>
    // BATCH: shardc.reshape %{{.*}} : tensor<192x8xf32> -> tensor<48x4x8xf32>
    %5 = shardc.reshape %4 : tensor<128x8xf32> -> tensor<32x4x8xf32>
    // BATCH: shardc.mse %{{.*}}, %{{.*}} : tensor<48x4x8xf32> -> tensor<f32>
    %loss = shardc.mse %5, %y : tensor<32x4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
