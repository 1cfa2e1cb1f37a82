// 30 rows over 4 devices: padding costs nothing here.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST
// RUN: shardc-opt %s --compile-to=partition | FileCheck %s --check-prefix=IR

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce d 4 6436 9654 backward {{.*}}: loss: sum over "d"; gradient of b2: sum over "d"; gradient of w2: contraction over "d"; gradient of b1: sum over "d"; gradient of w1: contraction over "d"
// CHECK-NEXT: wire bytes per device: 9654
// CHECK-NEXT: matmul FLOPs per device: 57344

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 7872
// CHEAPEST-NEXT: matmul FLOPs per device: 53760

// The mean divides by 30 * 8, and padded rows are not among the summands.
// IR-LABEL: func.func @train_step
// IR: %[[MASKED:.*]] = shardc.mask %{{.*}} dims = [0] fill = 0.000000e+00 {{.*}} global_shape = [30, 8] {{.*}} : tensor<8x8xf32>
// IR: shardc.reduce sum %[[MASKED]] dims = [0, 1]
// IR: %[[COUNT:.*]] = shardc.constant {{.*}} dense<2.400000e+02>
// IR: shardc.div %{{.*}}, %[[COUNT]] {{.*}} : tensor<f32>

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<30x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %y: tensor<30x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<30x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<30x64xf32>
    %a = shardc.relu %h : tensor<30x64xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<30x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<30x8xf32>
    %loss = shardc.mse %o, %y : tensor<30x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
