// RUN: shardc-opt %s --split-input-file --shardc-complete-stages | FileCheck %s

// Without a pipeline nothing changes.

// CHECK-LABEL: module @none
// CHECK-NOT: shardc.stage
module @none {
  shardc.mesh @mesh <["data" = 2]>
  func.func @f(%p: tensor<4x4xf32>, %x: tensor<8x8xf32>) -> tensor<8x4xf32> {
    // CHECK: shardc.all_gather %{{.*}} over @mesh["data"] dims = [0] {shardc.cause = "here"} :
    %w = shardc.all_gather %p over @mesh["data"] dims = [0] {shardc.cause = "here"} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %z = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<8x8xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    return %z : tensor<8x4xf32>
  }
}

// -----

// A gather of a weight is where the weight is used; what moves a value of a stage is
// there; behind a transfer it is on the stage that receives; one of a value that all
// ranks have is made on each stage that uses it.

// CHECK-LABEL: module @stages
module @stages attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @f(%p: tensor<4x8xf32>, %x: tensor<8x8xf32>, %y: tensor<4x8xf32>) -> tensor<8x8xf32> {
    // CHECK: %[[W:.*]] = shardc.all_gather %arg0 over @mesh["data"] dims = [0] {shardc.stage = 0 : i64} :
    %w = shardc.all_gather %p over @mesh["data"] dims = [0] : (tensor<4x8xf32>) -> tensor<8x8xf32>
    // CHECK-DAG: %[[Y0:.*]] = shardc.all_gather %arg2 over @mesh["data"] dims = [0] {shardc.stage = 0 : i64} :
    // CHECK-DAG: %[[Y1:.*]] = shardc.all_gather %arg2 over @mesh["data"] dims = [0] {shardc.stage = 1 : i64} :
    %b = shardc.all_gather %y over @mesh["data"] dims = [0] : (tensor<4x8xf32>) -> tensor<8x8xf32>
    // CHECK: shardc.dot_general %arg1, %[[W]]
    %z = shardc.dot_general %x, %w contracting = [1] x [0] {shardc.stage = 0 : i64} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    // CHECK: shardc.all_reduce sum %{{.*}} over @mesh["data"] {shardc.stage = 0 : i64} :
    %r = shardc.all_reduce sum %z over @mesh["data"] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: shardc.add %{{.*}}, %[[Y0]] {shardc.stage = 0 : i64}
    %s = shardc.add %r, %b {shardc.stage = 0 : i64} : tensor<8x8xf32>
    // CHECK: shardc.transfer %{{.*}} from 0 to 1 :
    %t = shardc.transfer %s from 0 to 1 : tensor<8x8xf32>
    // CHECK: shardc.slice %{{.*}} {shardc.stage = 1 : i64}
    %u = shardc.slice %t over @mesh["data"] dim = 0 : tensor<8x8xf32> -> tensor<4x8xf32>
    // CHECK: shardc.all_gather %{{.*}} {shardc.stage = 1 : i64}
    %v = shardc.all_gather %u over @mesh["data"] dims = [0] : (tensor<4x8xf32>) -> tensor<8x8xf32>
    // CHECK: shardc.add %{{.*}}, %[[Y1]] {shardc.stage = 1 : i64}
    %o = shardc.add %v, %b {shardc.stage = 1 : i64} : tensor<8x8xf32>
    return %o : tensor<8x8xf32>
  }
}

// -----

// Stages 0 and 2 are on one rank. The backward pass of stage 2 moves a value that stage 0
// has made: on stage 2, since the backward pass of stage 0 comes later.

// CHECK-LABEL: module @interleaved
module @interleaved attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 2>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @f(%x: tensor<8x8xf32>, %d: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %z = shardc.exp %x {shardc.part = #shardc.part<forward>, shardc.stage = 0 : i64} : tensor<8x8xf32>
    // CHECK: shardc.slice %{{.*}} over @mesh["data"] dim = 0 {shardc.part = #shardc.part<forward>, shardc.stage = 0 : i64}
    %f = shardc.slice %z over @mesh["data"] dim = 0 {shardc.part = #shardc.part<forward>} : tensor<8x8xf32> -> tensor<4x8xf32>
    // CHECK: shardc.slice %{{.*}} over @mesh["data"] dim = 1 {shardc.part = #shardc.part<backward>, shardc.stage = 2 : i64}
    %s = shardc.slice %z over @mesh["data"] dim = 1 {shardc.part = #shardc.part<backward>} : tensor<8x8xf32> -> tensor<8x4xf32>
    // CHECK: shardc.all_gather %{{.*}} {shardc.part = #shardc.part<backward>, shardc.stage = 2 : i64}
    %g = shardc.all_gather %s over @mesh["data"] dims = [1] {shardc.part = #shardc.part<backward>} : (tensor<8x4xf32>) -> tensor<8x8xf32>
    %h = shardc.all_gather %f over @mesh["data"] dims = [0] {shardc.part = #shardc.part<forward>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %m = shardc.mul %g, %d {shardc.part = #shardc.part<backward>, shardc.stage = 2 : i64} : tensor<8x8xf32>
    return %h, %m : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
