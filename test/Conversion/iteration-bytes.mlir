// RUN: shardc-opt %s --split-input-file --shardc-lower-kernels | FileCheck %s

// What an iteration touches of each buffer, operands first: bytes of its own
// where it goes down the rows of the buffer, else any (0). Nests over the same
// rows have iterations that are a power of two in number, or one for each tile
// if that does not divide their tiles, and agree in their rows.

// 128 rows of 40 and 128 bytes, and 256 of 128 and 64 bytes; weights and the
// bias are read whole.
// CHECK-LABEL: func.func @rows
// CHECK: shardc.parts = [{axes = array<i64>, buffers = array<i64: 0, 1, 2, 3>, bytes = array<i64: 5120, 0, 0, 16384>, extent = 8 : i64}]
// CHECK: shardc.parts = [{axes = array<i64>, buffers = array<i64: 0, 1>, bytes = array<i64: 32768, 16384>, extent = 4 : i64}]
shardc.mesh @mesh <["data" = 1]>
func.func @rows(%x: tensor<1024x10xf32>, %w: tensor<10x32xf32>, %b: tensor<32xf32>) -> tensor<1024x32xbf16> {
  %0 = shardc.kernel(%x, %w, %b) : (tensor<1024x10xf32>, tensor<10x32xf32>, tensor<32xf32>) -> tensor<1024x32xf32> {
  ^bb0(%a0: tensor<1024x10xf32>, %a1: tensor<10x32xf32>, %a2: tensor<32xf32>):
    %2 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<1024x10xf32>, tensor<10x32xf32> -> tensor<1024x32xf32>
    %3 = shardc.broadcast %a2 dims = [1] : tensor<32xf32> -> tensor<1024x32xf32>
    %4 = shardc.add %2, %3 : tensor<1024x32xf32>
    shardc.yield %4 : tensor<1024x32xf32>
  }
  %1 = shardc.kernel(%0) : (tensor<1024x32xf32>) -> tensor<1024x32xbf16> {
  ^bb0(%a0: tensor<1024x32xf32>):
    %2 = shardc.convert %a0 : tensor<1024x32xf32> -> tensor<1024x32xbf16>
    shardc.yield %2 : tensor<1024x32xbf16>
  }
  return %1 : tensor<1024x32xbf16>
}

// -----

// A sum over rows goes down no rows, and a transpose not down those of its
// operand.
// CHECK-LABEL: func.func @columns
// CHECK: bytes = array<i64: 0, 0>
// CHECK: bytes = array<i64: 0, 32768>
shardc.mesh @mesh <["data" = 1]>
func.func @columns(%x: tensor<1024x256xf32>) -> (tensor<256xf32>, tensor<256x1024xf32>) {
  %0 = shardc.kernel(%x) : (tensor<1024x256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<1024x256xf32>):
    %2 = shardc.reduce sum %a dims = [0] : tensor<1024x256xf32> -> tensor<256xf32>
    shardc.yield %2 : tensor<256xf32>
  }
  %1 = shardc.kernel(%x) : (tensor<1024x256xf32>) -> tensor<256x1024xf32> {
  ^bb0(%a: tensor<1024x256xf32>):
    %2 = shardc.transpose %a permutation = [1, 0] : tensor<1024x256xf32> -> tensor<256x1024xf32>
    shardc.yield %2 : tensor<256x1024xf32>
  }
  return %0, %1 : tensor<256xf32>, tensor<256x1024xf32>
}

// -----

// Rows of a batch: 2 of 64 matrices and vectors.
// CHECK-LABEL: func.func @batches
// CHECK: bytes = array<i64: 262144, 512, 4096>, extent = 32 : i64
shardc.mesh @mesh <["data" = 1]>
func.func @batches(%x: tensor<64x512x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x512xf32> {
  %0 = shardc.kernel(%x, %y) : (tensor<64x512x64xf32>, tensor<64x64xf32>) -> tensor<64x512xf32> {
  ^bb0(%a0: tensor<64x512x64xf32>, %a1: tensor<64x64xf32>):
    %1 = shardc.dot_general %a0, %a1 batching = [0] x [0] contracting = [2] x [1] : tensor<64x512x64xf32>, tensor<64x64xf32> -> tensor<64x512xf32>
    shardc.yield %1 : tensor<64x512xf32>
  }
  return %0 : tensor<64x512xf32>
}

// -----

// Rows in another order: each iteration reads some of another one. Not so where
// columns have another order.
// CHECK-LABEL: func.func @permuted
// CHECK: bytes = array<i64: 0, 32768>, extent = 2 : i64
// CHECK: bytes = array<i64: 32768, 32768>, extent = 2 : i64
shardc.mesh @mesh <["data" = 1]>
func.func @permuted(%x: tensor<4x32x128xf32>, %y: tensor<32x4x128xf32>) -> (tensor<4x32x128xf32>, tensor<32x4x128xf32>) {
  %0 = shardc.kernel(%x) : (tensor<4x32x128xf32>) -> tensor<4x32x128xf32> {
  ^bb0(%a: tensor<4x32x128xf32>):
    %2 = shardc.permute_rows %a dim = 0 sources = [3, 0, 1, 2] : tensor<4x32x128xf32>
    shardc.yield %2 : tensor<4x32x128xf32>
  }
  %1 = shardc.kernel(%y) : (tensor<32x4x128xf32>) -> tensor<32x4x128xf32> {
  ^bb0(%a: tensor<32x4x128xf32>):
    %2 = shardc.permute_rows %a dim = 1 sources = [3, 0, 1, 2] : tensor<32x4x128xf32>
    shardc.yield %2 : tensor<32x4x128xf32>
  }
  return %0, %1 : tensor<4x32x128xf32>, tensor<32x4x128xf32>
}

// -----

// 63 rows are eleven tiles of six rows, the last of three: two workers have 30 and
// 33 rows. A nest of each row is divided where a GEMM is. 30 rows are six tiles of
// five, not five of six.
// CHECK-LABEL: func.func @unevenRows
// CHECK: bytes = array<i64: 1536, 0, 1536>, extent = 11 : i64
// CHECK: bytes = array<i64: 1536, 1536>, extent = 11 : i64
// CHECK: bytes = array<i64: 3840, 0, 3840>, extent = 2 : i64
shardc.mesh @mesh <["data" = 1]>
func.func @unevenRows(%x: tensor<63x64xf32>, %w: tensor<64x64xf32>, %y: tensor<30x64xf32>) -> (tensor<63x64xf32>, tensor<30x64xf32>) {
  %0 = shardc.kernel(%x, %w) : (tensor<63x64xf32>, tensor<64x64xf32>) -> tensor<63x64xf32> {
  ^bb0(%a0: tensor<63x64xf32>, %a1: tensor<64x64xf32>):
    %3 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<63x64xf32>, tensor<64x64xf32> -> tensor<63x64xf32>
    shardc.yield %3 : tensor<63x64xf32>
  }
  %1 = shardc.kernel(%0) : (tensor<63x64xf32>) -> tensor<63x64xf32> {
  ^bb0(%a0: tensor<63x64xf32>):
    %3 = shardc.reduce max %a0 dims = [1] : tensor<63x64xf32> -> tensor<63xf32>
    %4 = shardc.broadcast %3 dims = [0] : tensor<63xf32> -> tensor<63x64xf32>
    %5 = shardc.sub %a0, %4 : tensor<63x64xf32>
    shardc.yield %5 : tensor<63x64xf32>
  }
  %2 = shardc.kernel(%y, %w) : (tensor<30x64xf32>, tensor<64x64xf32>) -> tensor<30x64xf32> {
  ^bb0(%a0: tensor<30x64xf32>, %a1: tensor<64x64xf32>):
    %3 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<30x64xf32>, tensor<64x64xf32> -> tensor<30x64xf32>
    shardc.yield %3 : tensor<30x64xf32>
  }
  return %1, %2 : tensor<63x64xf32>, tensor<30x64xf32>
}
