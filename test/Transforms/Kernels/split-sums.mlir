// RUN: shardc-opt %s --shardc-split-sums | FileCheck %s
// RUN: shardc-opt %s --shardc-split-sums --shardc-lower-kernels | FileCheck %s --check-prefix=CODE

shardc.mesh @mesh <["data" = 1]>

// Products of blocks of rows and sums of the rows of blocks, both divided by
// rows; then one kernel of sums with what followed.
// CHECK-LABEL: func @gradients
// CHECK: %[[BLOCKS:.*]] = shardc.kernel(%arg0, %arg1) {{.*}} -> tensor<8x10x32xf32> {
// CHECK: shardc.reshape %{{.*}} : tensor<1024x10xf32> -> tensor<8x128x10xf32>
// CHECK: shardc.reshape %{{.*}} : tensor<1024x32xf32> -> tensor<8x128x32xf32>
// CHECK: shardc.dot_general {{.*}} batching = [0] x [0] contracting = [1] x [1]
// CHECK: %[[ROWS:.*]] = shardc.kernel(%arg1) {{.*}} -> tensor<8x32xf32> {
// CHECK: shardc.reduce sum %{{.*}} dims = [1] : tensor<8x128x32xf32> -> tensor<8x32xf32>
// CHECK: shardc.kernel(%[[BLOCKS]], %arg2, %[[ROWS]], %arg3)
// CHECK: shardc.reduce sum %{{.*}} dims = [0] : tensor<8x10x32xf32> -> tensor<10x32xf32>
// CHECK: shardc.sub
// CHECK: shardc.reduce sum %{{.*}} dims = [0] : tensor<8x32xf32> -> tensor<32xf32>
// CHECK: shardc.sub
// CODE-LABEL: func @gradients
// CODE: shardc.kernel(%arg0, %arg1) {{{.*}}bytes = array<i64: 10240, 32768, 2560>{{.*}}extent = 4
// CODE: shardc.kernel(%arg1) {{{.*}}bytes = array<i64: 32768, 256>{{.*}}extent = 4
func.func @gradients(%x: tensor<1024x10xf32>, %g: tensor<1024x32xf32>, %w: tensor<10x32xf32>, %b: tensor<32xf32>)
    -> (tensor<10x32xf32>, tensor<32xf32>) {
  %0 = shardc.kernel(%x, %g, %w) : (tensor<1024x10xf32>, tensor<1024x32xf32>, tensor<10x32xf32>) -> tensor<10x32xf32> {
  ^bb0(%a: tensor<1024x10xf32>, %c: tensor<1024x32xf32>, %d: tensor<10x32xf32>):
    %2 = shardc.dot_general %a, %c contracting = [0] x [0] : tensor<1024x10xf32>, tensor<1024x32xf32> -> tensor<10x32xf32>
    %3 = shardc.sub %d, %2 : tensor<10x32xf32>
    shardc.yield %3 : tensor<10x32xf32>
  }
  %1 = shardc.kernel(%g, %b) : (tensor<1024x32xf32>, tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%a: tensor<1024x32xf32>, %d: tensor<32xf32>):
    %2 = shardc.reduce sum %a dims = [0] : tensor<1024x32xf32> -> tensor<32xf32>
    %3 = shardc.sub %d, %2 : tensor<32xf32>
    shardc.yield %3 : tensor<32xf32>
  }
  return %0, %1 : tensor<10x32xf32>, tensor<32xf32>
}

// A square: the same factor twice. What waits for a sum is not put off.
// CHECK-LABEL: func @square
// CHECK: shardc.kernel(%arg0) {{.*}} -> tensor<8x10x10xf32> {
// CHECK: ^bb0(%[[X:.*]]: tensor<1000x10xf32>):
// CHECK: shardc.reshape %[[X]] : tensor<1000x10xf32> -> tensor<8x125x10xf32>
// CHECK: shardc.reshape %[[X]]
// CHECK: %[[FIRST:.*]] = shardc.kernel
// CHECK: shardc.all_reduce sum %[[FIRST]]
// CHECK: shardc.kernel(%arg0) {{.*}} -> tensor<8x10x10xf32> {
// CHECK: %[[SECOND:.*]] = shardc.kernel
// CHECK: shardc.neg
// CHECK: return %{{.*}}, %[[SECOND]]
func.func @square(%x: tensor<1000x10xf32>) -> (tensor<10x10xf32>, tensor<10x10xf32>) {
  %0 = shardc.kernel(%x) : (tensor<1000x10xf32>) -> tensor<10x10xf32> {
  ^bb0(%a: tensor<1000x10xf32>):
    %3 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<1000x10xf32>, tensor<1000x10xf32> -> tensor<10x10xf32>
    shardc.yield %3 : tensor<10x10xf32>
  }
  %1 = shardc.all_reduce sum %0 over @mesh["data"] : (tensor<10x10xf32>) -> tensor<10x10xf32>
  %2 = shardc.kernel(%x) : (tensor<1000x10xf32>) -> tensor<10x10xf32> {
  ^bb0(%a: tensor<1000x10xf32>):
    %3 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<1000x10xf32>, tensor<1000x10xf32> -> tensor<10x10xf32>
    %4 = shardc.neg %3 : tensor<10x10xf32>
    shardc.yield %4 : tensor<10x10xf32>
  }
  return %1, %2 : tensor<10x10xf32>, tensor<10x10xf32>
}

// Few rows, a large result, columns of one factor, and no divisor of the rows.
// CHECK-LABEL: func @whole
// CHECK-NOT: shardc.reshape
// CHECK: return
func.func @whole(%few: tensor<240x64xf32>, %wide: tensor<1024x512xf32>, %thin: tensor<32x1024xf32>, %x: tensor<1024x32xf32>, %prime: tensor<1021x32xf32>)
    -> (tensor<64x64xf32>, tensor<512x512xf32>, tensor<32x32xf32>, tensor<32xf32>) {
  %0 = shardc.kernel(%few) : (tensor<240x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<240x64xf32>):
    %4 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<240x64xf32>, tensor<240x64xf32> -> tensor<64x64xf32>
    shardc.yield %4 : tensor<64x64xf32>
  }
  %1 = shardc.kernel(%wide) : (tensor<1024x512xf32>) -> tensor<512x512xf32> {
  ^bb0(%a: tensor<1024x512xf32>):
    %4 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<1024x512xf32>, tensor<1024x512xf32> -> tensor<512x512xf32>
    shardc.yield %4 : tensor<512x512xf32>
  }
  %2 = shardc.kernel(%thin, %x) : (tensor<32x1024xf32>, tensor<1024x32xf32>) -> tensor<32x32xf32> {
  ^bb0(%a: tensor<32x1024xf32>, %c: tensor<1024x32xf32>):
    %4 = shardc.dot_general %a, %c contracting = [1] x [0] : tensor<32x1024xf32>, tensor<1024x32xf32> -> tensor<32x32xf32>
    shardc.yield %4 : tensor<32x32xf32>
  }
  %3 = shardc.kernel(%prime) : (tensor<1021x32xf32>) -> tensor<32xf32> {
  ^bb0(%a: tensor<1021x32xf32>):
    %4 = shardc.reduce sum %a dims = [0] : tensor<1021x32xf32> -> tensor<32xf32>
    shardc.yield %4 : tensor<32xf32>
  }
  return %0, %1, %2, %3 : tensor<64x64xf32>, tensor<512x512xf32>, tensor<32x32xf32>, tensor<32xf32>
}

// Blocks of fewer rows where there would be fewer than four of 128, and of more
// where rows or sums ask for it: 146 divides 1022, and sums of 64 x 128
// elements of 128 rows would be too large. Where there is no such block, sums
// of 256 KiB may be as large as the rows.
// CHECK-LABEL: func @sizes
// CHECK: -> tensor<4x64xf32>
// CHECK: tensor<256x64xf32> -> tensor<4x64x64xf32>
// CHECK: -> tensor<7x64x64xf32>
// CHECK: tensor<1022x64xf32> -> tensor<7x146x64xf32>
// CHECK: -> tensor<4x64x128xf32>
// CHECK: tensor<1024x64xf32> -> tensor<4x256x64xf32>
// CHECK-COUNT-2: tensor<384x64xf32> -> tensor<4x96x64xf32>
// CHECK-NOT: shardc.reshape
func.func @sizes(%few: tensor<256x64xf32>, %odd: tensor<1022x64xf32>, %x: tensor<1024x64xf32>, %g: tensor<1024x128xf32>, %three: tensor<384x64xf32>, %large: tensor<635x128xf32>)
    -> (tensor<64xf32>, tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x64xf32>, tensor<128x128xf32>) {
  %0 = shardc.kernel(%few) : (tensor<256x64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<256x64xf32>):
    %3 = shardc.reduce sum %a dims = [0] : tensor<256x64xf32> -> tensor<64xf32>
    shardc.yield %3 : tensor<64xf32>
  }
  %1 = shardc.kernel(%odd) : (tensor<1022x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<1022x64xf32>):
    %3 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<1022x64xf32>, tensor<1022x64xf32> -> tensor<64x64xf32>
    shardc.yield %3 : tensor<64x64xf32>
  }
  %2 = shardc.kernel(%x, %g) : (tensor<1024x64xf32>, tensor<1024x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%a: tensor<1024x64xf32>, %b: tensor<1024x128xf32>):
    %3 = shardc.dot_general %a, %b contracting = [0] x [0] : tensor<1024x64xf32>, tensor<1024x128xf32> -> tensor<64x128xf32>
    shardc.yield %3 : tensor<64x128xf32>
  }
  %3 = shardc.kernel(%three) : (tensor<384x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<384x64xf32>):
    %5 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<384x64xf32>, tensor<384x64xf32> -> tensor<64x64xf32>
    shardc.yield %5 : tensor<64x64xf32>
  }
  %4 = shardc.kernel(%large) : (tensor<635x128xf32>) -> tensor<128x128xf32> {
  ^bb0(%a: tensor<635x128xf32>):
    %5 = shardc.dot_general %a, %a contracting = [0] x [0] : tensor<635x128xf32>, tensor<635x128xf32> -> tensor<128x128xf32>
    shardc.yield %5 : tensor<128x128xf32>
  }
  return %0, %1, %2, %3, %4 : tensor<64xf32>, tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x64xf32>, tensor<128x128xf32>
}

// Narrow layers with few rows are cut, too, down to 4096 elements, but for sums
// that are added up over devices.
// CHECK-LABEL: func @narrow
// CHECK: shardc.kernel(%arg0) {{.*}} -> tensor<4x16xf32>
// CHECK: shardc.reshape
// CHECK-NOT: shardc.reshape
// CHECK: return
func.func @narrow(%x: tensor<256x16xf32>, %few: tensor<256x15xf32>) -> (tensor<16xf32>, tensor<15xf32>, tensor<16xf32>) {
  %0 = shardc.kernel(%x) : (tensor<256x16xf32>) -> tensor<16xf32> {
  ^bb0(%a: tensor<256x16xf32>):
    %2 = shardc.reduce sum %a dims = [0] : tensor<256x16xf32> -> tensor<16xf32>
    shardc.yield %2 : tensor<16xf32>
  }
  %1 = shardc.kernel(%few) : (tensor<256x15xf32>) -> tensor<15xf32> {
  ^bb0(%a: tensor<256x15xf32>):
    %2 = shardc.reduce sum %a dims = [0] : tensor<256x15xf32> -> tensor<15xf32>
    shardc.yield %2 : tensor<15xf32>
  }
  %2 = shardc.kernel(%x) : (tensor<256x16xf32>) -> tensor<16xf32> {
  ^bb0(%a: tensor<256x16xf32>):
    %4 = shardc.reduce sum %a dims = [0] : tensor<256x16xf32> -> tensor<16xf32>
    shardc.yield %4 : tensor<16xf32>
  }
  %3 = shardc.all_reduce sum %2 over @mesh["data"] : (tensor<16xf32>) -> tensor<16xf32>
  return %0, %1, %3 : tensor<16xf32>, tensor<15xf32>, tensor<16xf32>
}
