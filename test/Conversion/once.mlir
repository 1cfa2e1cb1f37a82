// RUN: shardc-opt %s --split-input-file --shardc-lower-kernels | FileCheck %s

// The last rows of a GEMM, fewer than those of a tile, and the values made of
// them are computed where the iterations have them, and once: a tile of 4 rows
// and one of 3, with two vectors and, of the latter, two sums for each.

// CHECK: shardc.extent = 2
// CHECK: llvm.func @shardc_matmul_0
// CHECK-COUNT-20: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
shardc.mesh @mesh <["data" = 1]>
func.func @rest(%x: tensor<7x1024xf32>, %w: tensor<1024x32xf32>, %b: tensor<32xf32>) -> tensor<7x32xf32> {
  %0 = shardc.kernel(%x, %w, %b) : (tensor<7x1024xf32>, tensor<1024x32xf32>, tensor<32xf32>) -> tensor<7x32xf32> {
  ^bb0(%a0: tensor<7x1024xf32>, %a1: tensor<1024x32xf32>, %a2: tensor<32xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<7x1024xf32>, tensor<1024x32xf32> -> tensor<7x32xf32>
    %2 = shardc.broadcast %a2 dims = [1] : tensor<32xf32> -> tensor<7x32xf32>
    %3 = shardc.add %1, %2 : tensor<7x32xf32>
    shardc.yield %3 : tensor<7x32xf32>
  }
  return %0 : tensor<7x32xf32>
}

// -----

// Sums of columns: of four vectors at a time, and of the one that is left with
// four sums to hide how long an addition takes.

// CHECK: llvm.func @shardc_reduce_0
// CHECK-COUNT-11: llvm.fadd {{.*}} : vector<8xf32>
// CHECK-NOT: llvm.fadd
shardc.mesh @mesh <["data" = 1]>
func.func @last_block(%x: tensor<64x40xf32>) -> tensor<40xf32> {
  %0 = shardc.kernel(%x) : (tensor<64x40xf32>) -> tensor<40xf32> {
  ^bb0(%a: tensor<64x40xf32>):
    %1 = shardc.reduce sum %a dims = [0] : tensor<64x40xf32> -> tensor<40xf32>
    %2 = shardc.mul %1, %1 : tensor<40xf32>
    shardc.yield %2 : tensor<40xf32>
  }
  return %0 : tensor<40xf32>
}

// -----

// The elements behind the last whole block of vectors are loaded where the
// iterations have them: behind the loop.

// CHECK: shardc.extent = 2
// CHECK: llvm.func @shardc_map_0
// CHECK-NOT: masked.load
// CHECK: llvm.store
// CHECK: llvm.intr.masked.load
// CHECK-NEXT: llvm.fadd
// CHECK-NOT: llvm.intr.masked.store
// CHECK: llvm.store %{{.*}} : vector<2xf32>
// CHECK: llvm.store %{{.*}} : f32
shardc.mesh @mesh <["data" = 1]>
func.func @tail(%x: tensor<20003xf32>) -> tensor<20003xf32> {
  %0 = shardc.kernel(%x) : (tensor<20003xf32>) -> tensor<20003xf32> {
  ^bb0(%a: tensor<20003xf32>):
    %1 = shardc.add %a, %a : tensor<20003xf32>
    shardc.yield %1 : tensor<20003xf32>
  }
  return %0 : tensor<20003xf32>
}
