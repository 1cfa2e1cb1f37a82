// Data parallel with four microbatches: gradients are accumulated unreduced and
// reduced once per step, in the one all_reduce of a step without microbatches.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST
// RUN: shardc-opt %s --compile-to=collectives | FileCheck %s --check-prefix=IR
// RUN: shardc-compile %s --report=comm | FileCheck %s --check-prefix=PLAN

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce d 4 6436 9654 backward {{.*}}: gradient of w1: contraction over "d"; gradient of b1: sum over "d"; gradient of w2: contraction over "d"; gradient of b2: sum over "d"; loss: sum over "d"
// CHECK-NEXT: wire bytes per device: 9654
// CHECK-NEXT: matmul FLOPs per device: 57344

// IR-LABEL: func.func @train_step
// IR: shardc.accumulate 4 of(%{{.*}}, %{{.*}}) {{.*}} : (tensor<8x16xf32>, tensor<8x8xf32>) -> ({{.*}}) {
// IR-NEXT: ^bb0(%{{.*}}: tensor<2x16xf32>, %{{.*}}: tensor<2x8xf32>):
// IR-NOT: all_reduce
// IR: shardc.yield
// IR: shardc.all_reduce

// PLAN: total: 9654 bytes on the wire, 57344 matmul FLOPs

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 7872
// CHEAPEST-NEXT: matmul FLOPs per device: 57344

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
