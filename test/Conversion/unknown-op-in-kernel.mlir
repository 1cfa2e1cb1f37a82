// An op without code in kernels is an error, not the identity.

// RUN: not shardc-opt %s --shardc-lower-kernels 2>&1 | FileCheck %s
// CHECK: error: 'shardc.relu' op cannot be computed in a kernel

module attributes {shardc.arena_bytes = 64 : i64} {
  shardc.mesh @mesh <["d" = 1]>
  func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%arg0: tensor<8xf32>):
      %1 = shardc.relu %arg0 : tensor<8xf32>
      shardc.yield %1 : tensor<8xf32>
    }
    return %0 : tensor<8xf32>
  }
}
