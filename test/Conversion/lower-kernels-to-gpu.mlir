// RUN: shardc-opt %s --shardc-lower-kernels-to-gpu=chip=sm_90 --split-input-file | FileCheck %s

// Elementwise by linear places: four elements per thread, then the
// rest, one each. Kernels that are equal share one function.

// CHECK-LABEL: func.func @elementwise
// CHECK: shardc.kernel
// CHECK-SAME: shardc.extent = 2
// CHECK-SAME: shardc.symbol = "[[ADD:shardc_map_[0-9]+]]"
// CHECK-SAME: shardc.threads = 256
// CHECK: shardc.kernel
// CHECK-SAME: shardc.symbol = "[[ADD]]"
// CHECK: gpu.module @kernels attributes {shardc.chip = "sm_90"}
// CHECK: gpu.func @[[ADD]](%[[IN:.*]]: !llvm.ptr<1>, %[[OUT:.*]]: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[THREAD:.*]] = gpu.thread_id
// CHECK: %[[BLOCK:.*]] = gpu.block_id
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: arith.addf %{{.*}} : vector<4xf32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: gpu.return
// CHECK-NOT: gpu.func
shardc.mesh @mesh <["data" = 1]>
func.func @elementwise(%x: tensor<5x401xf32>) -> tensor<5x401xf32> {
  %0 = shardc.kernel(%x) : (tensor<5x401xf32>) -> tensor<5x401xf32> {
  ^bb0(%a: tensor<5x401xf32>):
    %3 = shardc.add %a, %a : tensor<5x401xf32>
    shardc.yield %3 : tensor<5x401xf32>
  }
  %1 = shardc.kernel(%0) : (tensor<5x401xf32>) -> tensor<5x401xf32> {
  ^bb0(%a: tensor<5x401xf32>):
    %3 = shardc.add %a, %a : tensor<5x401xf32>
    shardc.yield %3 : tensor<5x401xf32>
  }
  return %1 : tensor<5x401xf32>
}

// -----

// More vectors than threads: a loop in steps of the whole grid.

// CHECK-LABEL: func.func @large
// CHECK: shardc.extent = 1024
// CHECK: gpu.func
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[UNITS:.*]] step %[[STEP:.*]] {
shardc.mesh @mesh <["data" = 1]>
func.func @large(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = shardc.kernel(%x) : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  ^bb0(%a: tensor<4096x4096xf32>):
    %3 = shardc.tanh %a : tensor<4096x4096xf32>
    shardc.yield %3 : tensor<4096x4096xf32>
  }
  return %0 : tensor<4096x4096xf32>
}

// -----

// A broadcast row and a transposed matrix: rows start at multiples of a vector,
// so that the bias and the results move as vectors; the transposed elements are
// gathered.

// CHECK-LABEL: func.func @places
// CHECK: gpu.func
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
shardc.mesh @mesh <["data" = 1]>
func.func @places(%x: tensor<12x6xf32>, %y: tensor<12xf32>) -> tensor<6x12xf32> {
  %0 = shardc.kernel(%x, %y) : (tensor<12x6xf32>, tensor<12xf32>) -> tensor<6x12xf32> {
  ^bb0(%a: tensor<12x6xf32>, %b: tensor<12xf32>):
    %1 = shardc.transpose %a permutation = [1, 0] : tensor<12x6xf32> -> tensor<6x12xf32>
    %2 = shardc.broadcast %b dims = [1] : tensor<12xf32> -> tensor<6x12xf32>
    %3 = shardc.add %1, %2 : tensor<6x12xf32>
    shardc.yield %3 : tensor<6x12xf32>
  }
  return %0 : tensor<6x12xf32>
}

// -----

// Short rows: 16 threads each, which exchange their partial sums. All threads take
// part in the exchange, with a row or without one.

// CHECK-LABEL: func.func @short_rows
// CHECK: shardc.extent = 2
// CHECK: gpu.func
// CHECK: arith.minsi
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: gpu.barrier
// CHECK: scf.if
// CHECK: llvm.store
shardc.mesh @mesh <["data" = 1]>
func.func @short_rows(%x: tensor<20x10xf32>) -> tensor<20xf32> {
  %0 = shardc.kernel(%x) : (tensor<20x10xf32>) -> tensor<20xf32> {
  ^bb0(%a: tensor<20x10xf32>):
    %1 = shardc.reduce sum %a dims = [1] : tensor<20x10xf32> -> tensor<20xf32>
    shardc.yield %1 : tensor<20xf32>
  }
  return %0 : tensor<20xf32>
}

// -----

// Long rows: a block each; warps exchange, then meet in shared memory.

// CHECK-LABEL: func.func @long_rows
// CHECK: shardc.extent = 64
// CHECK: llvm.mlir.global internal @[[SHARED:.*]]() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x i8>
// CHECK: gpu.func
// CHECK: llvm.mlir.addressof @[[SHARED]] : !llvm.ptr<3>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: gpu.barrier
// CHECK-COUNT-3: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
shardc.mesh @mesh <["data" = 1]>
func.func @long_rows(%x: tensor<64x4096xf32>) -> tensor<64xf32> {
  %0 = shardc.kernel(%x) : (tensor<64x4096xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64x4096xf32>):
    %1 = shardc.reduce sum %a dims = [1] : tensor<64x4096xf32> -> tensor<64xf32>
    shardc.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

// Threads keep the values of a pass over a row for the next one: each element is
// read once and has one exponential. The last of three vectors of a thread may lie
// beyond the row; its sum then stays as it was.

// CHECK-LABEL: func.func @kept_rows
// CHECK: shardc.threads = 256
// CHECK: gpu.func
// CHECK-NOT: scf.for
// CHECK: %[[IN_ROW:.*]] = arith.cmpi slt
// CHECK: arith.minsi
// CHECK-COUNT-3: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: arith.select %[[IN_ROW]], %{{.*}} : vector<4xf32>
// CHECK: gpu.shuffle
// CHECK-COUNT-3: arith.bitcast %{{.*}} : vector<4xi32> to vector<4xf32>
// CHECK: arith.select %[[IN_ROW]], %{{.*}} : vector<4xf32>
// CHECK: gpu.shuffle
// CHECK-NOT: llvm.load %{{.*}} : !llvm.ptr<1>
// CHECK-NOT: arith.bitcast
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
// CHECK: scf.if %[[IN_ROW]]
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
shardc.mesh @mesh <["data" = 1]>
func.func @kept_rows(%x: tensor<8x300xf32>) -> tensor<8x300xf32> {
  %0 = shardc.kernel(%x) : (tensor<8x300xf32>) -> tensor<8x300xf32> {
  ^bb0(%a: tensor<8x300xf32>):
    %2 = shardc.reduce max %a dims = [1] : tensor<8x300xf32> -> tensor<8xf32>
    %3 = shardc.broadcast %2 dims = [0] : tensor<8xf32> -> tensor<8x300xf32>
    %4 = shardc.sub %a, %3 : tensor<8x300xf32>
    %5 = shardc.exp %4 : tensor<8x300xf32>
    %6 = shardc.reduce sum %5 dims = [1] : tensor<8x300xf32> -> tensor<8xf32>
    %7 = shardc.broadcast %6 dims = [0] : tensor<8xf32> -> tensor<8x300xf32>
    %8 = shardc.div %5, %7 : tensor<8x300xf32>
    shardc.yield %8 : tensor<8x300xf32>
  }
  return %0 : tensor<8x300xf32>
}

// -----

// A longer row is read in each of its three passes.

// CHECK-LABEL: func.func @read_rows
// CHECK: shardc.threads = 1024
// CHECK: gpu.func
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
shardc.mesh @mesh <["data" = 1]>
func.func @read_rows(%x: tensor<8x40000xf32>) -> tensor<8x40000xf32> {
  %0 = shardc.kernel(%x) : (tensor<8x40000xf32>) -> tensor<8x40000xf32> {
  ^bb0(%a: tensor<8x40000xf32>):
    %2 = shardc.reduce max %a dims = [1] : tensor<8x40000xf32> -> tensor<8xf32>
    %3 = shardc.broadcast %2 dims = [0] : tensor<8xf32> -> tensor<8x40000xf32>
    %4 = shardc.sub %a, %3 : tensor<8x40000xf32>
    %5 = shardc.exp %4 : tensor<8x40000xf32>
    %6 = shardc.reduce sum %5 dims = [1] : tensor<8x40000xf32> -> tensor<8xf32>
    %7 = shardc.broadcast %6 dims = [0] : tensor<8xf32> -> tensor<8x40000xf32>
    %8 = shardc.div %5, %7 : tensor<8x40000xf32>
    shardc.yield %8 : tensor<8x40000xf32>
  }
  return %0 : tensor<8x40000xf32>
}

// -----

// Columns: eight threads side by side have 32 of them; 32 take turns with the
// rows and meet in shared memory: eight sums at a time, then the rest. Of 100
// rows each has three or four: the last turn is for some.

// CHECK-LABEL: func.func @columns
// CHECK: shardc.extent = 3
// CHECK: llvm.mlir.global internal @{{.*}}() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>
// CHECK: gpu.func
// CHECK-NOT: scf.for
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: arith.select %{{.*}} : vector<4xf32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
shardc.mesh @mesh <["data" = 1]>
func.func @columns(%x: tensor<100x72xf32>) -> tensor<72xf32> {
  %0 = shardc.kernel(%x) : (tensor<100x72xf32>) -> tensor<72xf32> {
  ^bb0(%a: tensor<100x72xf32>):
    %1 = shardc.reduce sum %a dims = [0] : tensor<100x72xf32> -> tensor<72xf32>
    shardc.yield %1 : tensor<72xf32>
  }
  return %0 : tensor<72xf32>
}

// -----

// Few columns, many rows: 16 threads side by side, so that 64 of a block of 1024
// have a column each. Four rows are in flight. Eight threads of each column first
// combine eight sums each.

// CHECK-LABEL: func.func @few_columns
// CHECK: shardc.extent = 1
// CHECK-SAME: shardc.threads = 1024
// CHECK: gpu.func
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END:.*]] step %[[STEP:.*]] iter_args
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK: scf.yield
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: gpu.barrier
shardc.mesh @mesh <["data" = 1]>
func.func @few_columns(%x: tensor<4096x10xf32>) -> tensor<10xf32> {
  %0 = shardc.kernel(%x) : (tensor<4096x10xf32>) -> tensor<10xf32> {
  ^bb0(%a: tensor<4096x10xf32>):
    %1 = shardc.reduce sum %a dims = [0] : tensor<4096x10xf32> -> tensor<10xf32>
    shardc.yield %1 : tensor<10xf32>
  }
  return %0 : tensor<10xf32>
}

// -----

// A small GEMM: four slices of the contraction, in which a thread has a row and
// four columns. Their sums meet in shared memory; an element is stored with its
// epilogue. Several nests have blocks of their own.

// CHECK-LABEL: func.func @gemm
// CHECK: shardc.extent = 2
// CHECK: llvm.mlir.global internal @{{.*}}() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>
// CHECK: gpu.func
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK-NOT: scf.for
// CHECK-COUNT-5: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-16: math.fma %{{.*}} : f32
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-COUNT-3: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.barrier
// CHECK: arith.cmpi ult
// CHECK: scf.if
shardc.mesh @mesh <["data" = 1]>
func.func @gemm(%x: tensor<8x16xf32>, %y: tensor<16x4xf32>, %z: tensor<7xf32>) -> (tensor<8x4xf32>, tensor<7xf32>) {
  %0:2 = shardc.kernel(%x, %y, %z) : (tensor<8x16xf32>, tensor<16x4xf32>, tensor<7xf32>) -> (tensor<8x4xf32>, tensor<7xf32>) {
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<7xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [0] : tensor<8x16xf32>, tensor<16x4xf32> -> tensor<8x4xf32>
    %2 = shardc.tanh %1 : tensor<8x4xf32>
    %3 = shardc.neg %c : tensor<7xf32>
    shardc.yield %2, %3 : tensor<8x4xf32>, tensor<7xf32>
  }
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<7xf32>
}

// -----

// Both factors are read as vectors along the contraction where its terms lie
// side by side, and all loads come before the products.

// CHECK-LABEL: func.func @transposed_right
// CHECK: shardc.extent = 96
// CHECK: gpu.func
// CHECK-NOT: scf.for
// CHECK-COUNT-6: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-32: math.fma %{{.*}} : f32
// CHECK-NOT: llvm.load %{{.*}} : !llvm.ptr<1>
// CHECK: gpu.barrier
shardc.mesh @mesh <["data" = 1]>
func.func @transposed_right(%x: tensor<96x64xf32>, %y: tensor<128x64xf32>) -> tensor<96x128xf32> {
  %0 = shardc.kernel(%x, %y) : (tensor<96x64xf32>, tensor<128x64xf32>) -> tensor<96x128xf32> {
  ^bb0(%a: tensor<96x64xf32>, %b: tensor<128x64xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [1] : tensor<96x64xf32>, tensor<128x64xf32> -> tensor<96x128xf32>
    shardc.yield %1 : tensor<96x128xf32>
  }
  return %0 : tensor<96x128xf32>
}

// -----

// A longer contraction: a loop over two vectors of terms at a time; what does not
// fill a turn is for some slices, and two terms do not fill a vector.

// CHECK-LABEL: func.func @transposed_left
// CHECK: shardc.extent = 128
// CHECK: gpu.func
// CHECK: scf.for
// CHECK-COUNT-16: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-128: math.fma %{{.*}} : f32
// CHECK: scf.yield
// CHECK-COUNT-64: math.fma %{{.*}} : f32
// CHECK-COUNT-16: math.fma %{{.*}} : f32
// CHECK: gpu.barrier
shardc.mesh @mesh <["data" = 1]>
func.func @transposed_left(%x: tensor<142x256xf32>, %y: tensor<142x256xf32>) -> tensor<256x256xf32> {
  %0 = shardc.kernel(%x, %y) : (tensor<142x256xf32>, tensor<142x256xf32>) -> tensor<256x256xf32> {
  ^bb0(%a: tensor<142x256xf32>, %b: tensor<142x256xf32>):
    %1 = shardc.dot_general %a, %b contracting = [0] x [0] : tensor<142x256xf32>, tensor<142x256xf32> -> tensor<256x256xf32>
    shardc.yield %1 : tensor<256x256xf32>
  }
  return %0 : tensor<256x256xf32>
}

// -----

// The rows of a microbatch start where those of the one before end, here at
// multiples of 8 bytes; the same kernel on a whole buffer is another function.

// CHECK-LABEL: func.func @microbatches
// CHECK: shardc.symbol = "shardc_map_0"
// CHECK: shardc.symbol = "shardc_map_1"
// CHECK: gpu.func @shardc_map_0
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: gpu.func @shardc_map_1
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
shardc.mesh @mesh <["data" = 1]>
func.func @microbatches(%x: tensor<12x6xf32>, %y: tensor<3x6xf32>) -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %0 = shardc.accumulate 4 of (%x) : (tensor<12x6xf32>) -> tensor<3x6xf32> {
  ^bb0(%slice: tensor<3x6xf32>, %sum: tensor<3x6xf32>):
    %1 = shardc.kernel(%slice) : (tensor<3x6xf32>) -> tensor<3x6xf32> {
    ^bb0(%a: tensor<3x6xf32>):
      %2 = shardc.neg %a : tensor<3x6xf32>
      shardc.yield %2 : tensor<3x6xf32>
    }
    shardc.yield %1 : tensor<3x6xf32>
  }
  %3 = shardc.kernel(%y) : (tensor<3x6xf32>) -> tensor<3x6xf32> {
  ^bb0(%a: tensor<3x6xf32>):
    %2 = shardc.neg %a : tensor<3x6xf32>
    shardc.yield %2 : tensor<3x6xf32>
  }
  return %0, %3 : tensor<3x6xf32>, tensor<3x6xf32>
}
