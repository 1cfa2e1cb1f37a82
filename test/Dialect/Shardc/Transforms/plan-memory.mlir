// RUN: shardc-opt %s --split-input-file --shardc-plan-memory | FileCheck %s
// RUN: not shardc-opt %s --split-input-file --shardc-plan-memory=memory-limit=64 2>&1 | FileCheck %s --check-prefix=LIMIT

// Nothing inside: only the argument has a place.

// CHECK-LABEL: module @arguments
// CHECK-SAME: shardc.arena_bytes = 128
// CHECK: shardc.offset = 0
// CHECK: shardc.offsets = array<i64: 64>
module @arguments {
  func.func @evaluate(%x: tensor<8xf32> {shardc.role = #shardc.input<"x">})
      -> (tensor<8xf32> {shardc.result = "loss"}) {
    return %x : tensor<8xf32>
  }
}

// -----

// The new parameter takes the place of the old one; the gradient ends with the
// update, and what is computed first shares a place with what comes later.

// LIMIT: error: a device needs {{[0-9]+}} bytes of memory and has 64
// LIMIT: note: {{.*}}w: 1024 bytes of parameters

// CHECK-LABEL: module @update
// CHECK: func.func @train_step
// CHECK-SAME: shardc.offset = [[W:[0-9]+]]{{.*}}"w"
// CHECK: %[[A:.*]] = shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[G:[0-9]+]]>
// CHECK: shardc.all_reduce sum %[[A]]
// CHECK-SAME: shardc.offsets = array<i64: [[G]]>
// CHECK: shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[W]]>
module @update {
  shardc.mesh @mesh <["data" = 2]>
  func.func @train_step(
      %w: tensor<256xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
      %x: tensor<256xf32> {shardc.role = #shardc.input<"x">})
      -> (tensor<256xf32> {shardc.result = "w"}) {
    %0 = shardc.kernel(%w, %x) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
    ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
      %2 = shardc.mul %a, %b : tensor<256xf32>
      shardc.yield %2 : tensor<256xf32>
    }
    %g = shardc.all_reduce sum %0 over @mesh["data"] : (tensor<256xf32>) -> tensor<256xf32>
    %1 = shardc.kernel(%w, %g) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
    ^bb0(%a: tensor<256xf32>, %b: tensor<256xf32>):
      %2 = shardc.sub %a, %b : tensor<256xf32>
      shardc.yield %2 : tensor<256xf32>
    }
    return %1 : tensor<256xf32>
  }
}

// -----

// The parameter is read transposed, so it cannot be overwritten while it is
// read: a copy at the end brings the new value home.

// CHECK-LABEL: module @copied
// CHECK: shardc.kernel
// CHECK: shardc.transpose
// CHECK: shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: 0>
// CHECK-NEXT: ^bb0(%[[V:.*]]: tensor<8x8xf32>):
// CHECK-NEXT: shardc.yield %[[V]]
module @copied {
  func.func @train_step(
      %w: tensor<8x8xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>})
      -> (tensor<8x8xf32> {shardc.result = "w"}) {
    %0 = shardc.kernel(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%a: tensor<8x8xf32>):
      %1 = shardc.transpose %a permutation = [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
      %2 = shardc.add %a, %1 : tensor<8x8xf32>
      shardc.yield %2 : tensor<8x8xf32>
    }
    return %0 : tensor<8x8xf32>
  }
}

// -----

// The sum has one place from the first run on, also where it cannot be added to in
// place; what the loop reads from outside keeps its place to the end, and nothing
// in a run is placed over an operand that the next run reads.

// CHECK-LABEL: module @loop
// CHECK: func.func @train_step
// CHECK: %[[OUTSIDE:.*]] = shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[O:[0-9]+]]>
// CHECK: shardc.accumulate
// CHECK-SAME: shardc.offsets = array<i64: [[S:[0-9]+]], [[T:[0-9]+]]>
// CHECK: shardc.kernel(%[[OUTSIDE]]
// CHECK-NOT: shardc.offsets = array<i64: [[O]]>
// CHECK: shardc.add
// CHECK: shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[S]]>
// CHECK: %[[TURNED:.*]] = shardc.kernel
// CHECK-NOT: shardc.offsets = array<i64: [[T]]>
// CHECK: shardc.transpose
// CHECK: %[[COPY:.*]] = shardc.kernel(%[[TURNED]]) {shardc.offsets = array<i64: [[T]]>
// CHECK: shardc.yield %{{.*}}, %[[COPY]]
module @loop {
  func.func @train_step(
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", constant(0.0)>},
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">})
      -> (tensor<16x16xf32> {shardc.result = "a"}, tensor<16x16xf32> {shardc.result = "b"}) {
    %0 = shardc.kernel(%w) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
    ^bb0(%a: tensor<16x16xf32>):
      %2 = shardc.exp %a : tensor<16x16xf32>
      shardc.yield %2 : tensor<16x16xf32>
    }
    %1:2 = shardc.accumulate 2 of (%x) : (tensor<32x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
    ^bb0(%a: tensor<16x16xf32>, %s: tensor<16x16xf32>, %t: tensor<16x16xf32>):
      %2 = shardc.kernel(%0, %a) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> {
      ^bb0(%b: tensor<16x16xf32>, %c: tensor<16x16xf32>):
        %5 = shardc.add %b, %c : tensor<16x16xf32>
        shardc.yield %5 : tensor<16x16xf32>
      }
      %3 = shardc.kernel(%2, %s) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> {
      ^bb0(%b: tensor<16x16xf32>, %c: tensor<16x16xf32>):
        %5 = shardc.add %b, %c : tensor<16x16xf32>
        shardc.yield %5 : tensor<16x16xf32>
      }
      %4 = shardc.kernel(%2, %t) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> {
      ^bb0(%b: tensor<16x16xf32>, %c: tensor<16x16xf32>):
        %5 = shardc.transpose %c permutation = [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
        %6 = shardc.add %b, %5 : tensor<16x16xf32>
        shardc.yield %6 : tensor<16x16xf32>
      }
      shardc.yield %3, %4 : tensor<16x16xf32>, tensor<16x16xf32>
    }
    return %1#0, %1#1 : tensor<16x16xf32>, tensor<16x16xf32>
  }
}
