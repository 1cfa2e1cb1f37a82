// RUN: shardc-opt %s --split-input-file --shardc-propagate --shardc-insert-reshards --shardc-partition | FileCheck %s

shardc.mesh @mesh <["d" = 1]>

// One device: nothing changes but the attributes.
// CHECK-LABEL: func.func @nothing
// CHECK-SAME: tensor<8xf32> {shardc.global_shape = array<i64: 8>
// CHECK: shardc.exp %{{.*}} : tensor<8xf32>
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = shardc.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shardc.mesh @mesh <["d" = 4]>

// Both operands of a contraction are masked: 0 times NaN is NaN.
// CHECK-LABEL: func.func @uneven
// CHECK-SAME: %[[A:[^ ]*]]: tensor<8x16xf32> {{.*}} %[[W:[^ ]*]]: tensor<16x4xf32>
// CHECK: %[[MA:.*]] = shardc.mask %[[A]] dims = [1] fill = 0.000000e+00 shard = {{.*}} global_shape = [8, 62] : tensor<8x16xf32>
// CHECK: %[[MW:.*]] = shardc.mask %[[W]] dims = [0] fill = 0.000000e+00 shard = {{.*}} global_shape = [62, 4] : tensor<16x4xf32>
// CHECK: %[[Z:.*]] = shardc.dot_general %[[MA]], %[[MW]]
// CHECK: shardc.all_reduce sum %[[Z]] over @mesh["d"]
// CHECK-SAME: shardc.cause
func.func @uneven(
    %a: tensor<8x62xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"d"}]>},
    %w: tensor<62x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>}) -> tensor<8x4xf32> {
  %0 = shardc.dot_general %a, %w contracting = [1] x [0] : tensor<8x62xf32>, tensor<62x4xf32> -> tensor<8x4xf32>
  %1 = shardc.exp %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

shardc.mesh @mesh <["d" = 4]>

// The lowest value pads a maximum; an elementwise op needs no mask.
// CHECK-LABEL: func.func @maximum
// CHECK: %[[E:.*]] = shardc.exp %{{.*}} : tensor<8xf32>
// CHECK: %[[M:.*]] = shardc.mask %[[E]] dims = [0] fill = 0xFFF0000000000000
// CHECK: %[[R:.*]] = shardc.reduce max %[[M]] dims = [0]
// CHECK: shardc.all_reduce max %[[R]] over @mesh["d"]
func.func @maximum(%x: tensor<30xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>}) -> tensor<f32> {
  %0 = shardc.exp %x : tensor<30xf32>
  %1 = shardc.reduce max %0 dims = [0] : tensor<30xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

shardc.mesh @mesh <["d" = 4]>

// Ops that need global indices get the position of their shard.
// CHECK-LABEL: func.func @indices
// CHECK: shardc.iota dim = 0 shard = {{.*}} : tensor<2x4xi32>
// CHECK: shardc.random_uniform %{{.*}} stream = 3 shard = {{.*}} global_shape = [8, 4] : tensor<i32> -> tensor<2x4xf32>
// CHECK: shardc.constant dense<2.0{{.*}}> : tensor<2x4xf32>
func.func @indices(%step: tensor<i32>,
    %x: tensor<8x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>}) -> tensor<8x4xf32> {
  %0 = shardc.iota dim = 0 : tensor<8x4xi32>
  %1 = shardc.convert %0 : tensor<8x4xi32> -> tensor<8x4xf32>
  %2 = shardc.random_uniform %step stream = 3 : tensor<i32> -> tensor<8x4xf32>
  %3 = shardc.constant dense<2.0> : tensor<8x4xf32>
  %4 = shardc.mul %2, %3 : tensor<8x4xf32>
  %5 = shardc.add %1, %4 : tensor<8x4xf32>
  %6 = shardc.add %x, %5 : tensor<8x4xf32>
  return %6 : tensor<8x4xf32>
}

// -----

shardc.mesh @mesh <["x" = 2, "y" = 2]>

// CHECK-LABEL: func.func @reshards
// CHECK: shardc.all_to_all %{{.*}} over @mesh["x"] split_dim = 1 concat_dim = 0 {{.*}} : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK: shardc.collective_permute %{{.*}} over @mesh["x", "y"] to ["y", "x"] {{.*}} : tensor<8x2xf32>
// CHECK: shardc.all_gather %{{.*}} over @mesh["x"] dims = [1] {{.*}} : (tensor<8x2xf32>) -> tensor<8x4xf32>
func.func @reshards(%a: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = shardc.exp %a : tensor<8x8xf32>
  %1 = shardc.sharding_constraint %0 sharding = <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %2 = shardc.exp %1 : tensor<8x8xf32>
  %3 = shardc.sharding_constraint %2 sharding = <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

shardc.mesh @mesh <["x" = 2, "y" = 2]>

// Rows of which each device has one are sent on, over the axes of their
// dimension; others are in no two places.
// CHECK-LABEL: func.func @rows
// CHECK: shardc.collective_permute %{{.*}} over @mesh["x", "y"] to ["x", "y"] sources = [3, 0, 1, 2] {shardc.cause = "{{.*}}: rows over \22x\22, \22y\22"{{.*}}} : tensor<1x6xf32>
// CHECK: shardc.all_gather %{{.*}} over @mesh["x"] dims = [0] {{.*}} : (tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK: shardc.permute_rows %{{.*}} dim = 0 sources = [3, 0, 1, 2] : tensor<4x6xf32>
// CHECK: shardc.permute_rows %{{.*}} dim = 1 sources = [5, 0, 1, 2, 3, 4] : tensor<1x6xf32>
func.func @rows(%a: tensor<4x6xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x", "y"}, {}]>},
                %b: tensor<4x6xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = shardc.permute_rows %a dim = 0 sources = [3, 0, 1, 2] : tensor<4x6xf32>
  %1 = shardc.permute_rows %b dim = 0 sources = [3, 0, 1, 2] : tensor<4x6xf32>
  %2 = shardc.permute_rows %a dim = 1 sources = [5, 0, 1, 2, 3, 4] : tensor<4x6xf32>
  return %0, %1, %2 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}
