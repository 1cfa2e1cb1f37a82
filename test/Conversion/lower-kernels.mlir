// RUN: shardc-opt %s --shardc-lower-kernels | FileCheck %s

// Equal kernels share one function; each names it and says its iterations.

// CHECK-LABEL: func.func @f
// CHECK: shardc.kernel
// CHECK-SAME: shardc.extent = 1
// CHECK-SAME: shardc.symbol = "[[ADD:shardc_map_[0-9]+]]"
// CHECK: shardc.kernel
// CHECK-SAME: shardc.symbol = "[[ADD]]"
// CHECK: shardc.kernel
// CHECK-SAME: shardc.extent = 16
// CHECK-SAME: shardc.symbol = "[[SUM:shardc_reduce_[0-9]+]]"

// CHECK: module @kernels
// CHECK: llvm.func @[[ADD]](%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: llvm.fadd {{.*}} : vector<8xf32>
// CHECK: llvm.func @[[SUM]]
// CHECK-NOT: llvm.func
shardc.mesh @mesh <["data" = 1]>
func.func @f(%x: tensor<8xf32>, %y: tensor<512x256xf32>) -> (tensor<8xf32>, tensor<512xf32>) {
  %0 = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %3 = shardc.add %a, %a : tensor<8xf32>
    shardc.yield %3 : tensor<8xf32>
  }
  %1 = shardc.kernel(%0) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %3 = shardc.add %a, %a : tensor<8xf32>
    shardc.yield %3 : tensor<8xf32>
  }
  %2 = shardc.kernel(%y) : (tensor<512x256xf32>) -> tensor<512xf32> {
  ^bb0(%a: tensor<512x256xf32>):
    %3 = shardc.reduce sum %a dims = [1] : tensor<512x256xf32> -> tensor<512xf32>
    shardc.yield %3 : tensor<512xf32>
  }
  return %1, %2 : tensor<8xf32>, tensor<512xf32>
}
