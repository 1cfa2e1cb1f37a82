// RUN: shardc-opt %s --split-input-file --shardc-round-in-update | FileCheck %s

// Nothing of this is a parameter that the update could round: the converted value
// is computed from one, an input, a state, or made wider, or an integer; and what
// a program without the update rounds alone.

// CHECK-LABEL: func.func @train_step
// CHECK-COUNT-6: shardc.convert
// CHECK-NOT: shardc.copy
// CHECK-NOT: @round_parameters
module {
  func.func @train_step(
      %w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>},
      %v: tensor<4xbf16> {shardc.role = #shardc.parameter<"v", constant(0)>},
      %m: tensor<4xf32> {shardc.role = #shardc.state<"w.m", constant(0), of = "w">},
      %step: tensor<i32> {shardc.role = #shardc.state<"step", constant(0)>},
      %x: tensor<4xf32> {shardc.role = #shardc.input<"x">})
      -> (tensor<4xf32> {shardc.result = "w"}, tensor<4xbf16> {shardc.result = "a"}, tensor<4xf32> {shardc.result = "b"}, tensor<4xbf16> {shardc.result = "c"}, tensor<4xbf16> {shardc.result = "d"}, tensor<bf16> {shardc.result = "e"}) {
    %0 = shardc.neg %w : tensor<4xf32>
    %1 = shardc.convert %0 : tensor<4xf32> -> tensor<4xbf16>
    %2 = shardc.convert %v : tensor<4xbf16> -> tensor<4xf32>
    %3 = shardc.convert %m : tensor<4xf32> -> tensor<4xbf16>
    %4 = shardc.convert %x : tensor<4xf32> -> tensor<4xbf16>
    %5 = shardc.convert %step : tensor<i32> -> tensor<bf16>
    return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<bf16>
  }
  func.func @evaluate(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>}) -> (tensor<4xbf16> {shardc.result = "a"}) {
    %0 = shardc.convert %w : tensor<4xf32> -> tensor<4xbf16>
    return %0 : tensor<4xbf16>
  }
}

// -----

// The copy lies as its parameter does, in storage and in loops; all programs that
// round read it, and that which updates writes it. Who reads the parameter
// itself still does. The name "w.bf16" is taken.

// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {shardc.global_shape = array<i64: 7>, shardc.role = #shardc.parameter<"w", constant(0)>, shardc.sharding = #[[SHARDING:.*]]}, %[[M:[^:]*]]: tensor<4xf32>
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xbf16>
// CHECK-SAME: %[[COPY:[^:]*]]: tensor<4xbf16> {shardc.global_shape = array<i64: 7>, shardc.role = #shardc.copy<"w.bf16_", of = "w">, shardc.sharding = #[[SHARDING]]}
// CHECK-SAME: -> (tensor<4xf32> {shardc.result = "w"}, tensor<4xf32> {shardc.result = "w.bf16"}, tensor<4xbf16> {shardc.result = "s"}, tensor<4xbf16> {shardc.global_shape = array<i64: 7>, shardc.result = "w.bf16_", shardc.sharding = #[[SHARDING]]})
// CHECK-NEXT: %[[S:.*]] = shardc.accumulate
// CHECK: shardc.add %{{.*}}, %[[COPY]]
// CHECK: %[[NEW:.*]] = shardc.sub %[[W]], %[[M]]
// CHECK-NEXT: %[[ROUNDED:.*]] = shardc.convert %[[NEW]] {shardc.part = #shardc.part<update>} : tensor<4xf32> -> tensor<4xbf16>
// CHECK-NEXT: return %[[NEW]], %[[M]], %[[S]], %[[ROUNDED]]

// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32>
// CHECK-SAME: %[[COPY:[^:]*]]: tensor<4xbf16> {{.*}}#shardc.copy<"w.bf16_", of = "w">
// CHECK-SAME: -> (tensor<4xbf16> {shardc.result = "y"}) {
// CHECK-NEXT: %[[Y:.*]] = shardc.neg %[[COPY]]
// CHECK-NEXT: return %[[Y]]

// CHECK-LABEL: func.func @norm
// CHECK-NOT: shardc.copy
// CHECK: shardc.neg

// CHECK-LABEL: func.func @round_parameters
// CHECK-SAME: (%[[W:[^:]*]]: tensor<4xf32> {shardc.global_shape = array<i64: 7>, shardc.role = #shardc.parameter<"w", constant(0)>, shardc.sharding = #[[SHARDING]]}, %{{[^:]*}}: tensor<4xbf16> {{{.*}}#shardc.copy<"w.bf16_", of = "w">
// CHECK-SAME: -> (tensor<4xbf16> {shardc.global_shape = array<i64: 7>, shardc.result = "w.bf16_", shardc.sharding = #[[SHARDING]]}) {
// CHECK-NEXT: %[[ROUNDED:.*]] = shardc.convert %[[W]] {shardc.part = #shardc.part<update>}
// CHECK-NEXT: return %[[ROUNDED]]
#sharding = #shardc.sharding<@mesh, [{"d"}]>
module {
  shardc.mesh @mesh <["d" = 2]>
  func.func @train_step(
      %w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>, shardc.sharding = #sharding, shardc.global_shape = array<i64: 7>},
      %m: tensor<4xf32> {shardc.role = #shardc.state<"w.bf16", constant(0), of = "w">},
      %x: tensor<8x4xbf16> {shardc.role = #shardc.input<"x">})
      -> (tensor<4xf32> {shardc.result = "w"}, tensor<4xf32> {shardc.result = "w.bf16"}, tensor<4xbf16> {shardc.result = "s"}) {
    %0 = shardc.accumulate 2 of (%x) : (tensor<8x4xbf16>) -> tensor<4xbf16> {
    ^bb0(%a: tensor<4x4xbf16>):
      %1 = shardc.reduce sum %a dims = [0] : tensor<4x4xbf16> -> tensor<4xbf16>
      %2 = shardc.convert %w : tensor<4xf32> -> tensor<4xbf16>
      %3 = shardc.add %1, %2 : tensor<4xbf16>
      shardc.yield %3 : tensor<4xbf16>
    }
    %4 = shardc.sub %w, %m {shardc.part = #shardc.part<update>} : tensor<4xf32>
    return %4, %m, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
  }
  func.func @evaluate(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>, shardc.sharding = #sharding, shardc.global_shape = array<i64: 7>}) -> (tensor<4xbf16> {shardc.result = "y"}) {
    %0 = shardc.convert %w : tensor<4xf32> -> tensor<4xbf16>
    %1 = shardc.neg %0 : tensor<4xbf16>
    return %1 : tensor<4xbf16>
  }
  func.func @norm(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>, shardc.sharding = #sharding, shardc.global_shape = array<i64: 7>}) -> (tensor<4xf32> {shardc.result = "n"}) {
    %0 = shardc.neg %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A copy for each type; a parameter that keeps its value keeps its copies.

// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf64> {{[^%]*}}, %[[K:[^:]*]]: tensor<4xf32> {{[^%]*}}, %[[F32:[^:]*]]: tensor<4xf32> {shardc.role = #shardc.copy<"w.f32", of = "w">}, %[[BF16:[^:]*]]: tensor<4xbf16> {shardc.role = #shardc.copy<"w.bf16", of = "w">}, %[[KEPT:[^:]*]]: tensor<4xbf16> {shardc.role = #shardc.copy<"k.bf16", of = "k">})
// CHECK-NEXT: %[[NEW:.*]] = shardc.neg %[[W]]
// CHECK-DAG: %[[NEW32:.*]] = shardc.convert %[[NEW]] {{.*}} -> tensor<4xf32>
// CHECK-DAG: %[[NEW16:.*]] = shardc.convert %[[NEW]] {{.*}} -> tensor<4xbf16>
// CHECK: return %[[NEW]], %[[K]], %[[F32]], %[[BF16]], %[[KEPT]], %[[NEW32]], %[[NEW16]], %[[KEPT]]
// CHECK-LABEL: func.func @round_parameters
// CHECK-SAME: (%[[W:[^:]*]]: tensor<4xf64> {{[^%]*}}, %[[K:[^:]*]]: tensor<4xf32>
// CHECK-COUNT-2: shardc.convert %[[W]]
// CHECK-NEXT: shardc.convert %[[K]]
// CHECK-NOT: shardc.convert
module {
  func.func @train_step(
      %w: tensor<4xf64> {shardc.role = #shardc.parameter<"w", constant(0)>},
      %k: tensor<4xf32> {shardc.role = #shardc.parameter<"k", constant(0)>})
      -> (tensor<4xf64> {shardc.result = "w"}, tensor<4xf32> {shardc.result = "k"}, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>) {
    %0 = shardc.convert %w : tensor<4xf64> -> tensor<4xf32>
    %1 = shardc.convert %w : tensor<4xf64> -> tensor<4xbf16>
    %2 = shardc.convert %k : tensor<4xf32> -> tensor<4xbf16>
    %3 = shardc.neg %w {shardc.part = #shardc.part<update>} : tensor<4xf64>
    return %3, %k, %0, %1, %2 : tensor<4xf64>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>
  }
}

// -----

// The name of a result is taken as well.

// CHECK-LABEL: func.func @train_step
// CHECK-SAME: #shardc.copy<"w.bf16_", of = "w">
// CHECK-SAME: shardc.result = "w.bf16"}
// CHECK-SAME: shardc.result = "w.bf16_"}
module {
  func.func @train_step(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>}) -> (tensor<4xf32> {shardc.result = "w"}, tensor<4xbf16> {shardc.result = "w.bf16"}) {
    %0 = shardc.convert %w : tensor<4xf32> -> tensor<4xbf16>
    %1 = shardc.neg %w {shardc.part = #shardc.part<update>} : tensor<4xf32>
    return %1, %0 : tensor<4xf32>, tensor<4xbf16>
  }
}
