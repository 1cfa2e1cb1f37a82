// RUN: shardc-opt %s --split-input-file --shardc-import --shardc-assign-stages | FileCheck %s

// Without a pipeline nothing changes.

// CHECK-LABEL: module @none
// CHECK-NOT: shardc.stage
module @none attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w0: tensor<4x6xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<6x2xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w0 : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
    %1 = shardc.linear %0, %w1 : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
    %loss = shardc.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Among equal cuts ops go to the earlier stage; what follows the last annotated
// op is on the last stage.

// CHECK-LABEL: module @follow
// CHECK: shardc.linear {{.*}}shardc.stage = 0
// CHECK: shardc.relu {{.*}}shardc.stage = 0
// CHECK: shardc.linear {{.*}}shardc.stage = 1
// CHECK: shardc.reduce {{.*}}shardc.stage = 1
module @follow attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w0: tensor<4x6xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<6x2xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w0 {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
    %r = shardc.relu %0 : tensor<8x6xf32>
    %1 = shardc.linear %r, %w1 {shardc.stage = 1 : i64} : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
    %loss = shardc.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The narrowest value crosses: 2 columns, not 6.

// CHECK-LABEL: module @narrow
// CHECK: shardc.linear {{.*}}shardc.stage = 0
// CHECK: shardc.relu {{.*}}shardc.stage = 0
// CHECK: shardc.linear {{.*}}shardc.stage = 0
// CHECK: shardc.tanh {{.*}}shardc.stage = 0
// CHECK: shardc.reduce {{.*}}shardc.stage = 1
module @narrow attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w0: tensor<4x6xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<6x2xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w0 {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
    %r = shardc.relu %0 : tensor<8x6xf32>
    %1 = shardc.linear %r, %w1 : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
    %t = shardc.tanh %1 : tensor<8x2xf32>
    %loss = shardc.reduce sum %t dims = [0, 1] {shardc.stage = 1 : i64} : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Gradients cross, too: 4 columns of a value without one are fewer bytes than 6 with
// one, and no weight crosses.

// CHECK-LABEL: module @gradients
// CHECK: shardc.exp {{.*}}shardc.stage = 0
// CHECK: shardc.sin {{.*}}shardc.stage = 0
// CHECK: shardc.linear {{.*}}shardc.stage = 1
// CHECK: shardc.relu {{.*}}shardc.stage = 1
// CHECK: shardc.linear {{.*}}shardc.stage = 1
module @gradients attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w0: tensor<4x6xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<6x2xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %e = shardc.exp %x {shardc.stage = 0 : i64} : tensor<8x4xf32>
    %s = shardc.sin %e : tensor<8x4xf32>
    %0 = shardc.linear %s, %w0 : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
    %r = shardc.relu %0 : tensor<8x6xf32>
    %1 = shardc.linear %r, %w1 {shardc.stage = 1 : i64} : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
    %loss = shardc.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A pipeline of one stage is none.

// CHECK-LABEL: module @one
// CHECK-NOT: shardc.pipeline
// CHECK-NOT: shardc.stage
module @one attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["stage" = 1]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w0: tensor<4x6xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<6x2xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w0 {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
    %1 = shardc.linear %0, %w1 : tensor<8x6xf32>, tensor<6x2xf32> -> tensor<8x2xf32>
    %loss = shardc.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
