// RUN: shardc-opt %s --split-input-file --shardc-propagate | FileCheck %s

// Nothing is annotated: nothing is sharded.
shardc.mesh @mesh <["d" = 1]>

// CHECK-LABEL: func.func @nothing
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32> {shardc.sharding = #[[R:.*]]}
// CHECK: shardc.exp %[[X]] {shardc.strategy = #shardc.strategy<[{}, {}]>}
// CHECK-NOT: shardc.origin
func.func @nothing(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = shardc.exp %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Column then row: the contraction leaves partial sums, which the bias ends.
shardc.mesh @mesh <["d" = 2, "t" = 4]>

// CHECK-LABEL: func.func @tensor_parallel
// CHECK: dot_general {{.*}}shardc.origin = ["d: x", "t: w1"], shardc.strategy = #shardc.strategy<[{"d"}, {"t"}, {}]>
// CHECK: tanh {{.*}}#shardc.strategy<[{"d"}, {"t"}]>
// CHECK: dot_general {{.*}}#shardc.strategy<[{"d"}, {}, {"t"}]>
// CHECK: broadcast {{.*}}#shardc.strategy<[{"d"}, {}]>
// CHECK: add {{.*}}#shardc.strategy<[{"d"}, {}]>
func.func @tensor_parallel(
    %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
    %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
    %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>},
    %b: tensor<8xf32> {shardc.role = #shardc.parameter<"b", constant(0.0)>}) -> tensor<32x8xf32> {
  %0 = shardc.dot_general %x, %w1 contracting = [1] x [0] : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
  %1 = shardc.tanh %0 : tensor<32x64xf32>
  %2 = shardc.dot_general %1, %w2 contracting = [1] x [0] : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
  %3 = shardc.broadcast %b dims = [1] : tensor<8xf32> -> tensor<32x8xf32>
  %4 = shardc.add %2, %3 : tensor<32x8xf32>
  return %4 : tensor<32x8xf32>
}

// -----

// Two GEMMs of one sum are added before they are reduced.
shardc.mesh @mesh <["t" = 4]>

// CHECK-LABEL: func.func @partial_sums
// CHECK: add {{.*}}#shardc.strategy<[{}, {}], unreduced={"t"}>
func.func @partial_sums(
    %a: tensor<8x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
    %v: tensor<16x8xf32>, %w: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = shardc.dot_general %a, %v contracting = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  %1 = shardc.dot_general %a, %w contracting = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  %2 = shardc.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A constraint is met exactly, whatever its operand has; it is stronger than an
// input's sharding, whose other axes stay.
shardc.mesh @mesh <["d" = 2, "t" = 2]>

// CHECK-LABEL: func.func @constraint
// CHECK: exp {{.*}}shardc.origin = ["d: argument 0", "t: constraint at propagate.mlir:{{[0-9]+.*}}"], shardc.strategy = #shardc.strategy<[{"t", "d"}, {}]>
// CHECK: sharding_constraint {{.*}}shardc.origin = ["t: constraint at propagate.mlir:{{[0-9]+.*}}"], shardc.strategy = #shardc.strategy<[{"t"}, {}]>
func.func @constraint(
    %x: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {"t"}]>}) -> tensor<8x8xf32> {
  %0 = shardc.exp %x : tensor<8x8xf32>
  %1 = shardc.sharding_constraint %0 sharding = <@mesh, [{"t"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Axes of a dimension that a reshape divides: those behind the ones that leave
// one index of the major part are of the next part.
shardc.mesh @mesh <["d" = 2, "t" = 4]>

// CHECK-LABEL: func.func @divided
// CHECK: reshape {{.*}}#shardc.strategy<[{"d"}, {"t"}, {}]>
// CHECK: exp {{.*}}#shardc.strategy<[{"d"}, {"t"}, {}]>
// CHECK: reshape {{.*}}#shardc.strategy<[{"d"}, {"t"}, {}]>
func.func @divided(%x: tensor<64xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d", "t"}]>}) -> tensor<64xf32> {
  %0 = shardc.reshape %x : tensor<64xf32> -> tensor<2x4x8xf32>
  %1 = shardc.exp %0 : tensor<2x4x8xf32>
  %2 = shardc.reshape %1 : tensor<2x4x8xf32> -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// The major part has more than one index on a device: nothing follows it.
shardc.mesh @mesh <["d" = 2, "t" = 4]>

// CHECK-LABEL: func.func @shared
// CHECK: reshape {{.*}}#shardc.strategy<[{"d"}, {}]>
func.func @shared(%x: tensor<64xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d", "t"}]>}) -> tensor<4x16xf32> {
  %0 = shardc.reshape %x : tensor<64xf32> -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
