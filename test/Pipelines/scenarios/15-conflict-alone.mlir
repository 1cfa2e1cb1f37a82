// Row 15 by itself: rows of the input and columns of the weight claim one axis,
// and the result is open.

// RUN: shardc-opt %s --compile-from=differentiate --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-from=differentiate --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @first_layer
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_gather d 4 4096 3072 forward {{.*}}: argument 1 is stored sharded over "d" and gathered at its use in dot_general
// CHECK-NEXT: wire bytes per device: 3072
// CHECK-NEXT: matmul FLOPs per device: 16384

// CHEAPEST-LABEL: @first_layer
// CHEAPEST-NEXT: collective axes group bytes wire bytes part source: cause
// CHEAPEST-NEXT: all_gather d 4 2048 1536 forward {{.*}}: argument 0 is stored sharded over "d" and gathered at its use in dot_general
// CHEAPEST-NEXT: wire bytes per device: 1536
// CHEAPEST-NEXT: matmul FLOPs per device: 16384

shardc.mesh @mesh <["d" = 4]>

func.func @first_layer(
    %x: tensor<32x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
    %w1: tensor<16x64xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"d"}]>})
    -> tensor<32x64xf32> {
  %z = shardc.dot_general %x, %w1 contracting = [1] x [0] : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}
