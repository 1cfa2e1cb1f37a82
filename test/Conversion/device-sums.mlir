// RUN: shardc-opt %s --split-input-file --shardc-lower-kernels | FileCheck %s

// What only a sum over devices reads of a GEMM, a second function computes as the
// sum. It has the factors of three devices: products of the first two are added
// up, then that of the third. Both have the same iterations: three times the work
// of one device are four.

// CHECK-LABEL: func.func @sum
// CHECK: shardc.kernel
// CHECK-SAME: shardc.extent = 4 : i64, shardc.group_devices = 3 : i64, shardc.group_symbol = "shardc_matmul_0_sum"
// CHECK-SAME: bytes = array<i64: 4096, 0, 16384>
// CHECK-SAME: shardc.symbol = "shardc_matmul_0"
// Its sums are over other axes.
// CHECK: shardc.group_devices = 2 : i64, shardc.group_symbol = "shardc_matmul_1_sum"
// CHECK-SAME: shardc.symbol = "shardc_matmul_1"
// CHECK-LABEL: llvm.func @shardc_matmul_0(
// CHECK: llvm.intr.fma
// CHECK-NOT: llvm.fadd
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @shardc_matmul_0_sum(
// CHECK: llvm.intr.fma
// CHECK: llvm.intr.fma
// CHECK: %[[PAIR:.*]] = llvm.fadd
// CHECK: llvm.intr.fma
// CHECK: llvm.fadd %[[PAIR]]
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @shardc_matmul_1(
shardc.mesh @mesh <["model" = 3, "data" = 2]>
func.func @sum(%x: tensor<1024x4xf32>, %w: tensor<4x16xf32>) -> (tensor<1024x16xf32>, tensor<512x16xf32>) {
  %0 = shardc.kernel(%x, %w) : (tensor<1024x4xf32>, tensor<4x16xf32>) -> tensor<1024x16xf32> {
  ^bb0(%a0: tensor<1024x4xf32>, %a1: tensor<4x16xf32>):
    %4 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<1024x4xf32>, tensor<4x16xf32> -> tensor<1024x16xf32>
    shardc.yield %4 : tensor<1024x16xf32>
  }
  %1 = shardc.all_reduce sum %0 over @mesh["model"] : (tensor<1024x16xf32>) -> tensor<1024x16xf32>
  %2 = shardc.kernel(%x, %w) : (tensor<1024x4xf32>, tensor<4x16xf32>) -> tensor<1024x16xf32> {
  ^bb0(%a0: tensor<1024x4xf32>, %a1: tensor<4x16xf32>):
    %4 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<1024x4xf32>, tensor<4x16xf32> -> tensor<1024x16xf32>
    shardc.yield %4 : tensor<1024x16xf32>
  }
  %3 = shardc.reduce_scatter sum %2 over @mesh["data"] dims = [0] : (tensor<1024x16xf32>) -> tensor<512x16xf32>
  return %1, %3 : tensor<1024x16xf32>, tensor<512x16xf32>
}

// -----

// None has such a function: something is between product and sum, the product is
// read twice, a maximum reads it, it is of bf16, or it adds up rows, of which each
// device has computed some.

// CHECK-LABEL: func.func @none
// CHECK-NOT: shardc.group_symbol
// CHECK: llvm.return
shardc.mesh @mesh <["model" = 2]>
func.func @none(%x: tensor<64x8xf32>, %w: tensor<8x8xf32>, %y: tensor<64x8xf32>)
    -> (tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xbf16>, tensor<8x8xf32>) {
  %0 = shardc.kernel(%x, %w) : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
    %11 = shardc.tanh %10 : tensor<64x8xf32>
    shardc.yield %11 : tensor<64x8xf32>
  }
  %1 = shardc.all_reduce sum %0 over @mesh["model"] : (tensor<64x8xf32>) -> tensor<64x8xf32>
  %2 = shardc.kernel(%x, %w) : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
    shardc.yield %10 : tensor<64x8xf32>
  }
  %3 = shardc.all_reduce sum %2 over @mesh["model"] : (tensor<64x8xf32>) -> tensor<64x8xf32>
  %4 = shardc.kernel(%x, %w) : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
    shardc.yield %10 : tensor<64x8xf32>
  }
  %5 = shardc.all_reduce max %4 over @mesh["model"] : (tensor<64x8xf32>) -> tensor<64x8xf32>
  %6 = shardc.kernel(%x, %w) : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xbf16> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
    %11 = shardc.convert %10 : tensor<64x8xf32> -> tensor<64x8xbf16>
    shardc.yield %11 : tensor<64x8xbf16>
  }
  %7 = shardc.all_reduce sum %6 over @mesh["model"] : (tensor<64x8xbf16>) -> tensor<64x8xbf16>
  %8 = shardc.kernel(%x, %y) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<64x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [0] x [0] : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<8x8xf32>
    shardc.yield %10 : tensor<8x8xf32>
  }
  %9 = shardc.all_reduce sum %8 over @mesh["model"] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2, %3, %5, %7, %9 : tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xbf16>, tensor<8x8xf32>
}

// -----

// Also in the loop of microbatches.

// CHECK-LABEL: func.func @microbatches
// CHECK: shardc.accumulate
// CHECK: shardc.group_devices = 2 : i64, shardc.group_symbol = "shardc_matmul_0_sum"
// CHECK: llvm.return
shardc.mesh @mesh <["model" = 2]>
func.func @microbatches(%x: tensor<128x8xf32>, %w: tensor<8x8xf32>) -> tensor<8xf32> {
  %0 = shardc.accumulate 2 of(%x) : (tensor<128x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<64x8xf32>, %sum: tensor<8xf32>):
    %1 = shardc.kernel(%a, %w) : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32> {
    ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8x8xf32>):
      %4 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
      shardc.yield %4 : tensor<64x8xf32>
    }
    %2 = shardc.all_reduce sum %1 over @mesh["model"] : (tensor<64x8xf32>) -> tensor<64x8xf32>
    %3 = shardc.kernel(%2, %sum) : (tensor<64x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a0: tensor<64x8xf32>, %a1: tensor<8xf32>):
      %4 = shardc.reduce sum %a0 dims = [0] : tensor<64x8xf32> -> tensor<8xf32>
      %5 = shardc.add %a1, %4 : tensor<8xf32>
      shardc.yield %5 : tensor<8xf32>
    }
    shardc.yield %3 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
