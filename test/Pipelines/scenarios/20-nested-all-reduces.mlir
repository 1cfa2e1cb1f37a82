// An all_reduce of an all_reduce, written by hand: one over both axes.

// RUN: shardc-opt %s --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=BEFORE
// RUN: shardc-opt %s --shardc-simplify-collectives --shardc-report-communication \
// RUN:   -o /dev/null | FileCheck %s

// BEFORE-LABEL: @merge
// BEFORE: wire bytes per device: 2048

// CHECK-LABEL: @merge
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce a,b 4 1024 1536
// CHECK-NEXT: wire bytes per device: 1536

shardc.mesh @mesh <["a" = 2, "b" = 2]>

func.func @merge(%partial: tensor<32x8xf32>) -> tensor<32x8xf32> {
  %0 = shardc.all_reduce sum %partial over @mesh["b"] : (tensor<32x8xf32>) -> tensor<32x8xf32>
  %1 = shardc.all_reduce sum %0 over @mesh["a"] : (tensor<32x8xf32>) -> tensor<32x8xf32>
  return %1 : tensor<32x8xf32>
}
