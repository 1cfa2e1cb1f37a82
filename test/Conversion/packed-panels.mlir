// RUN: shardc-opt %s --split-input-file --shardc-lower-kernels | FileCheck %s

// Rows of 128 columns of f32 are 512 bytes apart: 128 of them meet in eight sets
// of a first-level cache, so that panels of columns are packed.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK: llvm.alloca
shardc.mesh @mesh <["data" = 1]>
func.func @apart_by_a_power_of_two(%x: tensor<64x128xf32>, %w: tensor<128x128xf32>) -> tensor<64x128xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%a0: tensor<64x128xf32>, %a1: tensor<128x128xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    shardc.yield %1 : tensor<64x128xf32>
  }
  return %0 : tensor<64x128xf32>
}

// -----

// Those of 96 columns are spread over 32 sets, and read in place.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK-NOT: llvm.alloca
// CHECK: llvm.return
shardc.mesh @mesh <["data" = 1]>
func.func @spread(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>) -> tensor<64x96xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32> {
  ^bb0(%a0: tensor<64x128xf32>, %a1: tensor<128x96xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x128xf32>, tensor<128x96xf32> -> tensor<64x96xf32>
    shardc.yield %1 : tensor<64x96xf32>
  }
  return %0 : tensor<64x96xf32>
}

// -----

// Too few rows of the result would share a copy.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK-NOT: llvm.alloca
// CHECK: llvm.return
shardc.mesh @mesh <["data" = 1]>
func.func @few_rows(%x: tensor<48x128xf32>, %w: tensor<128x128xf32>) -> tensor<48x128xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<48x128xf32>, tensor<128x128xf32>) -> tensor<48x128xf32> {
  ^bb0(%a0: tensor<48x128xf32>, %a1: tensor<128x128xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<48x128xf32>, tensor<128x128xf32> -> tensor<48x128xf32>
    shardc.yield %1 : tensor<48x128xf32>
  }
  return %0 : tensor<48x128xf32>
}

// -----

// A panel that is the whole row lies side by side as it is.

// CHECK-LABEL: llvm.func @shardc_matmul_0
// CHECK-NOT: llvm.alloca
// CHECK: llvm.return
shardc.mesh @mesh <["data" = 1]>
func.func @whole_rows(%x: tensor<64x512xf32>, %w: tensor<512x16xf32>) -> tensor<64x16xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<64x512xf32>, tensor<512x16xf32>) -> tensor<64x16xf32> {
  ^bb0(%a0: tensor<64x512xf32>, %a1: tensor<512x16xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x512xf32>, tensor<512x16xf32> -> tensor<64x16xf32>
    shardc.yield %1 : tensor<64x16xf32>
  }
  return %0 : tensor<64x16xf32>
}
