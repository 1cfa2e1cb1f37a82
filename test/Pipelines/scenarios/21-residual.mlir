// Three residual blocks: exactly five all_reduces.

// RUN: shardc-opt %s --compile-to=collectives \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --compile-to=collectives --partition=cheapest --objective=bytes \
// RUN:   | shardc-opt --shardc-report-communication -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=CHEAPEST

// CHECK-LABEL: @train_step
// CHECK-NEXT: collective axes group bytes wire bytes part source: cause
// CHECK-NEXT: all_reduce t 4 16777216 25165824 forward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "t"
// CHECK-NEXT: all_reduce t 4 16777216 25165824 forward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "t"
// CHECK-NEXT: all_reduce t 4 16777216 25165824 forward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "t"
// CHECK-NEXT: all_reduce t 4 16777216 25165824 backward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "t"
// CHECK-NEXT: all_reduce t 4 16777216 25165824 backward {{.*}}: result of dot_general at {{.*}}.mlir:{{[0-9]+}}: contraction over "t"
// CHECK-NEXT: wire bytes per device: 125829120
// CHECK-NEXT: matmul FLOPs per device: 146028888064

// CHEAPEST-LABEL: @train_step
// CHEAPEST: wire bytes per device: 125829120
// CHEAPEST-NEXT: matmul FLOPs per device: 146028888064

module @residual attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["t" = 4]>
  func.func @loss(
      %x0: tensor<4096x1024xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<4096x1024xf32> {shardc.role = #shardc.label<"y">},
      %u0: tensor<1024x4096xf32> {shardc.role = #shardc.parameter<"u0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %d0: tensor<4096x1024xf32> {shardc.role = #shardc.parameter<"d0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>},
      %u1: tensor<1024x4096xf32> {shardc.role = #shardc.parameter<"u1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %d1: tensor<4096x1024xf32> {shardc.role = #shardc.parameter<"d1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>},
      %u2: tensor<1024x4096xf32> {shardc.role = #shardc.parameter<"u2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %d2: tensor<4096x1024xf32> {shardc.role = #shardc.parameter<"d2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>})
      -> tensor<f32> {
    %h0 = shardc.linear %x0, %u0 : tensor<4096x1024xf32>, tensor<1024x4096xf32> -> tensor<4096x4096xf32>
    %g0 = shardc.gelu %h0 : tensor<4096x4096xf32>
    %v0 = shardc.linear %g0, %d0 : tensor<4096x4096xf32>, tensor<4096x1024xf32> -> tensor<4096x1024xf32>
    %x1 = shardc.add %x0, %v0 : tensor<4096x1024xf32>
    %h1 = shardc.linear %x1, %u1 : tensor<4096x1024xf32>, tensor<1024x4096xf32> -> tensor<4096x4096xf32>
    %g1 = shardc.gelu %h1 : tensor<4096x4096xf32>
    %v1 = shardc.linear %g1, %d1 : tensor<4096x4096xf32>, tensor<4096x1024xf32> -> tensor<4096x1024xf32>
    %x2 = shardc.add %x1, %v1 : tensor<4096x1024xf32>
    %h2 = shardc.linear %x2, %u2 : tensor<4096x1024xf32>, tensor<1024x4096xf32> -> tensor<4096x4096xf32>
    %g2 = shardc.gelu %h2 : tensor<4096x4096xf32>
    %v2 = shardc.linear %g2, %d2 : tensor<4096x4096xf32>, tensor<4096x1024xf32> -> tensor<4096x1024xf32>
    %x3 = shardc.add %x2, %v2 : tensor<4096x1024xf32>
    %loss = shardc.mse %x3, %y : tensor<4096x1024xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
