// Tensor parallelism with a mistake: both weights are cut by column, so the
// activation between them is gathered in every step.

// RUN: shardc-compile %s --explain | FileCheck %s --match-full-lines --strict-whitespace

module @columns attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 2, "model" = 2]>
  func.func @loss(
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>},
      %w1: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"model"}]>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %h0 = shardc.relu %z0 : tensor<64x32xf32>
    %z1 = shardc.linear %h0, %w1 : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// The explanation. Line numbers are those above.
//      CHECK:Why train_step communicates, on data=2, model=2: 5638 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/columns.mlir:13: all_gather over "model" in forward, 2048 bytes (36%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     result of relu at columns.mlir:15  f32[64,32]          2048 B
// CHECK-NEXT:              [{"data"}, {"model"}] -> [{"data"}, {}]
// CHECK-NEXT:  because   relu at columns.mlir:15 makes it [{"data"}, {"model"}]
// CHECK-NEXT:              "model": annotated on w0 at columns.mlir:12, through linear:14
// CHECK-NEXT:            linear at columns.mlir:16 reads it as [{"data"}, {}]
// CHECK-NEXT:              "model": annotated on w1 at columns.mlir:13
// CHECK-NEXT:  remove by
// CHECK-NEXT:            columns.mlir:13, w1: shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>
// CHECK-NEXT:            then 2564 bytes on the wire (-3074), +0 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us ({{[-+][0-9.]+}}), the same FLOPs
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/columns.mlir:10: all_reduce over "data", "model" in forward, 6 bytes (0%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     loss  f32[]             6 B  [] unreduced={"data", "model"} -> []
// CHECK-NEXT:  because   mse at columns.mlir:17 makes it [] unreduced={"data", "model"}
// CHECK-NEXT:              "data": annotated on x at columns.mlir:10, through linear:14, relu:15, linear:16
// CHECK-NEXT:              "model": annotated on w1 at columns.mlir:13, through linear:16
