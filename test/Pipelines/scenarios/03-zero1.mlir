// ZeRO-1: gradients are scattered to the states, new parameters gathered;
// the states never move.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce d 4 4 6 forward {{.*}}: loss: sum over "d"
// CHECK-NEXT: reduce_scatter d 4 6432 4824 backward {{.*}}: gradient of b2: sum over "d"; gradient of w2: contraction over "d"; gradient of b1: sum over "d"; gradient of w1: contraction over "d"
// CHECK-NEXT: all_gather d 4 6432 4824 update {{.*}}: new w1 is computed as [{"d"}, {}] and stored as [{}, {}]; new b1 is computed as [{"d"}] and stored as [{}]; new w2 is computed as [{"d"}, {}] and stored as [{}, {}]; new b2 is computed as [{"d"}] and stored as [{}]
// CHECK-NEXT: wire bytes per device: 9654
// CHECK-NEXT: matmul FLOPs per device: 57344

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 8664
// CHEAPEST-NEXT: matmul FLOPs per device: 57344

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"d"}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>, shardc.state_sharding = #shardc.sharding<@mesh, [{"d"}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
