// A weight used twice: partial gradients are added, then reduced once.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce d 4 1028 1542 backward {{.*}}: loss: sum over "d"; gradient of w: partial sums over "d"
// CHECK-NEXT: wire bytes per device: 1542
// CHECK-NEXT: matmul FLOPs per device: 20480

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 1542
// CHEAPEST-NEXT: matmul FLOPs per device: 20480

module @tied attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %a = shardc.relu %h : tensor<32x16xf32>
    %o = shardc.linear %a, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %loss = shardc.mse %o, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
