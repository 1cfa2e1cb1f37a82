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

// -----

// 1000 rows are two iterations of 500: tiles of eight rows, and four rows
// behind them, whose twelve elements are a vector and a half. Three columns are
// copied with a zero behind the last one. Mask, half-width summand and random
// numbers are read, or drawn, at the places of whole vectors.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK-DAG: llvm.alloca
// CHECK-DAG: %[[UNIT:.*]] = llvm.mlir.constant(5 : i64)
// CHECK: llvm.store %{{.*}} : vector<8xf32>, !llvm.ptr
// CHECK: llvm.mul %{{.*}}, %[[UNIT]]
// CHECK: llvm.urem
// CHECK-NOT: llvm.store
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 0, 8, 8, 4, 4, 12, 12] : vector<8xf32>
// CHECK-COUNT-3: llvm.store %{{.*}} : vector<8xf32>, !llvm.ptr
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 0, 8, 8, 4, 4, 12, 12] : vector<8xf32>
// CHECK: llvm.store %{{.*}} : vector<8xf32>, !llvm.ptr
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr
// CHECK-NOT: llvm.store
// CHECK: llvm.return
shardc.mesh @mesh <["data" = 1]>
func.func @three(%x: tensor<1000x10xf32>, %w: tensor<10x3xf32>, %mask: tensor<1000x3xi1>, %half: tensor<1000x3xbf16>, %step: tensor<i32>) -> tensor<1000x3xf32> {
  %0 = shardc.kernel(%x, %w, %mask, %half, %step) : (tensor<1000x10xf32>, tensor<10x3xf32>, tensor<1000x3xi1>, tensor<1000x3xbf16>, tensor<i32>) -> tensor<1000x3xf32> {
  ^bb0(%a0: tensor<1000x10xf32>, %a1: tensor<10x3xf32>, %a2: tensor<1000x3xi1>, %a3: tensor<1000x3xbf16>, %a4: tensor<i32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<1000x10xf32>, tensor<10x3xf32> -> tensor<1000x3xf32>
    %2 = shardc.convert %a3 : tensor<1000x3xbf16> -> tensor<1000x3xf32>
    %3 = shardc.random_uniform %a4 stream = 3 : tensor<i32> -> tensor<1000x3xf32>
    %4 = shardc.mul %1, %3 : tensor<1000x3xf32>
    %5 = shardc.select %a2, %4, %2 : tensor<1000x3xi1>, tensor<1000x3xf32>
    shardc.yield %5 : tensor<1000x3xf32>
  }
  return %0 : tensor<1000x3xf32>
}
