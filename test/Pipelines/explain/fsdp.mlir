// FSDP with one weight that is forgotten: the chain of every collective, the
// line to look at first, and the fix-it that removes it.

// RUN: shardc-compile %s --explain | FileCheck %s --match-full-lines --strict-whitespace

module @fsdp attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4]>
  func.func @loss(
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w1: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %h0 = shardc.relu %z0 : tensor<64x32xf32>
    %z1 = shardc.linear %h0, %w1 : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// The explanation. Line numbers are those above.
//      CHECK:Why train_step communicates, on data=4: 4614 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/fsdp.mlir:12: all_gather over "data" in forward, 1536 bytes (33%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     w0  f32[16,32]          1536 B  [{"data"}, {}] -> [{}, {}]
// CHECK-NEXT:  because   parameter w0 is stored as [{"data"}, {}]
// CHECK-NEXT:              "data": annotated on w0 at fsdp.mlir:12
// CHECK-NEXT:            linear at fsdp.mlir:14 reads it as [{}, {}]
// CHECK-NEXT:              "data": annotated on x at fsdp.mlir:10
// CHECK-NEXT:  remove by  no change that pays; with the fastest of those that remove it
// CHECK-NEXT:            then 4614 bytes on the wire (+0), +1536 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us ({{[-+][0-9.]+}}), the same FLOPs
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/fsdp.mlir:10: all_reduce over "data" in backward, 1542 bytes (33%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     gradient of w1  f32[32,8]          1536 B  [{}, {}] unreduced={"data"} -> [{}, {}]
// CHECK-NEXT:            loss            f32[]                 6 B  [] unreduced={"data"} -> []
// CHECK-NEXT:  because   backward of linear at fsdp.mlir:16 makes it [{}, {}] unreduced={"data"}
// CHECK-NEXT:              "data": annotated on x at fsdp.mlir:10, through linear:14, relu:15
// CHECK-NEXT:            update at fsdp.mlir:13 reads it as [{}, {}]
// CHECK-NEXT:  remove by  no change that pays; with the fastest of those that remove it
// CHECK-NEXT:            then 12288 bytes on the wire (+7674), +0 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us ({{[-+][0-9.]+}}), 2.29 times the FLOPs
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/fsdp.mlir:10: reduce_scatter over "data" in backward, 1536 bytes (33%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     gradient of w0  f32[16,32]          1536 B
// CHECK-NEXT:              [{}, {}] unreduced={"data"} -> [{"data"}, {}]
// CHECK-NEXT:  because   backward of linear at fsdp.mlir:14 makes it [{}, {}] unreduced={"data"}
// CHECK-NEXT:              "data": annotated on x at fsdp.mlir:10
// CHECK-NEXT:            update at fsdp.mlir:12 reads it as [{"data"}, {}]
// CHECK-NEXT:              "data": annotated on w0 at fsdp.mlir:12
// CHECK-NEXT:  remove by  no change that pays; with the fastest of those that remove it
// CHECK-NEXT:            then 13830 bytes on the wire (+9216), +0 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us ({{[-+][0-9.]+}}), the same FLOPs
// CHECK-EMPTY:
// CHECK-NEXT:Why evaluate communicates, on data=4: 1542 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/fsdp.mlir:12: all_gather over "data", 1536 bytes, as in train_step
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/fsdp.mlir:10: all_reduce over "data", 6 bytes, as in train_step
