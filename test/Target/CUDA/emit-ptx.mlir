// RUN: shardc-opt %s --pass-pipeline='builtin.module(shardc-lower-kernels-to-gpu{chip=sm_90},gpu.module(shardc-convert-to-nvvm),shardc-emit-ptx)' -o /dev/null | FileCheck %s
// RUN: not shardc-opt %s --shardc-emit-ptx 2>&1 | FileCheck %s --check-prefix=EARLY

// The language's version is fixed, whatever LLVM's default is.
// CHECK: .version 7.8
// CHECK: .target sm_90

// One access moves 128 bits; ops that the program does not fuse stay unfused, and
// exponentials are polynomials.
// CHECK-LABEL: .visible .entry shardc_map_0(
// CHECK-COUNT-3: .param .u64
// CHECK: .maxntid 256, 1, 1
// CHECK: ld.global.v4.f32
// CHECK: fma.rn.f32
// CHECK-NOT: call
// CHECK: div.rn.f32
// CHECK: st.global.v4.f32

// CHECK-LABEL: .visible .entry shardc_reduce_1(
// CHECK: ld.global.v4.f32
// CHECK: shfl.sync.bfly.b32
// CHECK: st.shared.f32
// CHECK: bar.sync
// CHECK: ld.shared.f32
// CHECK: st.global.f32

// Columns.
// CHECK-LABEL: .visible .entry shardc_reduce_2(
// CHECK: ld.global.v4.f32
// CHECK: st.shared.v4.f32
// CHECK: bar.sync
// CHECK: ld.shared.v4.f32
// CHECK: st.global.v4.f32

// Pairs of threads have a row.
// CHECK-LABEL: .visible .entry shardc_reduce_3(
// CHECK: shfl.sync.bfly.b32

// Both factors are read as vectors, and the sums of slices meet in shared memory.
// CHECK-LABEL: .visible .entry shardc_matmul_4(
// CHECK: ld.global.v4.f32
// CHECK: fma.rn.f32
// CHECK: st.shared
// CHECK: bar.sync
// CHECK: ld.shared.f32
// CHECK: st.global.f32

// EARLY: error: shardc-emit-ptx: expected IR of the phase 'codegen', found IR of the phase 'kernels'
shardc.mesh @mesh <["data" = 1]>
func.func @f(%x: tensor<64x4096xf32>, %y: tensor<4096x8xf32>) {
  %0 = shardc.kernel(%x) : (tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  ^bb0(%a: tensor<64x4096xf32>):
    %1 = shardc.tanh %a : tensor<64x4096xf32>
    shardc.yield %1 : tensor<64x4096xf32>
  }
  %2 = shardc.kernel(%x) : (tensor<64x4096xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64x4096xf32>):
    %1 = shardc.reduce sum %a dims = [1] : tensor<64x4096xf32> -> tensor<64xf32>
    shardc.yield %1 : tensor<64xf32>
  }
  %3 = shardc.kernel(%x) : (tensor<64x4096xf32>) -> tensor<4096xf32> {
  ^bb0(%a: tensor<64x4096xf32>):
    %1 = shardc.reduce sum %a dims = [0] : tensor<64x4096xf32> -> tensor<4096xf32>
    shardc.yield %1 : tensor<4096xf32>
  }
  %4 = shardc.kernel(%y) : (tensor<4096x8xf32>) -> tensor<4096xf32> {
  ^bb0(%a: tensor<4096x8xf32>):
    %1 = shardc.reduce max %a dims = [1] : tensor<4096x8xf32> -> tensor<4096xf32>
    shardc.yield %1 : tensor<4096xf32>
  }
  %5 = shardc.kernel(%x, %y) : (tensor<64x4096xf32>, tensor<4096x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a: tensor<64x4096xf32>, %b: tensor<4096x8xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [0] : tensor<64x4096xf32>, tensor<4096x8xf32> -> tensor<64x8xf32>
    shardc.yield %1 : tensor<64x8xf32>
  }
  return
}
