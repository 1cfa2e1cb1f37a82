// Weights gathered again for the backward pass: one reshard per pass.

// RUN: shardc-opt %s --split-input-file --shardc-insert-reshards | FileCheck %s --check-prefixes=CHECK,HELD
// RUN: shardc-opt %s --split-input-file --shardc-insert-reshards=regather | FileCheck %s --check-prefixes=CHECK,AGAIN

#rows = #shardc.sharding<@mesh, [{"d"}, {}]>

shardc.mesh @mesh <["d" = 4]>

// Nothing is used in the backward pass: there is no choice. The mark keeps it
// from being held for others.
// CHECK-LABEL: func.func @forward_only
// CHECK-NOT: shardc.regather
// CHECK: %[[G:.*]] = shardc.reshard
// HELD-NOT: shardc.gathered_for
// AGAIN-SAME: shardc.gathered_for = #shardc.part<forward>
// CHECK-NOT: shardc.reshard
// CHECK: shardc.dot_general %{{.*}}, %[[G]]
func.func @forward_only(
    %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows},
    %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #rows})
    -> (tensor<32x16xf32> {shardc.sharding = #rows}) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0]
      {shardc.part = #shardc.part<forward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// -----

#rows = #shardc.sharding<@mesh, [{"d"}, {}]>

shardc.mesh @mesh <["d" = 4]>

// All uses of a pass share one: two of the forward pass, two of the backward.
// Gathered: 16*16*4 bytes, 3/4 of them from others.
// CHECK-LABEL: func.func @both
// CHECK-SAME: %[[X:[^ ]*]]: {{.*}} %[[W:[^ ]*]]: tensor<16x16xf32>
// HELD-SAME: shardc.regather = #shardc.regather<taken = false, wire_bytes = 768, held_bytes = 1024>
// AGAIN-SAME: shardc.regather = #shardc.regather<taken = true, wire_bytes = 768, held_bytes = 1024>
// CHECK: %[[G:.*]] = shardc.reshard %[[W]]
// AGAIN-SAME: shardc.gathered_for = #shardc.part<forward>
// CHECK: shardc.dot_general %[[X]], %[[G]]
// CHECK: shardc.dot_general %{{.*}}, %[[G]]
// CHECK-NEXT: shardc.exp
// HELD-NOT: shardc.reshard
// HELD: shardc.dot_general %{{.*}}, %[[G]]
// HELD: shardc.dot_general %{{.*}}, %[[G]]
// AGAIN-NEXT: %[[H:.*]] = shardc.reshard %[[W]]
// AGAIN-SAME: cause = "w is stored sharded over {{.*}} again for the backward pass"
// AGAIN-SAME: shardc.gathered_for = #shardc.part<backward>
// AGAIN-SAME: shardc.part = #shardc.part<backward>
// AGAIN: shardc.dot_general %{{.*}}, %[[H]]
// AGAIN-NOT: shardc.reshard
// AGAIN: shardc.dot_general %{{.*}}, %[[H]]
func.func @both(
    %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows},
    %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #rows})
    -> (tensor<32x16xf32> {shardc.sharding = #rows}) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0]
      {shardc.part = #shardc.part<forward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  %1 = shardc.dot_general %0, %w contracting = [1] x [0]
      {shardc.part = #shardc.part<forward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  %2 = shardc.exp %1
      {shardc.part = #shardc.part<backward>, shardc.strategy = #shardc.strategy<[{"d"}, {}]>} : tensor<32x16xf32>
  %3 = shardc.dot_general %2, %w contracting = [1] x [1]
      {shardc.part = #shardc.part<backward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  %4 = shardc.dot_general %3, %w contracting = [1] x [1]
      {shardc.part = #shardc.part<backward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  return %4 : tensor<32x16xf32>
}

// -----

#rows = #shardc.sharding<@mesh, [{"d"}, {}]>

shardc.mesh @mesh <["d" = 4]>

// Only weights are: a value computed in the forward pass is not made again.
// CHECK-LABEL: func.func @computed
// CHECK-NOT: shardc.regather
// CHECK-NOT: shardc.gathered_for
// CHECK: shardc.exp
// CHECK: shardc.reshard
// CHECK-NOT: shardc.reshard
// CHECK: return
func.func @computed(
    %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows},
    %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #rows})
    -> (tensor<32x16xf32> {shardc.sharding = #rows}) {
  %e = shardc.exp %w
      {shardc.part = #shardc.part<forward>, shardc.strategy = #shardc.strategy<[{"d"}, {}]>} : tensor<16x16xf32>
  %0 = shardc.dot_general %x, %e contracting = [1] x [0]
      {shardc.part = #shardc.part<forward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  %1 = shardc.dot_general %0, %e contracting = [1] x [1]
      {shardc.part = #shardc.part<backward>, shardc.strategy = #shardc.strategy<[{"d"}, {}, {}]>}
      : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}
