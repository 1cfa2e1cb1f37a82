// HSDP: scattered over the shards, then reduced over the replicas.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_gather f 2 33574912 16787456 forward {{.*}}: w1 is stored sharded over "f" and gathered at its use in dot_general at {{.*}}.mlir:{{[0-9]+}}; b1 is stored sharded over "f" and gathered at its use in broadcast at {{.*}}.mlir:{{[0-9]+}}; w2 is stored sharded over "f" and gathered at its use in dot_general at {{.*}}.mlir:{{[0-9]+}}; b2 is stored sharded over "f" and gathered at its use in broadcast at {{.*}}.mlir:{{[0-9]+}}
// CHECK-NEXT: all_reduce r,f 4 4 6 forward {{.*}}: loss: sum over "r", "f"
// CHECK-NEXT: reduce_scatter f 2 33574912 16787456 backward {{.*}}: gradient of b2: sum over "r", "f"; gradient of w2: contraction over "r", "f"; gradient of b1: sum over "r", "f"; gradient of w1: contraction over "r", "f"
// CHECK-NEXT: all_reduce r 2 16787456 16787456 backward {{.*}}: gradient of b2: sum over "r", "f"; gradient of w2: contraction over "r", "f"; gradient of b1: sum over "r", "f"; gradient of w1: contraction over "r", "f"
// CHECK-NEXT: wire bytes per device: 50362374
// CHECK-NEXT: matmul FLOPs per device: 42949672960

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 35663876
// CHEAPEST-NEXT: matmul FLOPs per device: 42949672960

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["r" = 2, "f" = 2]>
  func.func @loss(
      %x: tensor<4096x1024xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"r", "f"}, {}]>},
      %y: tensor<4096x1024xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"r", "f"}, {}]>},
      %w1: tensor<1024x4096xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"f"}, {}]>},
      %b1: tensor<4096xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"f"}]>},
      %w2: tensor<4096x1024xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"f"}, {}]>},
      %b2: tensor<1024xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"f"}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<4096x1024xf32>, tensor<1024x4096xf32>, tensor<4096xf32> -> tensor<4096x4096xf32>
    %a = shardc.relu %h : tensor<4096x4096xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<4096x4096xf32>, tensor<4096x1024xf32>, tensor<1024xf32> -> tensor<4096x1024xf32>
    %loss = shardc.mse %o, %y : tensor<4096x1024xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
