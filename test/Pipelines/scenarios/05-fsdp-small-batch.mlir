// FSDP with a small batch: `follow` still gathers the weights.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_gather d 4 33574912 25181184 forward {{.*}}: w1 is stored sharded over "d" and gathered at its use in dot_general at {{.*}}.mlir:{{[0-9]+}}; b1 is stored sharded over "d" and gathered at its use in broadcast at {{.*}}.mlir:{{[0-9]+}}; w2 is stored sharded over "d" and gathered at its use in dot_general at {{.*}}.mlir:{{[0-9]+}}; b2 is stored sharded over "d" and gathered at its use in broadcast at {{.*}}.mlir:{{[0-9]+}}
// CHECK-NEXT: all_reduce d 4 4 6 forward {{.*}}: loss: sum over "d"
// CHECK-NEXT: reduce_scatter d 4 33574912 25181184 backward {{.*}}: gradient of b2: sum over "d"; gradient of w2: contraction over "d"; gradient of b1: sum over "d"; gradient of w1: contraction over "d"
// CHECK-NEXT: wire bytes per device: 50362374
// CHECK-NEXT: matmul FLOPs per device: 10737418240

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 15731712
// CHEAPEST-NEXT: matmul FLOPs per device: 10737418240

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<1024x1024xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %y: tensor<1024x1024xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<1024x4096xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %b1: tensor<4096xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>},
      %w2: tensor<4096x1024xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %b2: tensor<1024xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<1024x1024xf32>, tensor<1024x4096xf32>, tensor<4096xf32> -> tensor<1024x4096xf32>
    %a = shardc.relu %h : tensor<1024x4096xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<1024x4096xf32>, tensor<4096x1024xf32>, tensor<1024xf32> -> tensor<1024x1024xf32>
    %loss = shardc.mse %o, %y : tensor<1024x1024xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
