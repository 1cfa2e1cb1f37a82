// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest" 2>&1 | FileCheck %s --check-prefix=CHEAPEST
// RUN: shardc-opt %s --shardc-propagate -o /dev/null

// CHEAPEST: propagate-cheapest-axes.mlir:[[# @LINE + 1]]:1: error: 'shardc.mesh' op has 5 axes of more than one device; partition=cheapest searches meshes of at most 4
shardc.mesh @mesh <["a" = 2, "b" = 2, "one" = 1, "c" = 2, "d" = 2, "e" = 2]>
func.func @f(%x: tensor<32x32xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a", "b"}, {"c"}]>},
             %w: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
