// RUN: shardc-opt %s --split-input-file --shardc-lower-kernels | FileCheck %s

// All devices along "model" have the same left factor, and other columns of the
// right one: a second function computes the results of three of them. It has
// their operands, and copies columns side by side. Both have the same
// iterations: three times the work of one device are four.

// CHECK-LABEL: func.func @shared
// CHECK: shardc.kernel
// CHECK-SAME: shardc.extent = 4 : i64, shardc.group_devices = 3 : i64, shardc.group_shared = 0 : i64, shardc.group_symbol = "shardc_matmul_0_group"
// CHECK-LABEL: llvm.func @shardc_matmul_0(
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @shardc_matmul_0_group(
// Columns of two devices, then of the third, which have the terms in order.
// CHECK: llvm.intr.fma
// CHECK-NOT: llvm.fadd
// CHECK: llvm.select
// CHECK: llvm.intr.fma
// CHECK-NOT: llvm.fadd
// CHECK: llvm.select
// CHECK: llvm.return
shardc.mesh @mesh <["data" = 2, "model" = 3]>
func.func @shared(%x: tensor<512x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
                  %w: tensor<16x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}) -> tensor<512x8xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<512x16xf32>, tensor<16x8xf32>) -> tensor<512x8xf32> {
  ^bb0(%a0: tensor<512x16xf32>, %a1: tensor<16x8xf32>):
    %1 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<512x16xf32>, tensor<16x8xf32> -> tensor<512x8xf32>
    %2 = shardc.constant dense<0.0> : tensor<512x8xf32>
    %3 = shardc.max %1, %2 : tensor<512x8xf32>
    shardc.yield %3 : tensor<512x8xf32>
  }
  return %0 : tensor<512x8xf32>
}

// -----

// An all-reduce makes the left factor equal. Along "data" it differs.

// CHECK-LABEL: func.func @reduced
// CHECK: shardc.group_devices = 3 : i64, shardc.group_shared = 1 : i64
shardc.mesh @mesh <["data" = 2, "model" = 3]>
func.func @reduced(%x: tensor<64x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {"model"}]>},
                   %w: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>},
                   %m: tensor<64x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {"model"}]>}) -> tensor<64x4xf32> {
  %s = shardc.collective_start(%x) : tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x8xf32>):
    %1 = shardc.all_reduce sum %a0 over @mesh["model"] : (tensor<64x8xf32>) -> tensor<64x8xf32>
    shardc.yield %1 : tensor<64x8xf32>
  }
  %y = shardc.collective_wait %s : tensor<64x8xf32>
  %0 = shardc.kernel(%m, %y, %w) : (tensor<64x4xf32>, tensor<64x8xf32>, tensor<4x8xf32>) -> tensor<64x4xf32> {
  ^bb0(%a0: tensor<64x4xf32>, %a1: tensor<64x8xf32>, %a2: tensor<4x8xf32>):
    %1 = shardc.dot_general %a1, %a2 contracting = [1] x [1] : tensor<64x8xf32>, tensor<4x8xf32> -> tensor<64x4xf32>
    %2 = shardc.mul %1, %a0 : tensor<64x4xf32>
    shardc.yield %2 : tensor<64x4xf32>
  }
  return %0 : tensor<64x4xf32>
}

// -----

// None has such a function: the left factors differ, the right one is the same
// though the other operand differs, there are too few columns or too many, a
// device's place is read, or factors are of bf16.

// CHECK-LABEL: func.func @none
// CHECK-NOT: shardc.group_symbol
// CHECK: llvm.return
shardc.mesh @mesh <["model" = 2]>
func.func @none(%x: tensor<64x16xf32>, %xd: tensor<64x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>},
                %w: tensor<16x8xf32>, %wd: tensor<16x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
                %n: tensor<16x3xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
                %h: tensor<16x8xbf16> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}, %xh: tensor<64x16xbf16>,
                %m: tensor<64x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
                %v: tensor<16x9xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}) {
  %0 = shardc.kernel(%xd, %wd) : (tensor<64x16xf32>, tensor<16x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x16xf32>, %a1: tensor<16x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x16xf32>, tensor<16x8xf32> -> tensor<64x8xf32>
    shardc.yield %10 : tensor<64x8xf32>
  }
  %1 = shardc.kernel(%x, %w, %m) : (tensor<64x16xf32>, tensor<16x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x16xf32>, %a1: tensor<16x8xf32>, %a2: tensor<64x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x16xf32>, tensor<16x8xf32> -> tensor<64x8xf32>
    %11 = shardc.mul %10, %a2 : tensor<64x8xf32>
    shardc.yield %11 : tensor<64x8xf32>
  }
  %2 = shardc.kernel(%x, %n) : (tensor<64x16xf32>, tensor<16x3xf32>) -> tensor<64x3xf32> {
  ^bb0(%a0: tensor<64x16xf32>, %a1: tensor<16x3xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x16xf32>, tensor<16x3xf32> -> tensor<64x3xf32>
    shardc.yield %10 : tensor<64x3xf32>
  }
  %3 = shardc.kernel(%x, %v) : (tensor<64x16xf32>, tensor<16x9xf32>) -> tensor<64x9xf32> {
  ^bb0(%a0: tensor<64x16xf32>, %a1: tensor<16x9xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x16xf32>, tensor<16x9xf32> -> tensor<64x9xf32>
    shardc.yield %10 : tensor<64x9xf32>
  }
  %4 = shardc.kernel(%x, %wd) : (tensor<64x16xf32>, tensor<16x8xf32>) -> tensor<64x8xf32> {
  ^bb0(%a0: tensor<64x16xf32>, %a1: tensor<16x8xf32>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x16xf32>, tensor<16x8xf32> -> tensor<64x8xf32>
    %11 = shardc.mask %10 dims = [1] fill = 0.0 shard = <@mesh, [{}, {"model"}]> global_shape = [64, 15] : tensor<64x8xf32>
    shardc.yield %11 : tensor<64x8xf32>
  }
  %5 = shardc.kernel(%xh, %h) : (tensor<64x16xbf16>, tensor<16x8xbf16>) -> tensor<64x8xbf16> {
  ^bb0(%a0: tensor<64x16xbf16>, %a1: tensor<16x8xbf16>):
    %10 = shardc.dot_general %a0, %a1 contracting = [1] x [0] : tensor<64x16xbf16>, tensor<16x8xbf16> -> tensor<64x8xbf16>
    shardc.yield %10 : tensor<64x8xbf16>
  }
  return
}
