// RUN: shardc-opt %s --split-input-file --shardc-form-gemms | FileCheck %s
// RUN: shardc-opt %s --split-input-file --shardc-form-gemms=for-cpu | FileCheck %s --check-prefix=CPU

// A small GEMM stays: a generated kernel is faster.

// CHECK-LABEL: func.func @small
// CHECK: shardc.dot_general
// CHECK-NOT: shardc.gemm
func.func @small(%x: tensor<8x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// For CPUs a GEMM of two million multiply-adds stays, too, if one of its matrices
// is small.

// CPU-LABEL: func.func @small_factor
// CPU: shardc.dot_general
// CPU-NOT: shardc.gemm
// CHECK-LABEL: func.func @small_factor
// CHECK: shardc.gemm
func.func @small_factor(%x: tensor<256x64xf32>, %w: tensor<64x128xf32>) -> tensor<256x128xf32> {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x64xf32>, tensor<64x128xf32> -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32>
}

// -----

// So do GEMMs of any size over many rows of small matrices, and those that sum
// over the rows and are cut into blocks of them; not a sum over rows without a
// divisor, in a batch, or of bf16.

// CPU-LABEL: func.func @long
// CPU-COUNT-2: shardc.dot_general
// CPU-COUNT-3: shardc.gemm
// CHECK-LABEL: func.func @long
// CHECK-COUNT-5: shardc.gemm
func.func @long(%x: tensor<8192x32xf32>, %w: tensor<32x64xf32>, %y: tensor<8192x64xf32>, %z: tensor<8191x64xf32>, %batch: tensor<2x8192x32xf32>, %half: tensor<8192x32xbf16>) -> (tensor<8192x64xf32>, tensor<32x64xf32>, tensor<64x64xf32>, tensor<2x32x32xf32>, tensor<32x32xbf16>) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<8192x32xf32>, tensor<32x64xf32> -> tensor<8192x64xf32>
  %1 = shardc.dot_general %x, %y contracting = [0] x [0] : tensor<8192x32xf32>, tensor<8192x64xf32> -> tensor<32x64xf32>
  %2 = shardc.dot_general %z, %z contracting = [0] x [0] : tensor<8191x64xf32>, tensor<8191x64xf32> -> tensor<64x64xf32>
  %3 = shardc.dot_general %batch, %batch batching = [0] x [0] contracting = [1] x [1] : tensor<2x8192x32xf32>, tensor<2x8192x32xf32> -> tensor<2x32x32xf32>
  %4 = shardc.dot_general %half, %half contracting = [0] x [0] : tensor<8192x32xbf16>, tensor<8192x32xbf16> -> tensor<32x32xbf16>
  return %0, %1, %2, %3, %4 : tensor<8192x64xf32>, tensor<32x64xf32>, tensor<64x64xf32>, tensor<2x32x32xf32>, tensor<32x32xbf16>
}

// -----

// For CPUs one row of a batch is enough for f32, and three for bf16; not few columns,
// nor few rows whose terms are apart.

// CPU-LABEL: func.func @few_rows
// CPU: shardc.gemm {{.*}}1x1024xf32
// CPU: shardc.gemm {{.*}}3x1024xbf16
// CPU-COUNT-3: shardc.dot_general
// CHECK-LABEL: func.func @few_rows
// CHECK-COUNT-5: shardc.dot_general
func.func @few_rows(%row: tensor<1x1024xf32>, %w: tensor<1024x1024xf32>, %rows: tensor<3x1024xbf16>, %half: tensor<1024x1024xbf16>, %two: tensor<2x1024xbf16>, %few: tensor<1024x4xf32>) -> (tensor<1x1024xf32>, tensor<3x1024xbf16>, tensor<2x1024xbf16>, tensor<1024x4xf32>, tensor<4x1024xf32>) {
  %0 = shardc.dot_general %row, %w contracting = [1] x [0] : tensor<1x1024xf32>, tensor<1024x1024xf32> -> tensor<1x1024xf32>
  %1 = shardc.dot_general %rows, %half contracting = [1] x [0] : tensor<3x1024xbf16>, tensor<1024x1024xbf16> -> tensor<3x1024xbf16>
  %2 = shardc.dot_general %two, %half contracting = [1] x [0] : tensor<2x1024xbf16>, tensor<1024x1024xbf16> -> tensor<2x1024xbf16>
  %3 = shardc.dot_general %w, %few contracting = [1] x [0] : tensor<1024x1024xf32>, tensor<1024x4xf32> -> tensor<1024x4xf32>
  %4 = shardc.dot_general %few, %w contracting = [0] x [0] : tensor<1024x4xf32>, tensor<1024x1024xf32> -> tensor<4x1024xf32>
  return %0, %1, %2, %3, %4 : tensor<1x1024xf32>, tensor<3x1024xbf16>, tensor<2x1024xbf16>, tensor<1024x4xf32>, tensor<4x1024xf32>
}

// -----

// Not if the right factor has a side above 192, or more rows than the left one,
// all matrices are larger, and rows are few; terms of the left one are apart;
// it is a batch; or of bf16 above 32.

// CPU-LABEL: func.func @no_small_factor
// CPU: shardc.dot_general
// CPU-COUNT-5: shardc.gemm
// CPU: shardc.dot_general
// CPU-NEXT: shardc.gemm
func.func @no_small_factor(%x: tensor<192x192xf32>, %w: tensor<192x192xf32>, %y: tensor<191x192xf32>, %v: tensor<193x64xf32>, %u: tensor<512x193xf32>, %z: tensor<16x256xf32>, %t: tensor<256x256xf32>, %apart: tensor<128x1024xf32>, %square: tensor<128x128xf32>, %batch: tensor<2x192x192xf32>, %rows: tensor<8192x32xbf16>, %right: tensor<32x32xbf16>, %wide: tensor<32x33xbf16>) -> (tensor<192x192xf32>, tensor<191x192xf32>, tensor<512x64xf32>, tensor<16x256xf32>, tensor<1024x128xf32>, tensor<2x192x192xf32>, tensor<8192x32xbf16>, tensor<8192x33xbf16>) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<192x192xf32>, tensor<192x192xf32> -> tensor<192x192xf32>
  %1 = shardc.dot_general %y, %w contracting = [1] x [0] : tensor<191x192xf32>, tensor<192x192xf32> -> tensor<191x192xf32>
  %2 = shardc.dot_general %u, %v contracting = [1] x [0] : tensor<512x193xf32>, tensor<193x64xf32> -> tensor<512x64xf32>
  %3 = shardc.dot_general %z, %t contracting = [1] x [0] : tensor<16x256xf32>, tensor<256x256xf32> -> tensor<16x256xf32>
  %4 = shardc.dot_general %apart, %square contracting = [0] x [0] : tensor<128x1024xf32>, tensor<128x128xf32> -> tensor<1024x128xf32>
  %5 = shardc.dot_general %batch, %batch batching = [0] x [0] contracting = [2] x [1] : tensor<2x192x192xf32>, tensor<2x192x192xf32> -> tensor<2x192x192xf32>
  %6 = shardc.dot_general %rows, %right contracting = [1] x [0] : tensor<8192x32xbf16>, tensor<32x32xbf16> -> tensor<8192x32xbf16>
  %7 = shardc.dot_general %rows, %wide contracting = [1] x [0] : tensor<8192x32xbf16>, tensor<32x33xbf16> -> tensor<8192x33xbf16>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<192x192xf32>, tensor<191x192xf32>, tensor<512x64xf32>, tensor<16x256xf32>, tensor<1024x128xf32>, tensor<2x192x192xf32>, tensor<8192x32xbf16>, tensor<8192x33xbf16>
}

// -----

// Bias and relu become the epilogue, and nothing of them is left behind.

// CHECK-LABEL: func.func @epilogue
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x512xf32>, %[[B:.*]]: tensor<512xf32>
// CHECK-NEXT: %[[Y:.*]] = shardc.gemm %[[X]], %[[W]], %[[B]] relu
// CHECK-NEXT: return %[[Y]]
func.func @epilogue(%x: tensor<256x512xf32>, %w: tensor<512x512xf32>, %b: tensor<512xf32>) -> tensor<256x512xf32> {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x512xf32>, tensor<512x512xf32> -> tensor<256x512xf32>
  %1 = shardc.broadcast %b dims = [1] : tensor<512xf32> -> tensor<256x512xf32>
  %2 = shardc.add %0, %1 : tensor<256x512xf32>
  %3 = shardc.constant dense<0.0> : tensor<256x512xf32>
  %4 = shardc.max %2, %3 : tensor<256x512xf32>
  return %4 : tensor<256x512xf32>
}

// -----

// The two GEMMs of the backward pass transpose by flag.

// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x384xf32>, %[[G:.*]]: tensor<256x384xf32>
// CHECK: shardc.gemm %[[G]], %[[W]] transpose_rhs
// CHECK: shardc.gemm %[[X]], %[[G]] transpose_lhs
func.func @backward(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %g: tensor<256x384xf32>) -> (tensor<256x512xf32>, tensor<512x384xf32>) {
  %0 = shardc.dot_general %g, %w contracting = [1] x [1] : tensor<256x384xf32>, tensor<512x384xf32> -> tensor<256x512xf32>
  %1 = shardc.dot_general %x, %g contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  return %0, %1 : tensor<256x512xf32>, tensor<512x384xf32>
}

// -----

// The addition to a loop's sum is part of the GEMM; any other one is not.

// CHECK-LABEL: func.func @accumulated
// CHECK: ^bb0(%[[X:.*]]: tensor<256x512xf32>, %[[G:.*]]: tensor<256x384xf32>, %[[S:.*]]: tensor<512x384xf32>, %[[T:.*]]: tensor<512x384xf32>):
// CHECK: %[[DW:.*]] = shardc.gemm %[[X]], %[[G]] plus %[[S]] transpose_lhs
// CHECK: %[[P:.*]] = shardc.gemm %[[X]], %[[G]] transpose_lhs
// CHECK: %[[Q:.*]] = shardc.add %[[P]], %[[W:.*]] :
// CHECK: %[[R:.*]] = shardc.add %[[T]], %[[Q]]
// CHECK: shardc.yield %[[DW]], %[[R]]
func.func @accumulated(%x: tensor<512x512xf32>, %g: tensor<512x384xf32>, %w: tensor<512x384xf32>) -> (tensor<512x384xf32>, tensor<512x384xf32>) {
  %0:2 = shardc.accumulate 2 of (%x, %g) : (tensor<512x512xf32>, tensor<512x384xf32>) -> (tensor<512x384xf32>, tensor<512x384xf32>) {
  ^bb0(%a: tensor<256x512xf32>, %b: tensor<256x384xf32>, %s: tensor<512x384xf32>, %t: tensor<512x384xf32>):
    %1 = shardc.dot_general %a, %b contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
    %2 = shardc.add %s, %1 : tensor<512x384xf32>
    %3 = shardc.dot_general %a, %b contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
    %4 = shardc.add %3, %w : tensor<512x384xf32>
    %5 = shardc.add %t, %4 : tensor<512x384xf32>
    shardc.yield %2, %5 : tensor<512x384xf32>, tensor<512x384xf32>
  }
  return %0#0, %0#1 : tensor<512x384xf32>, tensor<512x384xf32>
}

// -----

// Factors of bf16, results of bf16 or f32; a bias is added if it is of the type
// of the result.

// CHECK-LABEL: func.func @narrow
// CHECK: shardc.gemm %{{.*}}, %{{.*}}, %{{.*}} : tensor<256x512xbf16>, tensor<512x384xbf16>, tensor<384xbf16> -> tensor<256x384xbf16>
// CHECK: %[[SUM:.*]] = shardc.gemm %{{.*}}, %{{.*}} transpose_lhs : tensor<256x512xbf16>, tensor<256x384xbf16> -> tensor<512x384xf32>
// CHECK-NOT: shardc.add
func.func @narrow(%x: tensor<256x512xbf16>, %w: tensor<512x384xbf16>, %b: tensor<384xbf16>, %g: tensor<256x384xbf16>) -> (tensor<256x384xbf16>, tensor<512x384xf32>) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x512xbf16>, tensor<512x384xbf16> -> tensor<256x384xbf16>
  %1 = shardc.broadcast %b dims = [1] : tensor<384xbf16> -> tensor<256x384xbf16>
  %2 = shardc.add %0, %1 : tensor<256x384xbf16>
  %3 = shardc.dot_general %x, %g contracting = [0] x [0] : tensor<256x512xbf16>, tensor<256x384xbf16> -> tensor<512x384xf32>
  return %2, %3 : tensor<256x384xbf16>, tensor<512x384xf32>
}

// -----

// Sums of columns that are marked come with the GEMM whose operand's rows
// are contracted, whichever operand that is and wherever they stand; users may
// stand before it. No mark is left.

// CHECK-LABEL: func.func @column_sums
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x384xf32>, %[[G:.*]]: tensor<256x384xf32>
// CHECK: shardc.gemm %[[G]], %[[W]] transpose_rhs :
// CHECK: %[[R:.*]], %[[RSUMS:.*]] = shardc.gemm %[[X]], %[[G]] transpose_lhs sums_rhs : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>, tensor<384xf32>
// CHECK: %[[L:.*]], %[[LSUMS:.*]] = shardc.gemm %[[X]], %[[G]] transpose_lhs sums_lhs : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>, tensor<512xf32>
// CHECK: %[[N:.*]] = shardc.neg %[[RSUMS]]
// CHECK: return %{{.*}}, %[[R]], %[[N]], %[[L]], %[[LSUMS]]
func.func @column_sums(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %g: tensor<256x384xf32>) -> (tensor<256x512xf32>, tensor<512x384xf32>, tensor<384xf32>, tensor<512x384xf32>, tensor<512xf32>) {
  %0 = shardc.reduce sum %g dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %1 = shardc.neg %0 : tensor<384xf32>
  %2 = shardc.dot_general %g, %w contracting = [1] x [1] : tensor<256x384xf32>, tensor<512x384xf32> -> tensor<256x512xf32>
  %3 = shardc.dot_general %x, %g contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  %4 = shardc.dot_general %x, %g contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  %5 = shardc.reduce sum %x dims = [0] {shardc.by_product} : tensor<256x512xf32> -> tensor<512xf32>
  return %2, %3, %1, %4, %5 : tensor<256x512xf32>, tensor<512x384xf32>, tensor<384xf32>, tensor<512x384xf32>, tensor<512xf32>
}

// -----

// Not without a mark, not an operand of the GEMM's operand, not in another type than
// the GEMM's, not with a small dot_general.

// CHECK-LABEL: func.func @other_sums
// CHECK-COUNT-4: shardc.reduce sum %{{.*}} dims = [0] :
// CHECK-NOT: sums_
func.func @other_sums(%x: tensor<256x512xf32>, %g: tensor<256x384xf32>, %h: tensor<256x384xbf16>, %s: tensor<8x16xf32>) -> (tensor<512x384xf32>, tensor<384xf32>, tensor<384x384xf32>, tensor<384x384xbf16>, tensor<384xf32>, tensor<16x16xf32>, tensor<16xf32>) {
  %0 = shardc.dot_general %x, %g contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  %1 = shardc.reduce sum %g dims = [0] : tensor<256x384xf32> -> tensor<384xf32>
  %2 = shardc.exp %g : tensor<256x384xf32>
  %3 = shardc.reduce sum %2 dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %4 = shardc.broadcast %3 dims = [1] : tensor<384xf32> -> tensor<256x384xf32>
  %5 = shardc.dot_general %4, %2 contracting = [0] x [0] : tensor<256x384xf32>, tensor<256x384xf32> -> tensor<384x384xf32>
  %6 = shardc.convert %h : tensor<256x384xbf16> -> tensor<256x384xf32>
  %7 = shardc.reduce sum %6 dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %8 = shardc.dot_general %h, %h contracting = [0] x [0] : tensor<256x384xbf16>, tensor<256x384xbf16> -> tensor<384x384xbf16>
  %9 = shardc.dot_general %s, %s contracting = [0] x [0] : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  %10 = shardc.reduce sum %s dims = [0] {shardc.by_product} : tensor<8x16xf32> -> tensor<16xf32>
  return %0, %1, %5, %8, %7, %9, %10 : tensor<512x384xf32>, tensor<384xf32>, tensor<384x384xf32>, tensor<384x384xbf16>, tensor<384xf32>, tensor<16x16xf32>, tensor<16xf32>
}

// -----

// Factors of bf16 are widened as they are summed; in a loop the GEMM is added
// to its sum, and the sums of the columns to theirs by a kernel.

// CHECK-LABEL: func.func @accumulated_sums
// CHECK: ^bb0(%[[X:.*]]: tensor<256x512xbf16>, %[[G:.*]]: tensor<256x384xbf16>, %[[S:.*]]: tensor<512x384xf32>, %[[T:.*]]: tensor<384xf32>):
// CHECK-NEXT: %[[R:.*]], %[[SUMS:.*]] = shardc.gemm %[[X]], %[[G]] plus %[[S]] transpose_lhs sums_rhs
// CHECK-NEXT: %[[B:.*]] = shardc.add %[[T]], %[[SUMS]]
// CHECK-NEXT: shardc.yield %[[R]], %[[B]]
func.func @accumulated_sums(%x: tensor<512x512xbf16>, %g: tensor<512x384xbf16>) -> (tensor<512x384xf32>, tensor<384xf32>) {
  %0:2 = shardc.accumulate 2 of (%x, %g) : (tensor<512x512xbf16>, tensor<512x384xbf16>) -> (tensor<512x384xf32>, tensor<384xf32>) {
  ^bb0(%a: tensor<256x512xbf16>, %b: tensor<256x384xbf16>, %s: tensor<512x384xf32>, %t: tensor<384xf32>):
    %1 = shardc.dot_general %a, %b contracting = [0] x [0] : tensor<256x512xbf16>, tensor<256x384xbf16> -> tensor<512x384xf32>
    %2 = shardc.add %s, %1 : tensor<512x384xf32>
    %3 = shardc.convert %b : tensor<256x384xbf16> -> tensor<256x384xf32>
    %4 = shardc.reduce sum %3 dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
    %5 = shardc.add %t, %4 : tensor<384xf32>
    shardc.yield %2, %5 : tensor<512x384xf32>, tensor<384xf32>
  }
  return %0#0, %0#1 : tensor<512x384xf32>, tensor<384xf32>
}

// -----

// The gradient of a relu reads the result; the sums of its columns come with the
// GEMM of the weight.

// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x384xf32>, %[[B:.*]]: tensor<384xf32>, %[[V:.*]]: tensor<384x512xf32>, %[[G:.*]]: tensor<256x512xf32>
// CHECK: %[[H:.*]] = shardc.gemm %[[X]], %[[W]], %[[B]] relu
// CHECK: %[[DH:.*]] = shardc.gemm %[[G]], %[[V]] transpose_rhs
// CHECK: %[[IS_POSITIVE:.*]] = shardc.compare gt %[[H]]
// CHECK: %[[DZ:.*]] = shardc.select %[[IS_POSITIVE]], %[[DH]]
// CHECK: %[[DW:.*]], %[[DB:.*]] = shardc.gemm %[[X]], %[[DZ]] transpose_lhs sums_rhs
// CHECK: return %[[H]], %[[DW]], %[[DB]]
func.func @layer(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %b: tensor<384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>) {
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %2 = shardc.broadcast %b dims = [1] : tensor<384xf32> -> tensor<256x384xf32>
  %z = shardc.add %1, %2 : tensor<256x384xf32>
  %h = shardc.max %z, %0 : tensor<256x384xf32>
  %dh = shardc.dot_general %g, %v contracting = [1] x [1] : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %3 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %3, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  %db = shardc.reduce sum %dz dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %dw = shardc.dot_general %x, %dz contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  return %h, %dw, %db : tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>
}

// -----

// Another op reads the operand of the relu: it is not in the epilogue.

// CHECK-LABEL: func.func @second_user
// CHECK-NOT: {{ relu }}
// CHECK: shardc.max
// CHECK: shardc.select
func.func @second_user(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %b: tensor<384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>, tensor<256x384xf32>) {
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %2 = shardc.broadcast %b dims = [1] : tensor<384xf32> -> tensor<256x384xf32>
  %z = shardc.add %1, %2 : tensor<256x384xf32>
  %h = shardc.max %z, %0 : tensor<256x384xf32>
  %a = shardc.abs %z : tensor<256x384xf32>
  %dh = shardc.dot_general %g, %v contracting = [1] x [1] : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %3 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %3, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  %db = shardc.reduce sum %dz dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
  %dw = shardc.dot_general %x, %dz contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
  return %h, %dw, %db, %a : tensor<256x384xf32>, tensor<512x384xf32>, tensor<384xf32>, tensor<256x384xf32>
}
