// RUN: shardc-opt %s --split-input-file --shardc-schedule | FileCheck %s

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// The op that reads the parameter comes before the one that overwrites it.

// CHECK-LABEL: func.func @readers_first
// CHECK: shardc.exp
// CHECK: shardc.sub
func.func @readers_first(
    %w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %g: tensor<8xf32> {shardc.role = #shardc.input<"g">})
    -> (tensor<8xf32> {shardc.result = "w"}, tensor<8xf32> {shardc.result = "loss"}) {
  %0 = shardc.kernel(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %2 = shardc.sub %a, %b : tensor<8xf32>
    shardc.yield %2 : tensor<8xf32>
  }
  %1 = shardc.kernel(%w) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %2 = shardc.exp %a : tensor<8xf32>
    shardc.yield %2 : tensor<8xf32>
  }
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// An update that ends its gradient's life goes before what allocates more.

// CHECK-LABEL: func.func @gradients_first
// CHECK: shardc.exp
// CHECK: shardc.sub
// CHECK: shardc.log
func.func @gradients_first(
    %w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %x: tensor<8xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<8xf32> {shardc.result = "w"}, tensor<4x8xf32> {shardc.result = "loss"}) {
  %g = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %2 = shardc.exp %a : tensor<8xf32>
    shardc.yield %2 : tensor<8xf32>
  }
  %1 = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %2 = shardc.log %a : tensor<8xf32>
    %3 = shardc.broadcast %2 dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
    shardc.yield %3 : tensor<4x8xf32>
  }
  %3 = shardc.kernel(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %4 = shardc.neg %a : tensor<4x8xf32>
    shardc.yield %4 : tensor<4x8xf32>
  }
  %0 = shardc.kernel(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %4 = shardc.sub %a, %b : tensor<8xf32>
    shardc.yield %4 : tensor<8xf32>
  }
  return %0, %3 : tensor<8xf32>, tensor<4x8xf32>
}

// -----

// A loop that reads the parameter comes before the op that overwrites it.

// CHECK-LABEL: func.func @loop_first
// CHECK: shardc.accumulate
// CHECK: shardc.sub
func.func @loop_first(
    %w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %x: tensor<4x8xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<8xf32> {shardc.result = "w"}, tensor<8xf32> {shardc.result = "loss"}) {
  %0 = shardc.kernel(%w) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %2 = shardc.sub %a, %a : tensor<8xf32>
    shardc.yield %2 : tensor<8xf32>
  }
  %1 = shardc.accumulate 2 of (%x) : (tensor<4x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<2x8xf32>, %s: tensor<8xf32>):
    %2 = shardc.kernel(%s, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%b: tensor<8xf32>, %c: tensor<8xf32>):
      %3 = shardc.add %b, %c : tensor<8xf32>
      shardc.yield %3 : tensor<8xf32>
    }
    shardc.yield %2 : tensor<8xf32>
  }
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
