// A GEMM that is constrained to be summed over one axis and then over the
// other is summed over both at once.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce a,b 4 1024 1536 forward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "a", "b"
// CHECK-NEXT: wire bytes per device: 1536
// CHECK-NEXT: matmul FLOPs per device: 57344

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["a" = 2, "b" = 2]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"a", "b"}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"a", "b"}, {}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1 : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h : tensor<32x64xf32>
    %o = shardc.linear %a, %w2 : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
    %p = shardc.sharding_constraint %o sharding = <@mesh, [{}, {}], unreduced={"a"}> : tensor<32x8xf32>
    %q = shardc.sharding_constraint %p sharding = <@mesh, [{}, {}]> : tensor<32x8xf32>
    %loss = shardc.mse %q, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
