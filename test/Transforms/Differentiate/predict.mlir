// RUN: shardc-opt %s --split-input-file --shardc-differentiate | FileCheck %s

// The logits of a cross-entropy, without labels and dropout. Parameters that only the
// loss needs stay arguments.

// CHECK-LABEL: module @classifier
// CHECK-NOT: shardc.no_prediction
// CHECK: func.func @predict(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3xf32> {shardc.role = #shardc.parameter<"w", he_normal>}
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<3xf32> {shardc.role = #shardc.parameter<"scale", he_normal>}
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x4xf32> {shardc.role = #shardc.input<"x">}
// CHECK-SAME: ) -> (tensor<8x3xf32> {shardc.result = "prediction"}) {
// CHECK-NEXT: %[[Z:.*]] = shardc.dot_general %[[X]], %[[W]] {{.*}}shardc.part<forward>
// CHECK-NEXT: return %[[Z]]
module @classifier attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8xi32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x3xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      %scale: tensor<3xf32> {shardc.role = #shardc.parameter<"scale", he_normal>}) -> tensor<f32> {
    %d = shardc.dropout %x rate = 0.5 stream = 0 : tensor<8x4xf32>
    %z = shardc.linear %d, %w : tensor<8x4xf32>, tensor<4x3xf32> -> tensor<8x3xf32>
    %ce = shardc.softmax_cross_entropy %z, %y : tensor<8x3xf32>, tensor<8xi32> -> tensor<f32>
    %s = shardc.reduce sum %scale dims = [0] : tensor<3xf32> -> tensor<f32>
    %loss = shardc.add %ce, %s : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// An autoencoder: the target is the input.

// CHECK-LABEL: module @autoencoder
// CHECK: func.func @predict(
// CHECK: %[[Z:.*]] = shardc.tanh
// CHECK-NEXT: return %[[Z]] : tensor<8x4xf32>
module @autoencoder attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %z = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %a = shardc.tanh %z : tensor<8x4xf32>
    %loss = shardc.mse %a, %x : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A loss of core ops: the last value before labels come in.

// CHECK-LABEL: module @core
// CHECK: func.func @predict(
// CHECK: %[[Z:.*]] = shardc.tanh
// CHECK-NEXT: return %[[Z]] : tensor<8x2xf32>
module @core attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x2xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %z = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %a = shardc.tanh %z : tensor<8x2xf32>
    %d = shardc.sub %a, %y : tensor<8x2xf32>
    %q = shardc.mul %d, %d : tensor<8x2xf32>
    %loss = shardc.reduce sum %q dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Two heads: neither of them is the output, and their common ancestor is not, either.

// CHECK-LABEL: module @heads
// CHECK-SAME: shardc.no_prediction = "{{.*}}predict.mlir{{.*}}:18:{{[0-9]+}}: the loss is computed from several values
// CHECK-NOT: func.func @predict
// CHECK-LABEL: module @weights
module @heads attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x4xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      %u: tensor<4x4xf32> {shardc.role = #shardc.parameter<"u", he_normal>},
      %v: tensor<4x4xf32> {shardc.role = #shardc.parameter<"v", he_normal>}) -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %a = shardc.linear %h, %u : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %b = shardc.linear %h, %v : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %0 = shardc.mse %a, %y : tensor<8x4xf32> -> tensor<f32>
    %1 = shardc.mse %b, %y : tensor<8x4xf32> -> tensor<f32>
    %loss = shardc.add %0, %1 : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Weights of rows are inputs that the output does not go through.

module @weights attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %weights: tensor<8x2xf32> {shardc.role = #shardc.input<"weights">},
      %y: tensor<8x2xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %z = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %d = shardc.sub %z, %y : tensor<8x2xf32>
    %q = shardc.mul %d, %weights : tensor<8x2xf32>
    %loss = shardc.reduce sum %q dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-SAME: shardc.no_prediction = "{{.*}}predict.mlir{{.*}}:{{[0-9]+}}:{{[0-9]+}}: the loss depends on inputs by other ways
// CHECK-NOT: func.func @predict

// -----

// Without labels nothing tells the errors of rows from the output.

// CHECK-LABEL: module @no_labels
// CHECK-SAME: shardc.no_prediction = "{{.*}}predict.mlir{{.*}}:{{[0-9]+}}:{{[0-9]+}}: nothing tells where the output of the network ends
// CHECK-NOT: func.func @predict
module @no_labels attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<8x2xf32> {shardc.role = #shardc.input<"y">},
      %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %z = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %d = shardc.sub %z, %y : tensor<8x2xf32>
    %q = shardc.mul %d, %d : tensor<8x2xf32>
    %loss = shardc.reduce sum %q dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
