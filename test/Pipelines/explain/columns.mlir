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
//      CHECK:Why train_step communicates, on data=2, model=2: 5126 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/columns.mlir:13: all_to_all over "model" in forward, 256 bytes (5%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     w1  f32[32,8]           256 B  [{}, {"model"}] -> [{"model"}, {}]
// CHECK-NEXT:  because   parameter w1 is stored as [{}, {"model"}]
// CHECK-NEXT:              "model": annotated on w1 at columns.mlir:13
// CHECK-NEXT:            linear at columns.mlir:16 reads it as [{"model"}, {}]
// CHECK-NEXT:              "model": annotated on w0 at columns.mlir:12, through linear:14, relu:15
// CHECK-NEXT:  remove by
// CHECK-NEXT:            columns.mlir:13, w1: shardc.sharding = #shardc.sharding<@mesh, [{"model"}, {}]>
// CHECK-NEXT:            then 2564 bytes on the wire (-2562), +0 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us ({{[-+][0-9.]+}}), the same FLOPs
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/columns.mlir:11: reduce_scatter over "model" in forward, 512 bytes (10%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     result of linear at columns.mlir:16  f32[64,8]           512 B
// CHECK-NEXT:              [{"data"}, {}] unreduced={"model"} -> [{"data"}, {"model"}]
// CHECK-NEXT:  because   linear at columns.mlir:16 makes it [{"data"}, {}] unreduced={"model"}
// CHECK-NEXT:              "model": annotated on w0 at columns.mlir:12, through linear:14, relu:15
// CHECK-NEXT:            mse at columns.mlir:17 reads it as [{"data"}, {"model"}]
// CHECK-NEXT:              "model": annotated on w1 at columns.mlir:13, through linear:16
// CHECK-NEXT:  remove by
// CHECK-NEXT:            columns.mlir:11, y: shardc.sharding = #shardc.sharding<@mesh, [{"data", "model"}, {}]>
