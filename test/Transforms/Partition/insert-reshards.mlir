// RUN: shardc-opt %s --split-input-file --shardc-propagate --shardc-insert-reshards | FileCheck %s

shardc.mesh @mesh <["d" = 4]>

// Producer and user agree: nothing is inserted.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: shardc.reshard
func.func @nothing(%x: tensor<8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
  %0 = shardc.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shardc.mesh @mesh <["d" = 4]>

// A gathered weight is gathered once for all its uses.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:[^ ]*]]: {{.*}} %[[W:[^ ]*]]: tensor<16x16xf32>
// CHECK: %[[G:.*]] = shardc.reshard %[[W]] from #sharding_d_r to #sharding_r_r
// CHECK-SAME: cause = "w is stored sharded over \22d\22 and gathered at its use in dot_general at insert-reshards.mlir:{{[0-9]+.*}}"
// CHECK: %[[H:.*]] = shardc.dot_general %[[X]], %[[G]]
// CHECK-NOT: shardc.reshard
// CHECK: shardc.dot_general %[[H]], %[[G]]
func.func @shared(
    %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
    %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>}) -> tensor<32x16xf32> {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  %1 = shardc.dot_general %0, %w contracting = [1] x [0] : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}

// -----

shardc.mesh @mesh <["t" = 4]>

// A maximum over shards is reduced at once, as a maximum.
// CHECK-LABEL: func.func @maximum
// CHECK: %[[M:.*]] = shardc.reduce max
// CHECK: shardc.reshard %[[M]] from #sharding_r_unreduced to #sharding_r 
// CHECK-SAME: cause = "{{.*}}: maximum over \22t\22"
// CHECK-SAME: shardc.reduction = #shardc<reduction max>
func.func @maximum(%x: tensor<8x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>}) -> tensor<8xf32> {
  %0 = shardc.reduce max %x dims = [1] : tensor<8x16xf32> -> tensor<8xf32>
  %1 = shardc.exp %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

shardc.mesh @mesh <["d" = 4]>

// A constraint becomes a reshard; values made from nothing are made anew.
// CHECK-LABEL: func.func @constraint
// CHECK-NOT: sharding_constraint
// CHECK: shardc.reshard {{.*}} from #sharding_d_r to #sharding_r_d
func.func @constraint(%x: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>}) -> tensor<8x8xf32> {
  %0 = shardc.exp %x : tensor<8x8xf32>
  %1 = shardc.sharding_constraint %0 sharding = <@mesh, [{}, {"d"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
