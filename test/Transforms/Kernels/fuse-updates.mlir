// RUN: shardc-opt %s --split-input-file --shardc-fuse-kernels=few-launches=true | FileCheck %s --check-prefixes=BOTH,JOIN
// RUN: shardc-opt %s --split-input-file --shardc-fuse-kernels | FileCheck %s --check-prefixes=BOTH,ALONE

// Large updates share a kernel if both gradients come from one collective, and
// kernels are launches.

// BOTH-LABEL: func.func @bucket
// BOTH: %[[BUCKET:.*]]:2 = shardc.all_reduce
// JOIN-NEXT: %[[NEW:.*]]:2 = shardc.kernel(%{{.*}}, %[[BUCKET]]#0, %{{.*}}, %[[BUCKET]]#1)
// JOIN-COUNT-2: shardc.sub
// JOIN: return %[[NEW]]#0, %[[NEW]]#1
// ALONE-NEXT: %[[FIRST:.*]] = shardc.kernel(%{{.*}}, %[[BUCKET]]#0)
// ALONE: %[[SECOND:.*]] = shardc.kernel(%{{.*}}, %[[BUCKET]]#1)
// ALONE: return %[[FIRST]], %[[SECOND]]
module {
  shardc.mesh @mesh <["data" = 2]>
  func.func @bucket(%p: tensor<300x300xf32>, %q: tensor<400x300xf32>, %gp: tensor<300x300xf32>, %gq: tensor<400x300xf32>) -> (tensor<300x300xf32>, tensor<400x300xf32>) {
    %0:2 = shardc.all_reduce sum %gp, %gq over @mesh["data"] {shardc.part = #shardc.part<backward>} : (tensor<300x300xf32>, tensor<400x300xf32>) -> (tensor<300x300xf32>, tensor<400x300xf32>)
    %1 = shardc.sub %p, %0#0 {shardc.part = #shardc.part<update>} : tensor<300x300xf32>
    %2 = shardc.sub %q, %0#1 {shardc.part = #shardc.part<update>} : tensor<400x300xf32>
    return %1, %2 : tensor<300x300xf32>, tensor<400x300xf32>
  }
}

// -----

// One that need not wait for the other's gradient does not, whatever comes last
// in the update: a rate is known all the time.

// BOTH-LABEL: func.func @buckets
// BOTH: %[[ONE:.*]] = shardc.all_reduce
// BOTH: %[[TWO:.*]] = shardc.all_reduce
// BOTH: %[[RATE:.*]] = shardc.kernel(%{{.*}}) {{.*}}-> tensor<f32> {
// BOTH: shardc.kernel(%[[ONE]], %[[RATE]], %{{.*}}) {{.*}}-> tensor<300x300xf32> {
// BOTH: shardc.kernel(%[[TWO]], %[[RATE]], %{{.*}}) {{.*}}-> tensor<400x300xf32> {
module {
  shardc.mesh @mesh <["data" = 2]>
  func.func @buckets(%p: tensor<300x300xf32>, %q: tensor<400x300xf32>, %gp: tensor<300x300xf32>, %gq: tensor<400x300xf32>, %step: tensor<f32>) -> (tensor<300x300xf32>, tensor<400x300xf32>) {
    %0 = shardc.all_reduce sum %gp over @mesh["data"] {shardc.part = #shardc.part<backward>} : (tensor<300x300xf32>) -> tensor<300x300xf32>
    %1 = shardc.all_reduce sum %gq over @mesh["data"] {shardc.part = #shardc.part<backward>} : (tensor<400x300xf32>) -> tensor<400x300xf32>
    %rate = shardc.exp %step {shardc.part = #shardc.part<update>} : tensor<f32>
    %rates = shardc.broadcast %rate dims = [] : tensor<f32> -> tensor<300x300xf32>
    %2 = shardc.mul %0, %rates {shardc.part = #shardc.part<update>} : tensor<300x300xf32>
    %3 = shardc.sub %p, %2 {shardc.part = #shardc.part<update>} : tensor<300x300xf32>
    %more = shardc.broadcast %rate dims = [] : tensor<f32> -> tensor<400x300xf32>
    %4 = shardc.mul %1, %more {shardc.part = #shardc.part<update>} : tensor<400x300xf32>
    %5 = shardc.sub %q, %4 {shardc.part = #shardc.part<update>} : tensor<400x300xf32>
    return %3, %5 : tensor<300x300xf32>, tensor<400x300xf32>
  }
}

// -----

// A norm over both gradients makes both updates wait: one kernel, which clips,
// too. It is not fused with the ops that it depends on.

// BOTH-LABEL: func.func @clipped
// BOTH: %[[ONE:.*]] = shardc.all_reduce
// BOTH: %[[TWO:.*]] = shardc.all_reduce
// BOTH: %[[SUMS:.*]] = shardc.kernel(%[[TWO]]) {{.*}}-> tensor<400xf32> {
// BOTH: %[[NORM:.*]] = shardc.kernel({{.*}}%[[SUMS]]{{.*}}) {{.*}}-> tensor<f32> {
// JOIN: %[[NEW:.*]]:2 = shardc.kernel(%[[ONE]], %[[NORM]], %[[TWO]], %{{.*}}, %{{.*}}) {{.*}}-> (tensor<300x300xf32>, tensor<400x300xf32>) {
// JOIN: return %[[NEW]]#0, %[[NEW]]#1
// ALONE: shardc.kernel(%[[ONE]], %[[NORM]], %{{.*}}) {{.*}}-> tensor<300x300xf32> {
// ALONE: shardc.kernel(%[[TWO]], %[[NORM]], %{{.*}}) {{.*}}-> tensor<400x300xf32> {
module {
  shardc.mesh @mesh <["data" = 2]>
  func.func @clipped(%p: tensor<300x300xf32>, %q: tensor<400x300xf32>, %gp: tensor<300x300xf32>, %gq: tensor<400x300xf32>, %most: tensor<f32>) -> (tensor<300x300xf32>, tensor<400x300xf32>) {
    %0 = shardc.all_reduce sum %gp over @mesh["data"] {shardc.part = #shardc.part<backward>} : (tensor<300x300xf32>) -> tensor<300x300xf32>
    %1 = shardc.all_reduce sum %gq over @mesh["data"] {shardc.part = #shardc.part<backward>} : (tensor<400x300xf32>) -> tensor<400x300xf32>
    %2 = shardc.reduce sum %1 dims = [1] {shardc.part = #shardc.part<update>} : tensor<400x300xf32> -> tensor<400xf32>
    %3 = shardc.reduce sum %2 dims = [0] {shardc.part = #shardc.part<update>} : tensor<400xf32> -> tensor<f32>
    %norm = shardc.div %most, %3 {shardc.part = #shardc.part<update>} : tensor<f32>
    %4 = shardc.broadcast %norm dims = [] : tensor<f32> -> tensor<300x300xf32>
    %5 = shardc.broadcast %norm dims = [] : tensor<f32> -> tensor<400x300xf32>
    %6 = shardc.mul %0, %4 {shardc.part = #shardc.part<update>} : tensor<300x300xf32>
    %7 = shardc.mul %1, %5 {shardc.part = #shardc.part<update>} : tensor<400x300xf32>
    %8 = shardc.sub %p, %6 {shardc.part = #shardc.part<update>} : tensor<300x300xf32>
    %9 = shardc.sub %q, %7 {shardc.part = #shardc.part<update>} : tensor<400x300xf32>
    return %8, %9 : tensor<300x300xf32>, tensor<400x300xf32>
  }
}

// -----

// A collective of the update is waited for too: the parameter that needs none is
// updated meanwhile.

// BOTH-LABEL: func.func @moved
// BOTH: %[[BUCKET:.*]]:3 = shardc.all_reduce
// BOTH: %[[MOVED:.*]] = shardc.all_to_all %[[BUCKET]]#0
// JOIN-DAG: shardc.kernel(%{{.*}}, %[[BUCKET]]#1, %{{.*}}, %[[BUCKET]]#2) {{.*}}-> (tensor<400x300xf32>, tensor<500x300xf32>) {
// JOIN-DAG: shardc.kernel(%{{.*}}, %[[MOVED]]) {{.*}}-> tensor<150x600xf32> {
module {
  shardc.mesh @mesh <["data" = 2]>
  func.func @moved(%p: tensor<150x600xf32>, %q: tensor<400x300xf32>, %r: tensor<500x300xf32>, %gp: tensor<300x300xf32>, %gq: tensor<400x300xf32>, %gr: tensor<500x300xf32>) -> (tensor<150x600xf32>, tensor<400x300xf32>, tensor<500x300xf32>) {
    %0:3 = shardc.all_reduce sum %gp, %gq, %gr over @mesh["data"] {shardc.part = #shardc.part<backward>} : (tensor<300x300xf32>, tensor<400x300xf32>, tensor<500x300xf32>) -> (tensor<300x300xf32>, tensor<400x300xf32>, tensor<500x300xf32>)
    %1 = shardc.all_to_all %0#0 over @mesh["data"] split_dim = 0 concat_dim = 1 {shardc.part = #shardc.part<update>} : tensor<300x300xf32> -> tensor<150x600xf32>
    %2 = shardc.sub %p, %1 {shardc.part = #shardc.part<update>} : tensor<150x600xf32>
    %3 = shardc.sub %q, %0#1 {shardc.part = #shardc.part<update>} : tensor<400x300xf32>
    %4 = shardc.sub %r, %0#2 {shardc.part = #shardc.part<update>} : tensor<500x300xf32>
    return %2, %3, %4 : tensor<150x600xf32>, tensor<400x300xf32>, tensor<500x300xf32>
  }
}

// -----

// Where kernels are launches, small nests of any kind share one if no path
// connects them. A long sum stays alone: its block has more threads.

// BOTH-LABEL: func.func @side_by_side
// JOIN: %[[TWO:.*]]:2 = shardc.kernel({{.*}}) {{.*}}-> (tensor<16x8xf32>, tensor<8xf32>) {
// JOIN: %[[LONG:.*]] = shardc.kernel(%{{.*}}) {{.*}}-> tensor<8xf32> {
// JOIN: return %[[TWO]]#0, %[[TWO]]#1, %[[LONG]]
// ALONE: %[[PRODUCT:.*]] = shardc.kernel({{.*}}) {{.*}}-> tensor<16x8xf32> {
// ALONE: %[[SUM:.*]] = shardc.kernel({{.*}}) {{.*}}-> tensor<8xf32> {
// ALONE: %[[LONG:.*]] = shardc.kernel({{.*}}) {{.*}}-> tensor<8xf32> {
// ALONE: return %[[PRODUCT]], %[[SUM]], %[[LONG]]
module {
  shardc.mesh @mesh <["data" = 2]>
  func.func @side_by_side(%x: tensor<32x16xf32>, %g: tensor<32x8xf32>, %h: tensor<512x8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0 = shardc.dot_general %x, %g contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : tensor<32x16xf32>, tensor<32x8xf32> -> tensor<16x8xf32>
    %1 = shardc.reduce sum %g dims = [0] {shardc.part = #shardc.part<backward>} : tensor<32x8xf32> -> tensor<8xf32>
    %2 = shardc.reduce sum %h dims = [0] {shardc.part = #shardc.part<backward>} : tensor<512x8xf32> -> tensor<8xf32>
    return %0, %1, %2 : tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Workers divide a sum over rows by its columns. Where there are few, rows that
// are stored, too, have a kernel of their own, of which each worker has some; of
// many columns, of few rows and where kernels are launches there is one kernel.

// BOTH-LABEL: func.func @storedRows
// JOIN: shardc.kernel(%{{.*}}) {{.*}}-> (tensor<64x32xf32>, tensor<32xf32>, tensor<64x33xf32>, tensor<33xf32>, tensor<16x32xf32>, tensor<32xf32>)
// ALONE: %[[ROWS:.*]] = shardc.kernel(%{{.*}}) {{.*}}-> tensor<64x32xf32>
// ALONE: shardc.kernel(%[[ROWS]]) {{.*}}-> tensor<32xf32>
// ALONE: shardc.kernel(%{{.*}}) {{.*}}-> (tensor<64x33xf32>, tensor<33xf32>)
// ALONE: shardc.kernel(%{{.*}}) {{.*}}-> (tensor<16x32xf32>, tensor<32xf32>)
module {
  func.func @storedRows(%x: tensor<64x32xf32>, %y: tensor<64x33xf32>, %z: tensor<16x32xf32>)
      -> (tensor<64x32xf32>, tensor<32xf32>, tensor<64x33xf32>, tensor<33xf32>, tensor<16x32xf32>, tensor<32xf32>) {
    %0 = shardc.mul %x, %x {shardc.part = #shardc.part<backward>} : tensor<64x32xf32>
    %1 = shardc.reduce sum %0 dims = [0] {shardc.part = #shardc.part<backward>} : tensor<64x32xf32> -> tensor<32xf32>
    %2 = shardc.mul %y, %y {shardc.part = #shardc.part<backward>} : tensor<64x33xf32>
    %3 = shardc.reduce sum %2 dims = [0] {shardc.part = #shardc.part<backward>} : tensor<64x33xf32> -> tensor<33xf32>
    %4 = shardc.mul %z, %z {shardc.part = #shardc.part<backward>} : tensor<16x32xf32>
    %5 = shardc.reduce sum %4 dims = [0] {shardc.part = #shardc.part<backward>} : tensor<16x32xf32> -> tensor<32xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<64x32xf32>, tensor<32xf32>, tensor<64x33xf32>, tensor<33xf32>, tensor<16x32xf32>, tensor<32xf32>
  }
}
