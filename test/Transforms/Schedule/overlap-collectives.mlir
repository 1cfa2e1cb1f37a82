// RUN: shardc-opt %s --split-input-file --shardc-overlap-collectives | FileCheck %s

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing(%x: tensor<8xf32> {shardc.role = #shardc.input<"x">}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// The first gradient is reduced while the second one is computed; its users
// come when nothing else is left. The step has needed more memory before.

shardc.mesh @mesh <["data" = 2]>

// CHECK-LABEL: func.func @gradients
// CHECK: %[[T:.*]] = shardc.kernel
// CHECK: %[[G:.*]] = shardc.kernel(%[[T]])
// CHECK: %[[H:.*]] = shardc.collective_start(%[[G]]) {shardc.part = #shardc.part<backward>}
// CHECK: shardc.all_reduce sum %{{.*}} over @mesh["data"] {shardc.cause = "g", shardc.part = #shardc.part<backward>}
// CHECK: %[[K:.*]] = shardc.kernel
// CHECK: shardc.log
// CHECK: %[[I:.*]] = shardc.collective_start(%[[K]])
// CHECK: %[[R:.*]] = shardc.collective_wait %[[H]] {shardc.part = #shardc.part<backward>}
// CHECK: shardc.kernel(%{{.*}}, %[[R]])
// CHECK: %[[S:.*]] = shardc.collective_wait %[[I]]
// CHECK: shardc.kernel(%{{.*}}, %[[S]])
func.func @gradients(
    %w: tensor<256xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %v: tensor<256xf32> {shardc.role = #shardc.parameter<"v", constant(0.0)>},
    %x: tensor<256xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<256xf32> {shardc.result = "w"}, tensor<256xf32> {shardc.result = "v"}) {
  %t = shardc.kernel(%x) : (tensor<256xf32>) -> tensor<4x256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.broadcast %a dims = [1] : tensor<256xf32> -> tensor<4x256xf32>
    shardc.yield %0 : tensor<4x256xf32>
  }
  %g = shardc.kernel(%t) : (tensor<4x256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<4x256xf32>):
    %0 = shardc.reduce sum %a dims = [0] : tensor<4x256xf32> -> tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %r = shardc.all_reduce sum %g over @mesh["data"] {shardc.cause = "g", shardc.part = #shardc.part<backward>} : (tensor<256xf32>) -> tensor<256xf32>
  %w1 = shardc.kernel(%w, %r) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
    %0 = shardc.sub %a, %b : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %h = shardc.kernel(%x) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.log %a : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %s = shardc.all_reduce sum %h over @mesh["data"] {shardc.cause = "h", shardc.part = #shardc.part<backward>} : (tensor<256xf32>) -> tensor<256xf32>
  %v1 = shardc.kernel(%v, %s) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
    %0 = shardc.sub %a, %b : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  return %w1, %v1 : tensor<256xf32>, tensor<256xf32>
}

// -----

// Starting the gather at the top, or keeping %r until the end, would need more
// memory than the given order does at its peak: both stay where they are.

shardc.mesh @mesh <["data" = 2]>

// CHECK-LABEL: func.func @bounded
// CHECK: shardc.kernel
// CHECK: shardc.collective_start
// CHECK: shardc.all_reduce
// CHECK: shardc.collective_wait
// CHECK: shardc.kernel
// CHECK: shardc.sub
// CHECK: shardc.kernel
// CHECK: shardc.broadcast
// CHECK: shardc.kernel
// CHECK: shardc.reduce
// CHECK: shardc.collective_start
// CHECK: shardc.all_gather
// CHECK: shardc.collective_wait
func.func @bounded(
    %w: tensor<256xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %y: tensor<512xf32> {shardc.role = #shardc.input<"y">},
    %x: tensor<256xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<256xf32> {shardc.result = "w"}, tensor<f32> {shardc.result = "loss"}) {
  %g = shardc.kernel(%x) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.exp %a : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %r = shardc.all_reduce sum %g over @mesh["data"] : (tensor<256xf32>) -> tensor<256xf32>
  %w1 = shardc.kernel(%w, %r) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
    %0 = shardc.sub %a, %b : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %t = shardc.kernel(%x) : (tensor<256xf32>) -> tensor<4x256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.broadcast %a dims = [1] : tensor<256xf32> -> tensor<4x256xf32>
    shardc.yield %0 : tensor<4x256xf32>
  }
  %u = shardc.kernel(%t) : (tensor<4x256xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<4x256xf32>):
    %0 = shardc.reduce sum %a dims = [0, 1] : tensor<4x256xf32> -> tensor<f32>
    shardc.yield %0 : tensor<f32>
  }
  %z = shardc.all_gather %y over @mesh["data"] dims = [0] : (tensor<512xf32>) -> tensor<1024xf32>
  %l = shardc.kernel(%z, %u) : (tensor<1024xf32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<1024xf32>, %b: tensor<f32>):
    %0 = shardc.reduce sum %a dims = [0] : tensor<1024xf32> -> tensor<f32>
    %1 = shardc.add %0, %b : tensor<f32>
    shardc.yield %1 : tensor<f32>
  }
  return %w1, %l : tensor<256xf32>, tensor<f32>
}

// -----

// With room for it the gather starts at the top. An all_reduce does not pass
// another reader of its operand: it works in the operand's place.

shardc.mesh @mesh <["data" = 2]>

// CHECK-LABEL: func.func @early
// CHECK-NEXT: %[[H:.*]] = shardc.collective_start(%arg0)
// CHECK: shardc.all_gather
// CHECK: %[[T:.*]] = shardc.kernel
// CHECK: %[[U:.*]] = shardc.kernel(%[[T]])
// CHECK: shardc.exp
// CHECK: %[[I:.*]] = shardc.collective_start(%[[T]])
// CHECK: %[[Z:.*]] = shardc.collective_wait %[[H]]
// CHECK: %[[V:.*]] = shardc.kernel(%[[U]], %[[Z]])
// CHECK: %[[R:.*]] = shardc.collective_wait %[[I]]
// CHECK: shardc.kernel(%[[V]], %[[R]])
func.func @early(
    %y: tensor<128xf32> {shardc.role = #shardc.input<"y">},
    %x: tensor<256xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<256xf32> {shardc.result = "loss"}) {
  %t = shardc.kernel(%x) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.log %a : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %u = shardc.kernel(%t) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.exp %a : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %z = shardc.all_gather %y over @mesh["data"] dims = [0] : (tensor<128xf32>) -> tensor<256xf32>
  %v = shardc.kernel(%u, %z) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
    %0 = shardc.add %a, %b : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %r = shardc.all_reduce sum %t over @mesh["data"] : (tensor<256xf32>) -> tensor<256xf32>
  %s = shardc.kernel(%v, %r) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
    %0 = shardc.mul %a, %b : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  return %s : tensor<256xf32>
}

// -----

// The scattered gradient is reduced further as soon as the next bucket goes.

shardc.mesh @mesh <["r" = 2, "f" = 2]>

// CHECK-LABEL: func.func @chained
// CHECK: %[[A:.*]] = shardc.collective_start(%arg0)
// CHECK: %[[G:.*]] = shardc.kernel
// CHECK: %[[S:.*]] = shardc.collective_wait %[[A]]
// CHECK: %[[B:.*]] = shardc.collective_start(%[[S]])
// CHECK: shardc.all_reduce
// CHECK: %[[C:.*]] = shardc.collective_start(%[[G]])
// CHECK: shardc.collective_wait %[[B]]
// CHECK: shardc.collective_wait %[[C]]
func.func @chained(
    %x: tensor<256xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<128xf32> {shardc.result = "a"}, tensor<128xf32> {shardc.result = "b"}) {
  %s = shardc.reduce_scatter sum %x over @mesh["f"] dims = [0] : (tensor<256xf32>) -> tensor<128xf32>
  %r = shardc.all_reduce sum %s over @mesh["r"] : (tensor<128xf32>) -> tensor<128xf32>
  %g = shardc.kernel(%x) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %0 = shardc.exp %a : tensor<256xf32>
    shardc.yield %0 : tensor<256xf32>
  }
  %t = shardc.reduce_scatter sum %g over @mesh["f"] dims = [0] : (tensor<256xf32>) -> tensor<128xf32>
  return %r, %t : tensor<128xf32>, tensor<128xf32>
}

// -----

// In a loop a collective starts and ends in the same run; the next sum does not
// overwrite the last one under a reader.

shardc.mesh @mesh <["data" = 2]>

// CHECK-LABEL: func.func @loop
// CHECK: shardc.accumulate
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<8xf32>, %[[S:.*]]: tensor<8xf32>):
// CHECK: %[[E:.*]] = shardc.kernel(%[[A]])
// CHECK: %[[H:.*]] = shardc.collective_start(%[[E]])
// CHECK: shardc.all_reduce
// CHECK: %[[L:.*]] = shardc.kernel(%[[S]])
// CHECK: %[[R:.*]] = shardc.collective_wait %[[H]]
// CHECK: %[[N:.*]] = shardc.kernel(%[[R]], %[[L]], %[[S]])
// CHECK: shardc.yield %[[N]]
func.func @loop(%x: tensor<32xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<8xf32> {shardc.result = "loss"}) {
  %t = shardc.accumulate 4 of (%x) : (tensor<32xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %s: tensor<8xf32>):
    %e = shardc.kernel(%a) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%b: tensor<8xf32>):
      %0 = shardc.exp %b : tensor<8xf32>
      shardc.yield %0 : tensor<8xf32>
    }
    %l = shardc.kernel(%s) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%b: tensor<8xf32>):
      %0 = shardc.log %b : tensor<8xf32>
      shardc.yield %0 : tensor<8xf32>
    }
    %r = shardc.all_reduce sum %e over @mesh["data"] : (tensor<8xf32>) -> tensor<8xf32>
    %n = shardc.kernel(%r, %l, %s) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>):
      %0 = shardc.mul %b, %c : tensor<8xf32>
      %1 = shardc.add %d, %0 : tensor<8xf32>
      shardc.yield %1 : tensor<8xf32>
    }
    shardc.yield %n : tensor<8xf32>
  }
  return %t : tensor<8xf32>
}

// -----

// There is room for both gathers at the top; the one that is for the backward
// pass starts once that has begun.

shardc.mesh @mesh <["data" = 2]>

// CHECK-LABEL: func.func @gathered_again
// CHECK: shardc.collective_start
// CHECK: shardc.gathered_for = #shardc.part<forward>
// CHECK: shardc.log
// CHECK: shardc.exp
// CHECK: %[[B:.*]] = shardc.collective_start
// CHECK: shardc.gathered_for = #shardc.part<backward>
// CHECK: shardc.tanh
// CHECK: shardc.collective_wait %[[B]]
// CHECK: shardc.mul
func.func @gathered_again(
    %w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
    %x: tensor<1024xf32> {shardc.role = #shardc.input<"x">})
    -> (tensor<1024xf32>, tensor<8xf32>) {
  %f = shardc.all_gather %w over @mesh["data"] dims = [0] {shardc.cause = "w", shardc.gathered_for = #shardc.part<forward>, shardc.part = #shardc.part<forward>} : (tensor<4xf32>) -> tensor<8xf32>
  %h = shardc.kernel(%x) {shardc.part = #shardc.part<forward>} : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: tensor<1024xf32>):
    %0 = shardc.log %a : tensor<1024xf32>
    shardc.yield %0 : tensor<1024xf32>
  }
  %g = shardc.kernel(%h) {shardc.part = #shardc.part<backward>} : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: tensor<1024xf32>):
    %0 = shardc.exp %a : tensor<1024xf32>
    shardc.yield %0 : tensor<1024xf32>
  }
  %k = shardc.kernel(%g) {shardc.part = #shardc.part<backward>} : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: tensor<1024xf32>):
    %0 = shardc.tanh %a : tensor<1024xf32>
    shardc.yield %0 : tensor<1024xf32>
  }
  %b = shardc.all_gather %w over @mesh["data"] dims = [0] {shardc.cause = "w", shardc.gathered_for = #shardc.part<backward>, shardc.part = #shardc.part<backward>} : (tensor<4xf32>) -> tensor<8xf32>
  %p = shardc.kernel(%f, %b) {shardc.part = #shardc.part<backward>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %c: tensor<8xf32>):
    %0 = shardc.mul %a, %c : tensor<8xf32>
    shardc.yield %0 : tensor<8xf32>
  }
  return %k, %p : tensor<1024xf32>, tensor<8xf32>
}
