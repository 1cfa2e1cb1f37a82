// The flag --debug-only prints the decisions of the passes that it names.

// REQUIRES: debug-build
// RUN: shardc-opt %s --shardc-simplify-collectives --shardc-combine-collectives --debug-only=shardc-combine-collectives -o %t 2>&1 | FileCheck %s
// RUN: shardc-opt %s --shardc-simplify-collectives --shardc-combine-collectives --debug-only=shardc-combine-collectives,shardc-simplify-collectives -o %t 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: shardc-opt %s --shardc-simplify-collectives --shardc-combine-collectives -o %t 2>&1 | count 0

// CHECK-NOT: merge
// CHECK: bucket of 2, 48 bytes:
// CHECK-NEXT: all_reduce at debug-only.mlir:[[@LINE+11]], 16 bytes
// CHECK-NEXT: all_reduce at debug-only.mlir:[[@LINE+12]], 32 bytes
// CHECK-NOT: bucket

// BOTH: merge all_reduce at debug-only.mlir:[[@LINE+8]] with all_reduce at debug-only.mlir:[[@LINE+7]]
// BOTH: bucket of 2, 48 bytes:

shardc.mesh @mesh <["a" = 2]>

func.func @independent(%x: tensor<4xf32>, %y: tensor<8xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) {
  %0 = shardc.all_reduce sum %x over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shardc.all_reduce sum %x over @mesh["a"] : (tensor<4xf32>) -> tensor<4xf32>
  %2 = shardc.all_reduce sum %y over @mesh["a"] : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
}
