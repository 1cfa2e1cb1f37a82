// RUN: shardc-opt %s --split-input-file --shardc-differentiate --shardc-split-microbatches --shardc-insert-transfers | FileCheck %s

// Without a pipeline nothing changes.

// CHECK-LABEL: module @none
// CHECK-NOT: shardc.transfer
module @none attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// An activation crosses forward, its gradient backward, each once for all uses. Updates
// and states are where the parameter is used; the step is on every rank. One microbatch
// is a loop, too.

// CHECK-LABEL: module @two
// CHECK: func.func @train_step
// CHECK: shardc.accumulate 1
// CHECK: %[[Z:.*]] = shardc.dot_general {{.*}}shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
// CHECK-NEXT: %[[A:.*]] = shardc.tanh %[[Z]] {{.*}}shardc.stage = 0
// CHECK-NEXT: %[[T:.*]] = shardc.transfer %[[A]] from 0 to 1
// CHECK: shardc.dot_general %[[T]], {{.*}}shardc.stage = 1 : i64} : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
// CHECK: %[[G:.*]] = shardc.dot_general {{.*}}shardc.stage = 1 : i64} : {{.*}} -> tensor<8x6xf32>
// CHECK-NEXT: shardc.transfer %[[G]] from 1 to 0
// CHECK: shardc.dot_general %[[T]], {{.*}}shardc.stage = 1 : i64} : tensor<8x6xf32>, tensor<8x2xf32> -> tensor<6x2xf32>
// CHECK: shardc.dot_general {{.*}}shardc.stage = 0 : i64} : {{.*}} -> tensor<4x6xf32>
// CHECK: shardc.yield
// CHECK-NOT: shardc.transfer
// CHECK: shardc.mul {{.*}}shardc.part<update>, shardc.stage = 0 : i64} : tensor<4x6xf32>
// CHECK: shardc.mul {{.*}}shardc.part<update>, shardc.stage = 1 : i64} : tensor<6x2xf32>
// CHECK: shardc.add {{.*}}{shardc.part = #shardc.part<update>} : tensor<i32>
// CHECK: func.func @evaluate
// CHECK: shardc.accumulate 1
// CHECK: shardc.transfer {{.*}} from 0 to 1
// CHECK-NOT: shardc.transfer
// CHECK: func.func @predict
// CHECK: shardc.accumulate 1
// CHECK: shardc.transfer {{.*}} from 0 to 1
// CHECK-NOT: shardc.transfer
module @two attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x2xf32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<4x6xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<6x2xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w0 {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
    %a = shardc.tanh %0 {shardc.stage = 0 : i64} : tensor<8x6xf32>
    %1 = shardc.linear %a, %w1 {shardc.stage = 1 : i64} : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
    %m = shardc.mul %1, %y {shardc.stage = 1 : i64} : tensor<8x2xf32>
    %2 = shardc.reduce sum %m dims = [0, 1] {shardc.stage = 1 : i64} : tensor<8x2xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----

// Nothing crosses between two stages of one rank: stages 0 and 2 are on rank 0.

// CHECK-LABEL: module @chunks
// CHECK: func.func @evaluate
// CHECK: %[[A:.*]] = shardc.exp {{.*}}shardc.stage = 0
// CHECK-NEXT: %[[T:.*]] = shardc.transfer %[[A]] from 0 to 1
// CHECK-NEXT: %[[B:.*]] = shardc.exp %[[T]] {{.*}}shardc.stage = 1
// CHECK-NEXT: %[[U:.*]] = shardc.transfer %[[B]] from 1 to 2
// CHECK-NEXT: %[[C:.*]] = shardc.add %[[U]], %[[A]] {{.*}}shardc.stage = 2
// CHECK-NEXT: shardc.transfer %[[C]] from 2 to 3
module @chunks attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 2>, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 2>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %a = shardc.exp %0 {shardc.stage = 0 : i64} : tensor<8x4xf32>
    %b = shardc.exp %a {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %c = shardc.add %b, %a {shardc.stage = 2 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %c dims = [0, 1] {shardc.stage = 3 : i64} : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}
