// RUN: shardc-opt %s --split-input-file --shardc-differentiate --shardc-split-microbatches | FileCheck %s

// Without microbatches nothing changes.

// CHECK-LABEL: module @whole
// CHECK-NOT: shardc.accumulate
module @whole attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// Forward and backward are in the loop, on a quarter of the rows; the mean is
// still over all of them, and is taken of the sum. The update is outside.

// CHECK-LABEL: module @mean
// CHECK: func.func @train_step(%[[W:.*]]: tensor<4x2xf32> {{.*}}, %[[X:.*]]: tensor<8x4xf32> {{.*}}, %[[Y:.*]]: tensor<8x2xf32>
// CHECK: %[[ROWS:.*]] = shardc.constant {{.*}} dense<1.600000e+01> : tensor<f32>
// CHECK: %[[SUMS:.*]]:2 = shardc.accumulate 4 of(%[[X]], %[[Y]])
// CHECK-SAME: (tensor<8x4xf32>, tensor<8x2xf32>) -> (tensor<f32>, tensor<4x2xf32>) {
// CHECK: ^bb0(%[[XI:.*]]: tensor<2x4xf32>, %[[YI:.*]]: tensor<2x2xf32>):
// CHECK: %[[O:.*]] = shardc.dot_general %[[XI]], %[[W]]
// CHECK: %[[D:.*]] = shardc.sub %[[O]], %[[YI]]
// CHECK: %[[TOTAL:.*]] = shardc.reduce sum
// CHECK: shardc.constant {{.*}} dense<1.250000e-01> : tensor<2x2xf32>
// CHECK: %[[DW:.*]] = shardc.dot_general
// CHECK-SAME: tensor<4x2xf32>
// CHECK: shardc.yield %[[TOTAL]], %[[DW]]
// CHECK: %[[LOSS:.*]] = shardc.div %[[SUMS]]#0, %[[ROWS]]
// CHECK: shardc.mul %[[SUMS]]#1
// CHECK: shardc.sub %[[W]]
// CHECK: return %{{.*}}, %[[LOSS]]
// CHECK: func.func @evaluate
// CHECK-NOT: shardc.accumulate
module @mean attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 4>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x2xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = shardc.mse %0, %y : tensor<8x2xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// A term of the loss that no row has a part in is computed and added once,
// outside. Random numbers are those of the rows.

// CHECK-LABEL: module @penalty
// CHECK: func.func @train_step(%[[W:.*]]: tensor<4x2xf32> {{.*}}, %[[STEP:.*]]: tensor<i32>
// CHECK: %[[SQUARE:.*]] = shardc.mul %[[W]], %[[W]]
// CHECK: %[[PENALTY:.*]] = shardc.reduce sum %[[SQUARE]]
// CHECK: %[[SUMS:.*]]:2 = shardc.accumulate 2 of
// CHECK: shardc.random_uniform %[[STEP]] stream = 0 microbatch = [2, 4] {{.*}} -> tensor<4x2xf32>
// CHECK: shardc.yield
// CHECK: shardc.add %[[SUMS]]#0, %[[PENALTY]]
module @penalty attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 2>} {
  func.func @loss(
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = shardc.dropout %0 rate = 0.5 stream = 0 : tensor<8x2xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    %3 = shardc.mul %w, %w : tensor<4x2xf32>
    %4 = shardc.reduce sum %3 dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
    %5 = shardc.add %2, %4 : tensor<f32>
    return %5 : tensor<f32>
  }
}

// -----

// Ten rows in three microbatches over two devices are twelve, of which two are
// padding: masked where rows are added up, and nowhere else. The evaluation is
// cut, too.

// CHECK-LABEL: module @padded
// CHECK: func.func @train_step(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<12x4xf32> {{{[^}]*}}"x"{{.*}}shardc.unpadded_rows = 10 : i64
// CHECK: shardc.accumulate 3 of(%[[X]]) {{.*}} : (tensor<12x4xf32>) -> (tensor<f32>, tensor<4x2xf32>) {
// CHECK: ^bb0(%[[PART:.*]]: tensor<4x4xf32>):
// CHECK-NEXT: %[[Z:.*]] = shardc.dot_general %[[PART]], %{{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: %[[SQUARES:.*]] = shardc.mul %[[Z]], %[[Z]]
// CHECK-NEXT: %[[ROW:.*]] = shardc.iota dim = 0 microbatch = [3, 4] {{.*}} : tensor<4x2xi32>
// CHECK-NEXT: %[[END:.*]] = shardc.constant {{.*}} dense<10> : tensor<4x2xi32>
// CHECK-NEXT: %[[IS_DATA:.*]] = shardc.compare lt %[[ROW]], %[[END]]
// CHECK-NEXT: %[[ZERO:.*]] = shardc.constant {{.*}} dense<0.000000e+00> : tensor<4x2xf32>
// CHECK-NEXT: %[[MASKED:.*]] = shardc.select %[[IS_DATA]], %[[SQUARES]], %[[ZERO]]
// CHECK-NEXT: shardc.reduce sum %[[MASKED]]
// CHECK: shardc.iota {{.*}} tensor<4x4xi32>
// CHECK: shardc.select %{{.*}}, %[[PART]],
// CHECK: shardc.dot_general %{{.*}} contracting = [0] x [0]
// CHECK-NEXT: shardc.yield
// CHECK: func.func @evaluate(
// CHECK-SAME: tensor<12x4xf32>
// CHECK: shardc.accumulate 3 of
module @padded attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 3>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      %x: tensor<10x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<10x4xf32>, tensor<4x2xf32> -> tensor<10x2xf32>
    %1 = shardc.mul %0, %0 : tensor<10x2xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<10x2xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}
