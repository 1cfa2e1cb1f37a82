// The options of pipelines replace attribute, axis and stages, or take them away.
// RUN: shardc-opt %s --shardc-import | FileCheck %s --check-prefix=KEEP
// RUN: shardc-opt %s --shardc-import="stages=0" | FileCheck %s --check-prefix=NONE
// RUN: shardc-opt %s --shardc-import="stages=4" | FileCheck %s --check-prefix=FOUR
// RUN: shardc-opt %s --shardc-import="stages=2 pipeline-schedule=gpipe" | FileCheck %s --check-prefix=GPIPE
// RUN: shardc-opt %s --shardc-import="virtual-stages=2 pipeline-schedule=interleaved" | FileCheck %s --check-prefix=CHUNKS
// RUN: shardc-opt %s --shardc-import="mesh=stage=2,data=3" | FileCheck %s --check-prefix=MESH
// RUN: printf '0F0,0F1,0B0,0B1,0F2,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3' > %t.csv
// RUN: shardc-opt %s --shardc-import="pipeline-schedule=%t.csv" | FileCheck %s --check-prefix=FILE
// RUN: sed 's/shardc.pipeline = [^>]*>,//; s/{shardc.stage[^}]*}//; s/"stage" = 2, //' %s > %t.mlir
// RUN: shardc-opt %t.mlir --shardc-import="stages=2" | FileCheck %s --check-prefix=NEW

// KEEP: shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">
// KEEP: shardc.mesh @mesh <["stage" = 2, "data" = 2]>
// KEEP: shardc.stage = 0 : i64
// KEEP: shardc.stage = 1 : i64

// NONE-NOT: shardc.pipeline
// NONE: shardc.mesh @mesh <["data" = 2]>
// NONE-NOT: shardc.stage

// FOUR: shardc.mesh @mesh <["stage" = 4, "data" = 2]>
// FOUR-NOT: shardc.stage

// GPIPE: schedule = "gpipe"
// GPIPE: shardc.stage = 0 : i64

// CHUNKS: #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 2>
// CHUNKS-NOT: shardc.stage

// MESH: shardc.mesh @mesh <["stage" = 2, "data" = 3]>

// FILE: schedule = "0F0,0F1,0B0,0B1,0F2,0F3,0B2,0B3\0A1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\0A"

// NEW: #shardc.pipeline<axis = "stage", schedule = "1f1b">
// NEW: shardc.mesh @mesh <["stage" = 2, "data" = 2]>
// NEW-NOT: shardc.stage

module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">, shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 4>} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.stage = 0 : i64} : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %1 = shardc.tanh %0 {shardc.stage = 1 : i64} : tensor<8x4xf32>
    %2 = shardc.reduce sum %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %2 : tensor<f32>
  }
}
