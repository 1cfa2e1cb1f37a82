// RUN: shardc-opt %s --split-input-file --shardc-form-relu-gradients | FileCheck %s

// A GEMM without a relu before it stays.

// CHECK-LABEL: func.func @nothing
// CHECK-NOT: mask
// CHECK: shardc.select
func.func @nothing(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz : tensor<256x384xf32>
}

// -----

// The GEMM with the relu leaves a mask, the other one takes it, and nothing
// is left of the comparison. Other readers of the activation stay.

// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x384xf32>, %[[V:.*]]: tensor<384x512xf32>, %[[G:.*]]: tensor<256x512xf32>, %[[B:.*]]: tensor<384xf32>
// CHECK-NEXT: %[[H:.*]], %[[MASK:.*]] = shardc.gemm %[[X]], %[[W]], %[[B]] relu {shardc.part = #shardc.part<forward>} : {{.*}} -> tensor<256x384xf32> mask tensor<256x12xi32>
// CHECK-NEXT: %[[DZ:.*]] = shardc.gemm %[[G]], %[[V]] where %[[MASK]] transpose_rhs {shardc.part = #shardc.part<backward>} : tensor<256x512xf32>, tensor<384x512xf32> where tensor<256x12xi32> -> tensor<256x384xf32>
// CHECK-NEXT: %[[DW:.*]] = shardc.gemm %[[H]], %[[G]] transpose_lhs
// CHECK-NEXT: return %[[DZ]], %[[DW]]
func.func @gradient(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>, %b: tensor<384xf32>) -> (tensor<256x384xf32>, tensor<384x512xf32>) {
  %h = shardc.gemm %x, %w, %b relu {shardc.part = #shardc.part<forward>} : tensor<256x512xf32>, tensor<512x384xf32>, tensor<384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs {shardc.part = #shardc.part<backward>} : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  %dw = shardc.gemm %h, %g transpose_lhs : tensor<256x384xf32>, tensor<256x512xf32> -> tensor<384x512xf32>
  return %dz, %dw : tensor<256x384xf32>, tensor<384x512xf32>
}

// -----

// Rows of a mask are whole units of 128 bits; elements may be of bf16.

// CHECK-LABEL: func.func @ragged
// CHECK: mask tensor<256x8xi32>
// CHECK-NEXT: shardc.gemm %{{.*}}, %{{.*}} where %{{.*}} : tensor<256x512xbf16>, tensor<512x129xbf16> where tensor<256x8xi32> -> tensor<256x129xbf16>
func.func @ragged(%x: tensor<256x512xbf16>, %w: tensor<512x129xbf16>) -> tensor<256x129xbf16> {
  %h = shardc.gemm %x, %w relu : tensor<256x512xbf16>, tensor<512x129xbf16> -> tensor<256x129xbf16>
  %dh = shardc.gemm %x, %w : tensor<256x512xbf16>, tensor<512x129xbf16> -> tensor<256x129xbf16>
  %0 = shardc.constant dense<0.0> : tensor<256x129xbf16>
  %1 = shardc.compare gt %h, %0 : tensor<256x129xbf16> -> tensor<256x129xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x129xi1>, tensor<256x129xbf16>
  return %dz : tensor<256x129xbf16>
}

// -----

// Sums of the columns come with the GEMM if no other one has them; those of
// another type are left. The comparison stays if it is asked for elsewhere.

// CHECK-LABEL: func.func @column_sums
// CHECK: %[[H:.*]], %[[MASK:.*]] = shardc.gemm %{{.*}} mask tensor<256x12xi32>
// CHECK: %[[POSITIVE:.*]] = shardc.compare gt %[[H]]
// CHECK: %[[DZ:.*]], %[[DB:.*]] = shardc.gemm %{{.*}} where %[[MASK]] transpose_rhs sums_result : {{.*}} -> tensor<256x384xf32>, tensor<384xf32>
// CHECK: return %[[DZ]], %[[DB]], %[[POSITIVE]]
func.func @column_sums(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>, tensor<384xf32>, tensor<256x384xi1>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  %db = shardc.reduce sum %dz dims = [0] : tensor<256x384xf32> -> tensor<384xf32>
  return %dz, %db, %1 : tensor<256x384xf32>, tensor<384xf32>, tensor<256x384xi1>
}

// CHECK-LABEL: func.func @wide_sums
// CHECK: shardc.gemm %{{.*}} where %{{.*}} : {{.*}} -> tensor<256x128xbf16>{{$}}
// CHECK: shardc.reduce sum
func.func @wide_sums(%x: tensor<256x512xbf16>, %w: tensor<512x128xbf16>) -> tensor<128xf32> {
  %h = shardc.gemm %x, %w relu : tensor<256x512xbf16>, tensor<512x128xbf16> -> tensor<256x128xbf16>
  %dh = shardc.gemm %x, %w : tensor<256x512xbf16>, tensor<512x128xbf16> -> tensor<256x128xbf16>
  %0 = shardc.constant dense<0.0> : tensor<256x128xbf16>
  %1 = shardc.compare gt %h, %0 : tensor<256x128xbf16> -> tensor<256x128xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x128xi1>, tensor<256x128xbf16>
  %2 = shardc.convert %dz : tensor<256x128xbf16> -> tensor<256x128xf32>
  %db = shardc.reduce sum %2 dims = [0] : tensor<256x128xf32> -> tensor<128xf32>
  return %db : tensor<128xf32>
}

// -----

// Two layers: the gradient of the first relu takes the result of that of the second.

// CHECK-LABEL: func.func @layers
// CHECK: %[[H1:.*]], %[[MASK1:.*]] = shardc.gemm %{{.*}} relu
// CHECK: %[[H2:.*]], %[[MASK2:.*]] = shardc.gemm %[[H1]], %{{.*}} relu
// CHECK: %[[DZ2:.*]] = shardc.gemm %{{.*}} where %[[MASK2]]
// CHECK: %[[DZ1:.*]] = shardc.gemm %[[DZ2]], %{{.*}} where %[[MASK1]]
// CHECK: return %[[DZ1]]
func.func @layers(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = shardc.constant dense<0.0> : tensor<256x256xf32>
  %h1 = shardc.gemm %x, %w relu : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %h2 = shardc.gemm %h1, %w relu : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %dh2 = shardc.gemm %x, %w transpose_rhs : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %c2 = shardc.compare gt %h2, %0 : tensor<256x256xf32> -> tensor<256x256xi1>
  %dz2 = shardc.select %c2, %dh2, %0 : tensor<256x256xi1>, tensor<256x256xf32>
  %dh1 = shardc.gemm %dz2, %w transpose_rhs : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
  %c1 = shardc.compare gt %h1, %0 : tensor<256x256xf32> -> tensor<256x256xi1>
  %dz1 = shardc.select %c1, %dh1, %0 : tensor<256x256xi1>, tensor<256x256xf32>
  return %dz1 : tensor<256x256xf32>
}

// -----

// Not where partial sums are reduced in between, the gradient has another user,
// the condition or the other value is another one, or the GEMM has an
// epilogue.

// CHECK-LABEL: func.func @reduced
// CHECK-NOT: {{mask|where}}
// CHECK: shardc.select
module {
  shardc.mesh @mesh <["model"=2]>
  func.func @reduced(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>) {
    %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
    %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
    %sum = shardc.all_reduce sum %dh over @mesh["model"] : (tensor<256x384xf32>) -> tensor<256x384xf32>
    %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
    %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
    %dz = shardc.select %1, %sum, %0 : tensor<256x384xi1>, tensor<256x384xf32>
    return %dz : tensor<256x384xf32>
  }
}

// -----

// CHECK-LABEL: func.func @used_twice
// CHECK-NOT: {{mask|where}}
// CHECK: shardc.select
func.func @used_twice(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>, tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz, %dh : tensor<256x384xf32>, tensor<256x384xf32>
}

// -----

// CHECK-LABEL: func.func @other_comparison
// CHECK-NOT: {{mask|where}}
// CHECK: shardc.select
func.func @other_comparison(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare ge %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz : tensor<256x384xf32>
}

// -----

// CHECK-LABEL: func.func @other_bound
// CHECK-NOT: {{mask|where}}
// CHECK: shardc.select
func.func @other_bound(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %c = shardc.constant dense<1.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %c : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz : tensor<256x384xf32>
}

// -----

// CHECK-LABEL: func.func @other_value
// CHECK-NOT: {{mask|where}}
// CHECK: shardc.select
func.func @other_value(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>) -> (tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %h : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz : tensor<256x384xf32>
}

// -----

// CHECK-LABEL: func.func @other_epilogue
// CHECK-NOT: {{mask|where}}
// CHECK: shardc.select
func.func @other_epilogue(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x512xf32>, %g: tensor<256x512xf32>, %b: tensor<384xf32>) -> (tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %g, %v, %b transpose_rhs : tensor<256x512xf32>, tensor<384x512xf32>, tensor<384xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz : tensor<256x384xf32>
}

// -----

// The GEMM may read the very activation.

// CHECK-LABEL: func.func @of_itself
// CHECK-SAME: %[[X:.*]]: tensor<256x512xf32>, %[[W:.*]]: tensor<512x384xf32>, %[[V:.*]]: tensor<384x384xf32>
// CHECK-NEXT: %[[H:.*]], %[[MASK:.*]] = shardc.gemm %[[X]], %[[W]] relu
// CHECK-NEXT: %[[DZ:.*]] = shardc.gemm %[[H]], %[[V]] where %[[MASK]]
// CHECK-NEXT: return %[[DZ]]
func.func @of_itself(%x: tensor<256x512xf32>, %w: tensor<512x384xf32>, %v: tensor<384x384xf32>) -> (tensor<256x384xf32>) {
  %h = shardc.gemm %x, %w relu : tensor<256x512xf32>, tensor<512x384xf32> -> tensor<256x384xf32>
  %dh = shardc.gemm %h, %v : tensor<256x384xf32>, tensor<384x384xf32> -> tensor<256x384xf32>
  %0 = shardc.constant dense<0.0> : tensor<256x384xf32>
  %1 = shardc.compare gt %h, %0 : tensor<256x384xf32> -> tensor<256x384xi1>
  %dz = shardc.select %1, %dh, %0 : tensor<256x384xi1>, tensor<256x384xf32>
  return %dz : tensor<256x384xf32>
}
