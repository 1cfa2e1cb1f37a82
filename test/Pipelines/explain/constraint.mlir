// An activation that is constrained to be whole: the constraint is to blame.

// RUN: shardc-compile %s --explain | FileCheck %s --match-full-lines --strict-whitespace

module @constraint attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4]>
  func.func @loss(
      %x: tensor<64x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<64x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %w1: tensor<32x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    %h0 = shardc.relu %z0 : tensor<64x32xf32>
    %c0 = shardc.sharding_constraint %h0 sharding = <@mesh, [{}, {}]> : tensor<64x32xf32>
    %z1 = shardc.linear %c0, %w1 : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    %loss = shardc.mse %z1, %y : tensor<64x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// The explanation. Line numbers are those above.
//      CHECK:Why train_step communicates, on data=4: 16902 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/constraint.mlir:15: all_gather over "data" in forward, 6144 bytes (36%), {{[0-9.]+}} us
// CHECK-NEXT:  moves     result of relu at constraint.mlir:14  f32[64,32]          6144 B
// CHECK-NEXT:              [{"data"}, {}] -> [{}, {}]
// CHECK-NEXT:  because   relu at constraint.mlir:14 makes it [{"data"}, {}]
// CHECK-NEXT:              "data": annotated on x at constraint.mlir:9, through linear:13
// CHECK-NEXT:            sharding_constraint at constraint.mlir:15 reads it as [{}, {}]
// CHECK-NEXT:  remove by
// CHECK-NEXT:            constraint.mlir:15, constraint: sharding = <@mesh, [{"data"}, {}]>
// CHECK-NEXT:            then 4614 bytes on the wire (-12288), +0 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us ({{[-+][0-9.]+}}), the same FLOPs
