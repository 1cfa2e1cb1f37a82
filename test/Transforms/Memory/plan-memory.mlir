// RUN: shardc-opt %s --split-input-file --shardc-plan-memory | FileCheck %s
// RUN: shardc-opt %s --split-input-file --shardc-plan-memory | FileCheck %s --check-prefix=CONTIGUOUS
// RUN: not shardc-opt %s --split-input-file --shardc-plan-memory=memory-limit=64 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not shardc-opt %s --split-input-file --shardc-plan-memory=memory-limit=-4 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// NEGATIVE: error: memory-limit: expected 0 (no limit) or more, found -4{{$}}

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
// update, and the first values share a place with later ones.

// LIMIT: error: a device needs {{[0-9]+}} bytes of memory and has 64
// LIMIT: note: {{.*}}w: 1024 bytes of parameters

// CHECK-LABEL: module @update
// CHECK: func.func @train_step
// CHECK-SAME: shardc.offset = [[W:[0-9]+]]{{.*}}"w"
// CHECK: %[[A:.*]] = shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[G:[0-9]+]]>
// CHECK: shardc.collective_start(%[[A]])
// CHECK: shardc.collective_wait
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
    %h = shardc.collective_start(%0) : tensor<256xf32> {
    ^bb0(%a: tensor<256xf32>):
      %2 = shardc.all_reduce sum %a over @mesh["data"] : (tensor<256xf32>) -> tensor<256xf32>
      shardc.yield %2 : tensor<256xf32>
    }
    %g = shardc.collective_wait %h : tensor<256xf32>
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

// The members of a bucket lie one behind the other, at multiples of 64 bytes,
// in the order of the bucket and not of the ops that compute them. Sums take the
// places of the summands.

// CHECK-LABEL: module @bucket
// CHECK: %[[B:.*]]:2 = shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[OFFSET_C:[0-9]+]], [[OFFSET_A:[0-9]+]]>
// CHECK: %[[C:.*]] = shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: [[OFFSET_B:[0-9]+]]>
// CHECK: shardc.collective_start(%[[B]]#1, %[[C]], %[[B]]#0)
// CHECK: shardc.collective_wait
// CHECK-SAME: shardc.offsets = array<i64: [[OFFSET_A]], [[OFFSET_B]], [[OFFSET_C]]>
// CONTIGUOUS-LABEL: module @bucket
// CONTIGUOUS: collective_wait
// CONTIGUOUS-SAME: shardc.offsets = array<i64: 64, 128, 1152>
module @bucket {
  shardc.mesh @mesh <["data" = 2]>
  func.func @train_step(%x: tensor<8xf32> {shardc.role = #shardc.input<"x">})
      -> (tensor<256xf32> {shardc.result = "loss"}) {
    %0:2 = shardc.kernel(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%a: tensor<8xf32>):
      %2 = shardc.exp %a : tensor<8xf32>
      %3 = shardc.log %a : tensor<8xf32>
      shardc.yield %2, %3 : tensor<8xf32>, tensor<8xf32>
    }
    %1 = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<256xf32> {
    ^bb0(%a: tensor<8xf32>):
      %3 = shardc.broadcast %a dims = [0] : tensor<8xf32> -> tensor<8x32xf32>
      %4 = shardc.reshape %3 : tensor<8x32xf32> -> tensor<256xf32>
      shardc.yield %4 : tensor<256xf32>
    }
    %h = shardc.collective_start(%0#1, %1, %0#0) : tensor<8xf32>, tensor<256xf32>, tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>, %b: tensor<256xf32>, %c: tensor<8xf32>):
      %2:3 = shardc.all_reduce sum %a, %b, %c over @mesh["data"]
          : (tensor<8xf32>, tensor<256xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<256xf32>, tensor<8xf32>)
      shardc.yield %2#0, %2#1, %2#2 : tensor<8xf32>, tensor<256xf32>, tensor<8xf32>
    }
    %r:3 = shardc.collective_wait %h : tensor<8xf32>, tensor<256xf32>, tensor<8xf32>
    return %r#1 : tensor<256xf32>
  }
}

// -----

// The result of a collective is written from its start on: %1 must not lie
// there, although it ends before the wait. The operand is read until the wait.

// CHECK-LABEL: module @under_way
// CHECK: shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: 64>
// CHECK: shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: 128>
// CHECK: shardc.collective_wait
// CHECK-SAME: shardc.offsets = array<i64: 192>
// CHECK: shardc.kernel
// CHECK-SAME: shardc.offsets = array<i64: 192>
module @under_way {
  shardc.mesh @mesh <["data" = 2]>
  func.func @train_step(%x: tensor<8xf32> {shardc.role = #shardc.input<"x">})
      -> (tensor<16xf32> {shardc.result = "loss"}) {
    %0 = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %2 = shardc.exp %a : tensor<8xf32>
      shardc.yield %2 : tensor<8xf32>
    }
    %h = shardc.collective_start(%0) : tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %2 = shardc.all_gather %a over @mesh["data"] dims = [0] : (tensor<8xf32>) -> tensor<16xf32>
      shardc.yield %2 : tensor<16xf32>
    }
    %1 = shardc.kernel(%x) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %2 = shardc.log %a : tensor<8xf32>
      shardc.yield %2 : tensor<8xf32>
    }
    %r = shardc.collective_wait %h : tensor<16xf32>
    %s = shardc.kernel(%r) : (tensor<16xf32>) -> tensor<16xf32> {
    ^bb0(%a: tensor<16xf32>):
      %2 = shardc.add %a, %a : tensor<16xf32>
      shardc.yield %2 : tensor<16xf32>
    }
    return %s : tensor<16xf32>
  }
}

// -----

// The sum has one place from the first run on, also where it cannot be added to in
// place; a value from outside of the loop keeps its place to the end, and nothing
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
