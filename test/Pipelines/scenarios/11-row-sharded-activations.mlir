// Tensor parallel with row-sharded activations: the weights' annotations have
// the higher priority.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// Without priorities the inputs win and the weights are gathered.
// RUN: sed 's/p1//g' %s | shardc-opt --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=INPUTS

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_gather t 4 16777216 12582912 forward {{.*}}: x is stored sharded over "t" and gathered at its use in dot_general at {{.*}}.mlir:{{[0-9]+}}
// CHECK-NEXT: reduce_scatter t 4 16777216 12582912 forward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "t"
// CHECK-NEXT: all_reduce t 4 4100 6150 backward {{.*}}: loss: sum over "t"; gradient of b2: sum over "t"
// CHECK-NEXT: all_gather t 4 16777216 12582912 backward {{.*}}: result of mul at {{.*}}.mlir:{{[0-9]+}} is [{"t"}, {}]; dot_general at {{.*}}.mlir:{{[0-9]+}} needs [{}, {}]
// CHECK-NEXT: wire bytes per device: 37754886
// CHECK-NEXT: matmul FLOPs per device: 42949672960

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 37748736
// CHEAPEST-NEXT: matmul FLOPs per device: 42949672960

// INPUTS-LABEL: @train_step
// INPUTS-NEXT: collective axes group bytes wire bytes part source: cause
// INPUTS-NEXT: all_gather t 4 33570816 25178112 forward
// INPUTS-NEXT: all_reduce t 4 4100 6150 backward
// INPUTS-NEXT: reduce_scatter t 4 33570816 25178112 backward
// INPUTS-NEXT: wire bytes per device: 50362374
// INPUTS-NEXT: matmul FLOPs per device: 42949672960

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["t" = 4]>
  func.func @loss(
      %x: tensor<4096x1024xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"t"}p1, {}p1]>},
      %y: tensor<4096x1024xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"t"}p1, {}p1]>},
      %w1: tensor<1024x4096xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %b1: tensor<4096xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}]>},
      %w2: tensor<4096x1024xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>},
      %b2: tensor<1024xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<4096x1024xf32>, tensor<1024x4096xf32>, tensor<4096xf32> -> tensor<4096x4096xf32>
    %a = shardc.relu %h : tensor<4096x4096xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<4096x4096xf32>, tensor<4096x1024xf32>, tensor<1024xf32> -> tensor<4096x1024xf32>
    %loss = shardc.mse %o, %y : tensor<4096x1024xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
