// A loop in the passes between `propagate` and `collectives`.
// RUN: shardc-opt %s --split-input-file --shardc-propagate --shardc-insert-reshards --shardc-partition \
// RUN:   --shardc-combine-collectives 2>/dev/null | FileCheck %s

// A parameter that the loop needs whole is gathered once, before it; the gradient
// stays a partial sum in it and is scattered once, after it.

// CHECK-LABEL: module @gathered
// CHECK: func.func @train_step(%[[X:.*]]: tensor<8x16xf32> {{.*}}, %[[W:.*]]: tensor<4x8xf32>
// CHECK: %[[WHOLE:.*]] = shardc.all_gather %[[W]] over @mesh["d"] dims = [0]
// CHECK: %[[SUM:.*]] = shardc.accumulate 2 of(%[[X]]) {{.*}} : (tensor<8x16xf32>) -> tensor<16x8xf32> {
// CHECK-NEXT: ^bb0(%[[PART:.*]]: tensor<4x16xf32>):
// CHECK-NEXT: %[[O:.*]] = shardc.dot_general %[[PART]], %[[WHOLE]]
// CHECK-NEXT: %[[G:.*]] = shardc.dot_general %[[PART]], %[[O]]
// CHECK-NEXT: shardc.yield %[[G]] : tensor<16x8xf32>
// CHECK: %[[DW:.*]] = shardc.reduce_scatter sum %[[SUM]] over @mesh["d"] dims = [0] {shardc.cause = "gradient of w: contraction over \22d\22"
// CHECK: shardc.sub %[[W]], %[[DW]]
module @gathered {
  shardc.mesh @mesh <["d" = 4]>
  func.func @train_step(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w: tensor<16x8xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>})
      -> (tensor<16x8xf32> {shardc.result = "w"}) {
    %0 = shardc.accumulate 2 of (%x) {shardc.part = #shardc.part<backward>} : (tensor<32x16xf32>) -> tensor<16x8xf32> {
    ^bb0(%a: tensor<16x16xf32>):
      %1 = shardc.dot_general %a, %w contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<16x16xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
      %2 = shardc.dot_general %a, %1 contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<16x16xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
      shardc.yield %2 : tensor<16x8xf32>
    }
    %3 = shardc.sub %w, %0 {shardc.part = #shardc.part<update>} : tensor<16x8xf32>
    return %3 : tensor<16x8xf32>
  }
}

// -----

// A contraction over shards is reduced in each run: its user is not linear.
// The padding of a parameter is masked once, before the loop.

// CHECK-LABEL: module @inside
// CHECK: func.func @train_step(%[[X:.*]]: tensor<8x2xf32> {{.*}}, %[[W:.*]]: tensor<2x4xf32>
// CHECK: %[[M:.*]] = shardc.mask %[[W]]
// CHECK: shardc.accumulate 2 of(%[[X]])
// CHECK: ^bb0(%[[PART:.*]]: tensor<4x2xf32>):
// CHECK: %[[MX:.*]] = shardc.mask %[[PART]]
// CHECK: %[[O:.*]] = shardc.dot_general %[[MX]], %[[M]]
// CHECK: %[[R:.*]] = shardc.all_reduce sum %[[O]] over @mesh["t"]
// CHECK: %[[A:.*]] = shardc.tanh %[[R]]
// CHECK: shardc.yield
// CHECK-NOT: all_reduce
module @inside {
  shardc.mesh @mesh <["t" = 4]>
  func.func @train_step(
      %x: tensor<8x6xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %w: tensor<6x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>})
      -> (tensor<6x4xf32> {shardc.result = "w"}) {
    %0 = shardc.accumulate 2 of (%x) {shardc.part = #shardc.part<backward>} : (tensor<8x6xf32>) -> tensor<6x4xf32> {
    ^bb0(%a: tensor<4x6xf32>):
      %1 = shardc.dot_general %a, %w contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<4x6xf32>, tensor<6x4xf32> -> tensor<4x4xf32>
      %2 = shardc.tanh %1 {shardc.part = #shardc.part<forward>} : tensor<4x4xf32>
      %3 = shardc.dot_general %a, %2 contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<4x6xf32>, tensor<4x4xf32> -> tensor<6x4xf32>
      shardc.yield %3 : tensor<6x4xf32>
    }
    %4 = shardc.sub %w, %0 {shardc.part = #shardc.part<update>} : tensor<6x4xf32>
    return %4 : tensor<6x4xf32>
  }
}

// -----

// Both operands of the loop take the rows of the one that is sharded, so that a
// run has the same rows of both; collectives of a run are one op of their own.

// CHECK-LABEL: module @together
// CHECK: func.func @train_step(%[[X:.*]]: tensor<4x8xf32> {{.*}}, %[[Y:.*]]: tensor<16x8xf32>
// CHECK: %[[ROWS:.*]] = shardc.slice %[[Y]] over @mesh["d"] dim = 0
// CHECK: shardc.accumulate 2 of(%[[X]], %[[ROWS]])
// CHECK: ^bb0(%[[XI:.*]]: tensor<2x8xf32>, %[[YI:.*]]: tensor<2x8xf32>):
// CHECK: %{{.*}}:2 = shardc.all_gather %{{.*}}, %{{.*}} over @mesh["d"] dims = [0, 0]
// CHECK: shardc.yield
module @together {
  shardc.mesh @mesh <["d" = 4]>
  func.func @train_step(
      %x: tensor<16x8xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %y: tensor<16x8xf32> {shardc.role = #shardc.input<"y">, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w: tensor<8x8xf32> {shardc.role = #shardc.parameter<"w", he_normal>})
      -> (tensor<8x8xf32> {shardc.result = "w"}) {
    %0 = shardc.accumulate 2 of (%x, %y) {shardc.part = #shardc.part<backward>} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
      %1 = shardc.sharding_constraint %a sharding = <@mesh, [{}, {}]> {shardc.part = #shardc.part<forward>} : tensor<8x8xf32>
      %2 = shardc.sharding_constraint %b sharding = <@mesh, [{}, {}]> {shardc.part = #shardc.part<forward>} : tensor<8x8xf32>
      %3 = shardc.dot_general %1, %2 contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
      shardc.yield %3 : tensor<8x8xf32>
    }
    %4 = shardc.sub %w, %0 {shardc.part = #shardc.part<update>} : tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }
}

// -----

// Of two places that reduce as many bytes the one after the loop is reduced once:
// partial sums over a model axis leave the loop as such, too.

// CHECK-LABEL: module @after
// CHECK: %[[SUM:.*]] = shardc.accumulate 2 of
// CHECK-NOT: all_reduce
// CHECK: shardc.neg
// CHECK-NOT: all_reduce
// CHECK: shardc.yield
// CHECK: shardc.all_reduce sum %[[SUM]] over @mesh["t"]
// CHECK-NOT: all_reduce
module @after {
  shardc.mesh @mesh <["t" = 4]>
  func.func @train_step(
      %x: tensor<8x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %w: tensor<16x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>},
      %b: tensor<4xf32> {shardc.role = #shardc.parameter<"b", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> (tensor<4xf32> {shardc.result = "b"}) {
    %0 = shardc.accumulate 2 of (%x) {shardc.part = #shardc.part<backward>} : (tensor<8x16xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4x16xf32>):
      %1 = shardc.dot_general %a, %w contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : tensor<4x16xf32>, tensor<16x4xf32> -> tensor<4x4xf32>
      %2 = shardc.reduce sum %1 dims = [0] {shardc.part = #shardc.part<backward>} : tensor<4x4xf32> -> tensor<4xf32>
      %3 = shardc.neg %2 {shardc.part = #shardc.part<backward>} : tensor<4xf32>
      shardc.yield %3 : tensor<4xf32>
    }
    %4 = shardc.exp %0 {shardc.part = #shardc.part<update>} : tensor<4xf32>
    %5 = shardc.sub %b, %4 {shardc.part = #shardc.part<update>} : tensor<4xf32>
    return %5 : tensor<4xf32>
  }
}
