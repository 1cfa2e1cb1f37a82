// A module without a mesh runs on one device, or on the one that is asked for.
// RUN: shardc-opt %s --shardc-import | FileCheck %s
// RUN: shardc-opt %s --shardc-import="mesh=a=2,b=3" | FileCheck %s --check-prefix=MESH

// CHECK: shardc.mesh @mesh <["device" = 1]>
// MESH: shardc.mesh @mesh <["a" = 2, "b" = 3]>
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
                  %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}
