// RUN: shardc-opt %s --split-input-file --shardc-lower-kernels | FileCheck %s

// Of two to six columns lanes run over pairs of columns of four rows. Terms
// of two rows are loaded into one vector and one shuffle makes the factor of
// both pairs; rows meet again in vectors of the result.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 1, 2, 3, 12, 13, 14, 15] : vector<8xf32>
// CHECK: %[[FACTOR:.*]] = llvm.shufflevector %{{.*}}, %{{.*}} [0, 0, 8, 8, 4, 4, 12, 12] : vector<8xf32>
// CHECK-NEXT: llvm.intr.fma(%[[FACTOR]],
// CHECK-NEXT: llvm.intr.fma(%[[FACTOR]],
// CHECK-NOT: llvm.intr.masked
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 1, 8, 9, 4, 5, 12, 13] : vector<8xf32>
// CHECK: llvm.fadd
// CHECK: llvm.store %{{.*}} : vector<8xf32>, !llvm.ptr
shardc.mesh @mesh <["data" = 1]>
func.func @four(%x: tensor<1024x10xf32>, %w: tensor<10x4xf32>, %b: tensor<4xf32>) -> tensor<1024x4xf32> {
  %0 = shardc.kernel(%x, %w, %b) : (tensor<1024x10xf32>, tensor<10x4xf32>, tensor<4xf32>) -> tensor<1024x4xf32> {
  ^bb0(%a0: tensor<1024x10xf32>, %a1: tensor<10x4xf32>, %a2: tensor<4xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<1024x10xf32>, tensor<10x4xf32> -> tensor<1024x4xf32>
    %2 = shardc.broadcast %a2 dims = [1] : tensor<4xf32> -> tensor<1024x4xf32>
    %3 = shardc.add %1, %2 : tensor<1024x4xf32>
    shardc.yield %3 : tensor<1024x4xf32>
  }
  return %0 : tensor<1024x4xf32>
}

// -----

// One pair of columns needs no shuffle before the store.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK: llvm.intr.fma
// CHECK-NOT: [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK: llvm.store %{{.*}} : vector<8xf32>, !llvm.ptr
shardc.mesh @mesh <["data" = 1]>
func.func @two(%x: tensor<64x8xf32>, %w: tensor<2x8xf32>) -> tensor<64x2xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<64x8xf32>, tensor<2x8xf32>) -> tensor<64x2xf32> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<2x8xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [1] : tensor<64x8xf32>, tensor<2x8xf32> -> tensor<64x2xf32>
    shardc.yield %1 : tensor<64x2xf32>
  }
  return %0 : tensor<64x2xf32>
}

// -----

// More columns than six: a row has lanes of its own.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK-NOT: [0, 0, 8, 8, 4, 4, 12, 12]
// CHECK: llvm.return
shardc.mesh @mesh <["data" = 1]>
func.func @seven(%x: tensor<64x8xf32>, %w: tensor<8x7xf32>) -> tensor<64x7xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<64x8xf32>, tensor<8x7xf32>) -> tensor<64x7xf32> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8x7xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x8xf32>, tensor<8x7xf32> -> tensor<64x7xf32>
    shardc.yield %1 : tensor<64x7xf32>
  }
  return %0 : tensor<64x7xf32>
}
