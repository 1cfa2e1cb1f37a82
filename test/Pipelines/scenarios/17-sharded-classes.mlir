// Softmax cross-entropy over sharded classes: the logits stay where they are.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce t 4 128 192 forward {{.*}}: result of reduce at {{.*}}.mlir:{{[0-9]+}}: maximum over "t"
// CHECK-NEXT: all_reduce t 4 132 198 forward {{.*}}: result of reduce at {{.*}}.mlir:{{[0-9]+}}: sum over "t"
// CHECK-NEXT: wire bytes per device: 390
// CHECK-NEXT: matmul FLOPs per device: 524288

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 390
// CHEAPEST-NEXT: matmul FLOPs per device: 524288

module @classes attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["t" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32xi32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x1024xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>})
      -> tensor<f32> {
    %z = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x1024xf32> -> tensor<32x1024xf32>
    %loss = shardc.softmax_cross_entropy %z, %y : tensor<32x1024xf32>, tensor<32xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
