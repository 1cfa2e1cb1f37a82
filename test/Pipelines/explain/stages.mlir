// Two stages with the boundary at the widest value. One op later an eighth of the
// bytes crosses, and one weight more is on the first stage.

// RUN: shardc-compile %s --explain | FileCheck %s --match-full-lines --strict-whitespace

module @stages attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>,
    shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 1]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w0: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w1: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w2: tensor<8x64xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w3: tensor<64x16xf32> {shardc.role = #shardc.parameter<"w3", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0 : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %h0 = shardc.relu %z0 {shardc.stage = 0 : i64} : tensor<32x64xf32>
    %z1 = shardc.linear %h0, %w1 {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
    %h1 = shardc.relu %z1 : tensor<32x8xf32>
    %z2 = shardc.linear %h1, %w2 : tensor<32x8xf32>, tensor<8x64xf32> -> tensor<32x64xf32>
    %h2 = shardc.relu %z2 : tensor<32x64xf32>
    %z3 = shardc.linear %h2, %w3 : tensor<32x64xf32>, tensor<64x16xf32> -> tensor<32x16xf32>
    %loss = shardc.mse %z3, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// The explanation. Line numbers are those above.
//      CHECK:Why train_step communicates, on stage=2, data=1: 8192 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/stages.mlir:18: send over "stage" in forward, 8192 bytes (100%) in 4 microbatches, {{[0-9.]+}} us
// CHECK-NEXT:  moves     result of relu at stages.mlir:18  f32[8,64]          8192 B  [{}, {}]
// CHECK-NEXT:  because   relu at stages.mlir:18 makes it on stage 0
// CHECK-NEXT:            linear at stages.mlir:19 reads it on stage 1
// CHECK-NEXT:  send less by
// CHECK-NEXT:            stages.mlir:19, linear: shardc.stage = 0
// CHECK-NEXT:            stages.mlir:20, relu: shardc.stage = 1
// CHECK-NEXT:            then 1024 bytes on the wire (-7168), -2048 bytes of state,
// CHECK-NEXT:            {{[0-9.]+}} us (-{{[0-9.]+}}), 0.75 times the FLOPs,
// CHECK-NEXT:            19200 bytes of memory (-6208), 2048 on the wires of all ranks (-14336)
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/stages.mlir:19: send over "stage" in backward, 8192 bytes (100%) in 4 microbatches, {{[0-9.]+}} us
// CHECK-NEXT:  moves     backward of linear at stages.mlir:19  f32[8,64]          8192 B  [{}, {}]
// CHECK-NEXT:  because   backward of linear at stages.mlir:19 makes it on stage 1
// CHECK-NEXT:            backward of relu at stages.mlir:18 reads it on stage 0
// CHECK-NEXT:  send less by  the change above, for the send of result of relu at stages.mlir:18
// CHECK-EMPTY:
// CHECK-NEXT:Why evaluate communicates, on stage=2, data=1: 8192 bytes per device and run, {{[0-9.]+}} us on cpu
// CHECK-EMPTY:
// CHECK-NEXT:{{.*}}/stages.mlir:18: send over "stage", 8192 bytes, as in train_step
