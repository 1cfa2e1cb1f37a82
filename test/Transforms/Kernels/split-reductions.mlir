// RUN: shardc-opt %s --split-input-file --shardc-split-reductions | FileCheck %s

// A small tensor, short rows, one dimension, and reductions to more than one
// element stay as they are.

// CHECK-LABEL: func.func @unchanged
// CHECK: shardc.reduce sum %{{.*}} dims = [0, 1] : tensor<64x64xf32>
// CHECK: shardc.reduce sum %{{.*}} dims = [0, 1] : tensor<65536x2xf32>
// CHECK: shardc.reduce sum %{{.*}} dims = [0] : tensor<131072xf32>
// CHECK: shardc.reduce sum %{{.*}} dims = [0, 1] : tensor<256x256x2xf32>
// CHECK-NOT: shardc.reduce
func.func @unchanged(%a: tensor<64x64xf32>, %b: tensor<65536x2xf32>, %c: tensor<131072xf32>, %d: tensor<256x256x2xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>) {
  %0 = shardc.reduce sum %a dims = [0, 1] : tensor<64x64xf32> -> tensor<f32>
  %1 = shardc.reduce sum %b dims = [0, 1] : tensor<65536x2xf32> -> tensor<f32>
  %2 = shardc.reduce sum %c dims = [0] : tensor<131072xf32> -> tensor<f32>
  %3 = shardc.reduce sum %d dims = [0, 1] : tensor<256x256x2xf32> -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>
}

// -----

// Rows first; attributes go along.

// CHECK-LABEL: func.func @large
// CHECK-SAME: %[[X:.*]]: tensor<512x4x64xf32>
// CHECK: %[[ROWS:.*]] = shardc.reduce max %[[X]] dims = [1, 2] {shardc.part = #shardc.part<backward>} : tensor<512x4x64xf32> -> tensor<512xf32>
// CHECK: %[[ALL:.*]] = shardc.reduce max %[[ROWS]] dims = [0] {shardc.part = #shardc.part<backward>} : tensor<512xf32> -> tensor<f32>
// CHECK: return %[[ALL]]
func.func @large(%x: tensor<512x4x64xf32>) -> tensor<f32> {
  %0 = shardc.reduce max %x dims = [0, 1, 2] {shardc.part = #shardc.part<backward>} : tensor<512x4x64xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A tensor of any size, if a kernel that reduces rows has its elements: the sum
// is that of the rows' sums.

// CHECK-LABEL: func.func @with_rows
// CHECK: %[[DIFFERENCE:.*]] = shardc.sub
// CHECK: %[[ROWS:.*]] = shardc.reduce sum %[[DIFFERENCE]] dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
// CHECK: shardc.reduce sum %[[ROWS]] dims = [0] : tensor<6xf32> -> tensor<f32>
// CHECK: %[[SQUARE:.*]] = shardc.mul
// CHECK: %[[ROWS:.*]] = shardc.reduce sum %[[SQUARE]] dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
// CHECK: shardc.reduce sum %[[ROWS]] dims = [0] : tensor<6xf32> -> tensor<f32>
func.func @with_rows(%x: tensor<6x10xf32>, %y: tensor<6x10xf32>) -> (tensor<f32>, tensor<f32>, tensor<6xf32>) {
  %0 = shardc.reduce max %x dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
  %1 = shardc.broadcast %0 dims = [0] : tensor<6xf32> -> tensor<6x10xf32>
  %2 = shardc.sub %x, %1 : tensor<6x10xf32>
  %3 = shardc.reduce sum %2 dims = [0, 1] : tensor<6x10xf32> -> tensor<f32>
  %4 = shardc.neg %y : tensor<6x10xf32>
  %5 = shardc.exp %4 : tensor<6x10xf32>
  %6 = shardc.reduce sum %5 dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
  %7 = shardc.mul %4, %4 : tensor<6x10xf32>
  %8 = shardc.reduce sum %7 dims = [0, 1] : tensor<6x10xf32> -> tensor<f32>
  return %3, %8, %6 : tensor<f32>, tensor<f32>, tensor<6xf32>
}

// -----

// Rows that are reduced in the same way for other reasons are reduced once,
// wherever that is.

// CHECK-LABEL: func.func @same_rows
// CHECK: %[[ROWS:.*]] = shardc.reduce sum %{{.*}} dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
// CHECK-NEXT: %[[ALL:.*]] = shardc.reduce sum %[[ROWS]] dims = [0] : tensor<6xf32> -> tensor<f32>
// CHECK-NEXT: return %[[ALL]], %[[ROWS]]
func.func @same_rows(%x: tensor<6x10xf32>) -> (tensor<f32>, tensor<6xf32>) {
  %0 = shardc.reduce sum %x dims = [0, 1] : tensor<6x10xf32> -> tensor<f32>
  %1 = shardc.reduce sum %x dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
  return %0, %1 : tensor<f32>, tensor<6xf32>
}

// -----

// Columns are reduced by another kernel, and the rows of another value too; rows
// of one element are nothing to reduce.

// CHECK-LABEL: func.func @without_rows
// CHECK: shardc.reduce max %{{.*}} dims = [0]
// CHECK: shardc.reduce sum %{{.*}} dims = [0, 1]
// CHECK: shardc.reduce max %{{.*}} dims = [1]
// CHECK: shardc.reduce sum %{{.*}} dims = [0]
// CHECK: shardc.reduce sum %{{.*}} dims = [0, 1]
// CHECK: shardc.reduce sum %{{.*}} dims = [1]
// CHECK-NOT: shardc.reduce
func.func @without_rows(%x: tensor<6x10xf32>, %y: tensor<6x10xf32>, %z: tensor<6x1xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<6xf32>) {
  %0 = shardc.reduce max %x dims = [0] : tensor<6x10xf32> -> tensor<10xf32>
  %1 = shardc.broadcast %0 dims = [1] : tensor<10xf32> -> tensor<6x10xf32>
  %2 = shardc.sub %x, %1 : tensor<6x10xf32>
  %3 = shardc.reduce sum %2 dims = [0, 1] : tensor<6x10xf32> -> tensor<f32>
  %4 = shardc.reduce max %y dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
  %5 = shardc.reduce sum %4 dims = [0] : tensor<6xf32> -> tensor<f32>
  %6 = shardc.reduce sum %z dims = [0, 1] : tensor<6x1xf32> -> tensor<f32>
  %7 = shardc.reduce sum %z dims = [1] : tensor<6x1xf32> -> tensor<6xf32>
  return %3, %5, %6, %7 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<6xf32>
}

// -----

// Sums of the columns of a matrix are marked; other reductions are not.

// CHECK-LABEL: func.func @columns
// CHECK: shardc.reduce sum %{{.*}} dims = [0] {shardc.by_product} : tensor<6x10xf32>
// CHECK: shardc.reduce max %{{.*}} dims = [0] : tensor<6x10xf32>
// CHECK: shardc.reduce sum %{{.*}} dims = [1] : tensor<6x10xf32>
// CHECK: shardc.reduce sum %{{.*}} dims = [0] : tensor<6xf32>
func.func @columns(%x: tensor<6x10xf32>) -> (tensor<10xf32>, tensor<10xf32>, tensor<f32>) {
  %0 = shardc.reduce sum %x dims = [0] : tensor<6x10xf32> -> tensor<10xf32>
  %1 = shardc.reduce max %x dims = [0] : tensor<6x10xf32> -> tensor<10xf32>
  %2 = shardc.reduce sum %x dims = [1] : tensor<6x10xf32> -> tensor<6xf32>
  %3 = shardc.reduce sum %2 dims = [0] : tensor<6xf32> -> tensor<f32>
  return %0, %1, %3 : tensor<10xf32>, tensor<10xf32>, tensor<f32>
}
