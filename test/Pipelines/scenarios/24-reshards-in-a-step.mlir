// The reshards of row 24 within a train step, forward and backward. With `follow`
// the first constraint is taken up by the GEMM's rows.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_gather y 2 3072 1536 forward {{.*}}: w1 is stored sharded over "y"
// CHECK-NEXT: reduce_scatter x 2 512 256 forward
// CHECK-NEXT: collective_permute y,x 4 256 256 forward
// CHECK-NEXT: all_gather y 2 512 256 forward
// CHECK-NEXT: all_to_all x 2 512 256 forward
// CHECK-NEXT: all_gather x 2 1024 512 forward
// CHECK-NEXT: all_to_all y 2 256 128 forward
// CHECK-NEXT: collective_permute x,y 4 256 256 forward
// CHECK: wire bytes per device: 6918
// CHECK-NEXT: matmul FLOPs per device: 57344

// CHEAPEST-LABEL: @train_step
// CHEAPEST-NEXT: collective axes group bytes wire bytes part source: cause
// CHEAPEST-NEXT: reduce_scatter y 2 1024 512 forward
// CHEAPEST-NEXT: all_reduce x 2 512 512 forward
// CHEAPEST: wire bytes per device: 5126
// CHEAPEST-NEXT: matmul FLOPs per device: 57344

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["x" = 2, "y" = 2]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"y", "x"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"x", "y"}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"x", "y"}, {}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1 : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h : tensor<32x64xf32>
    %z = shardc.linear %a, %w2 : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
    %z0 = shardc.sharding_constraint %z sharding = <@mesh, [{"y"}, {}]> : tensor<32x8xf32>
    %r0 = shardc.relu %z0 : tensor<32x8xf32>
    %z1 = shardc.sharding_constraint %r0 sharding = <@mesh, [{"x"}, {}]> : tensor<32x8xf32>
    %r1 = shardc.relu %z1 : tensor<32x8xf32>
    %z2 = shardc.sharding_constraint %r1 sharding = <@mesh, [{}, {"x"}]> : tensor<32x8xf32>
    %r2 = shardc.relu %z2 : tensor<32x8xf32>
    %z3 = shardc.sharding_constraint %r2 sharding = <@mesh, [{}, {}]> : tensor<32x8xf32>
    %r3 = shardc.relu %z3 : tensor<32x8xf32>
    %z4 = shardc.sharding_constraint %r3 sharding = <@mesh, [{"x"}, {"y"}]> : tensor<32x8xf32>
    %r4 = shardc.relu %z4 : tensor<32x8xf32>
    %z5 = shardc.sharding_constraint %r4 sharding = <@mesh, [{"x", "y"}, {}]> : tensor<32x8xf32>
    %r5 = shardc.relu %z5 : tensor<32x8xf32>
    %z6 = shardc.sharding_constraint %r5 sharding = <@mesh, [{"y", "x"}, {}]> : tensor<32x8xf32>
    %loss = shardc.mse %z6, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
