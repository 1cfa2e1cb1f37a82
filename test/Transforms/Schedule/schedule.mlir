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

// So does who reads its copy, of the type that is computed in.

// CHECK-LABEL: func.func @readers_of_copies_first
// CHECK: shardc.exp
// CHECK: shardc.sub
func.func @readers_of_copies_first(
    %w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %g: tensor<8xf32> {shardc.role = #shardc.input<"g">},
    %c: tensor<8xbf16> {shardc.role = #shardc.copy<"w.bf16", of = "w">})
    -> (tensor<8xf32> {shardc.result = "w"}, tensor<8xbf16> {shardc.result = "w.bf16"}, tensor<8xbf16> {shardc.result = "loss"}) {
  %0:2 = shardc.kernel(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %2 = shardc.sub %a, %b : tensor<8xf32>
    %3 = shardc.convert %2 : tensor<8xf32> -> tensor<8xbf16>
    shardc.yield %2, %3 : tensor<8xf32>, tensor<8xbf16>
  }
  %1 = shardc.kernel(%c) : (tensor<8xbf16>) -> tensor<8xbf16> {
  ^bb0(%a: tensor<8xbf16>):
    %2 = shardc.exp %a : tensor<8xbf16>
    shardc.yield %2 : tensor<8xbf16>
  }
  return %0#0, %0#1, %1 : tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>
}

// -----

// An update that ends its gradient's life goes before ops that allocate more.

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

// -----

// A weight that is gathered for one pass comes right before its first user, with
// the collectives that it is made by; other gathers stay where they are.

shardc.mesh @mesh <["a" = 2, "b" = 2]>

// CHECK-LABEL: func.func @gathered_late
// CHECK-SAME: %[[W:[^ ]*]]: {{.*}}, %[[V:[^ ]*]]: tensor<2xf32>
// CHECK-NEXT: %[[X:.*]] = shardc.all_gather %[[V]] over @mesh["a"]
// CHECK-NEXT: %[[K:.*]] = shardc.kernel(%[[X]])
// CHECK: %[[A:.*]] = shardc.all_gather %[[W]] over @mesh["a"]
// CHECK-NEXT: %[[G:.*]] = shardc.all_gather %[[A]] over @mesh["b"]
// CHECK-NEXT: shardc.kernel(%[[K]], %[[G]])
func.func @gathered_late(
    %w: tensor<2xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %v: tensor<2xf32> {shardc.role = #shardc.parameter<"v", constant(0.0)>})
    -> tensor<8xf32> {
  %a = shardc.all_gather %w over @mesh["a"] dims = [0] {shardc.gathered_for = #shardc.part<backward>} : (tensor<2xf32>) -> tensor<4xf32>
  %g = shardc.all_gather %a over @mesh["b"] dims = [0] {shardc.gathered_for = #shardc.part<backward>} : (tensor<4xf32>) -> tensor<8xf32>
  %x = shardc.all_gather %v over @mesh["a"] dims = [0] : (tensor<2xf32>) -> tensor<4xf32>
  %k = shardc.kernel(%x) : (tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%b: tensor<4xf32>):
    %0 = shardc.broadcast %b dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
    shardc.yield %0 : tensor<2x4xf32>
  }
  %r = shardc.kernel(%k, %g) : (tensor<2x4xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%b: tensor<2x4xf32>, %c: tensor<8xf32>):
    %0 = shardc.reshape %b : tensor<2x4xf32> -> tensor<8xf32>
    %1 = shardc.add %0, %c : tensor<8xf32>
    shardc.yield %1 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
