// RUN: shardc-opt %s --shardc-emulate-grid | FileCheck %s

// The kernel of a GPU as a function for the CPU: its iterations are the blocks,
// and the threads of a block run one after the other between the points where
// they synchronise. Values that a thread has at such a point are kept in an array.

// CHECK: shardc.extent = 2
// CHECK-NOT: gpu.module
// CHECK: module @kernels
// CHECK: llvm.func @shardc_reduce_0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: llvm.alloca %{{.*}} x f32 {alignment = 32 : i64}
// CHECK: llvm.addrspacecast %{{.*}} : !llvm.ptr to !llvm.ptr<1>
// CHECK-COUNT-4: llvm.xor %{{.*}} : i64
// CHECK-NOT: llvm.xor
// CHECK-NOT: gpu.
shardc.mesh @mesh <["data" = 1]>
func.func @short_rows(%x: tensor<20x10xf32>) -> tensor<20xf32> {
  %0 = shardc.kernel(%x) : (tensor<20x10xf32>) -> tensor<20xf32> {
  ^bb0(%a: tensor<20x10xf32>):
    %1 = shardc.reduce sum %a dims = [1] : tensor<20x10xf32> -> tensor<20xf32>
    shardc.yield %1 : tensor<20xf32>
  }
  return %0 : tensor<20xf32>
}
