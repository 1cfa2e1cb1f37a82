// From one sharding to another by the fewest bytes.

// RUN: shardc-opt %s --compile-from=differentiate --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-from=differentiate --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-from=differentiate --compile-to=collectives \
// RUN:   | FileCheck %s --check-prefix=SLICES

// CHECK-LABEL: @all_to_all
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_to_all x 2 128 64 forward
// CHECK-NEXT: wire bytes per device: 64

// CHECK-LABEL: @permute
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: collective_permute x,y 4 128 128 forward
// CHECK-NEXT: wire bytes per device: 128

// CHECK-LABEL: @slices
// CHECK-NEXT: no communication
// SLICES-LABEL: func.func @slices
// SLICES-COUNT-2: shardc.slice
// SLICES-NOT: shardc.slice
// SLICES: return

// CHECK-LABEL: @partial_sums
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: reduce_scatter y 2 256 128 forward
// CHECK-NEXT: all_reduce x 2 128 128 forward
// CHECK-NEXT: wire bytes per device: 256

// CHECK-LABEL: @order
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: collective_permute x,y 4 16 16 forward
// CHECK-NEXT: wire bytes per device: 16

shardc.mesh @mesh <["x" = 2, "y" = 2]>

func.func @all_to_all(%a: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"x"}]>}) {
  return %a : tensor<8x8xf32>
}

func.func @permute(%a: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"y"}, {}]>}) {
  return %a : tensor<8x8xf32>
}

func.func @slices(%a: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x"}, {"y"}]>}) {
  return %a : tensor<8x8xf32>
}

func.func @partial_sums(%a: tensor<8x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"x", "y"}]>}, %b: tensor<16x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x", "y"}, {}]>})
    -> (tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = shardc.dot_general %a, %b contracting = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  %1 = shardc.sharding_constraint %0 sharding = <@mesh, [{}, {}], unreduced={"x", "y"}> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

func.func @order(%a: tensor<16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x", "y"}]>})
    -> (tensor<16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"y", "x"}]>}) {
  return %a : tensor<16xf32>
}
