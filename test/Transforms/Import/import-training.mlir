// Optimizer, learning rate, schedule and clipping of a model are replaced.
// RUN: shardc-opt %s --shardc-import | FileCheck %s --check-prefix=KEPT
// RUN: shardc-opt %s --shardc-import="learning-rate=0.5" | FileCheck %s --check-prefix=RATE
// RUN: shardc-opt %s --shardc-import="optimizer=adam,b1=0.75" | FileCheck %s --check-prefix=ADAM
// RUN: shardc-opt %s --shardc-import="optimizer=adamw,learning_rate=0.25,weight_decay=0.5" | FileCheck %s --check-prefix=ADAMW
// RUN: shardc-opt %s --shardc-import="optimizer=sgd,learning_rate=0.25 learning-rate=0.5" | FileCheck %s --check-prefix=BOTH
// RUN: shardc-opt %s --shardc-import="schedule=linear_warmup,warmup_steps=10" | FileCheck %s --check-prefix=SCHEDULE
// RUN: shardc-opt %s --shardc-import="clip-norm=2.5" | FileCheck %s --check-prefix=CLIP
// RUN: shardc-opt %s --shardc-import="clip-norm=inf" | FileCheck %s --check-prefix=UNCLIPPED
// RUN: not shardc-opt %s --shardc-import="optimizer=adm" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not shardc-opt %s --shardc-import="schedule=cosine,warmup=1" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not shardc-opt %s --shardc-import="learning-rate=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// KEPT: optimizer = <momentum, learning_rate = 0.1, momentum = 0.5>, clip_norm = 1, schedule = <constant>, microbatches = 2>
// RATE: optimizer = <momentum, learning_rate = 0.5, momentum = 0.5>, clip_norm = 1, schedule = <constant>, microbatches = 2>
// ADAM: optimizer = <adam, b1 = 0.75, learning_rate = 0.1>, clip_norm = 1, schedule = <constant>, microbatches = 2>
// ADAMW: optimizer = <adamw, learning_rate = 0.25, weight_decay = 0.5>, clip_norm = 1, schedule = <constant>, microbatches = 2>
// BOTH: optimizer = <sgd, learning_rate = 0.5>, clip_norm = 1, schedule = <constant>, microbatches = 2>
// SCHEDULE: optimizer = <momentum, learning_rate = 0.1, momentum = 0.5>, clip_norm = 1, schedule = <linear_warmup, warmup_steps = 10>, microbatches = 2>
// CLIP: clip_norm = 2.5, schedule = <constant>, microbatches = 2>
// UNCLIPPED: optimizer = <momentum, learning_rate = 0.1, momentum = 0.5>, schedule = <constant>, microbatches = 2>
// UNKNOWN: error: optimizer: unknown optimizer 'adm'; expected sgd, momentum, adam or adamw
// NUMBER: error: schedule: schedule cosine has no argument 'warmup'
// NEGATIVE: error: learning-rate: expected a number above 0
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <momentum, learning_rate = 0.1, momentum = 0.5>, clip_norm = 1.0, schedule = <constant>, microbatches = 2>} {
  func.func @loss(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
                  %y: tensor<8x2xf32> {shardc.role = #shardc.label<"y">},
                  %w: tensor<4x2xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %z = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %loss = shardc.mse %z, %y : tensor<8x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
