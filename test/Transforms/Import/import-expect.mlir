// Contracts on an axis that --mesh leaves out hold: the axis has size 1 then.

// RUN: shardc-opt %s --shardc-import=mesh=data=4 | FileCheck %s
// RUN: shardc-opt %s --shardc-import=mesh=data=4 --shardc-differentiate | FileCheck %s --check-prefix=PROGRAMS

// CHECK: module attributes {shardc.expect = [#shardc.max_collectives<0 over "model">]
// CHECK: shardc.mesh @mesh <["data" = 4, "model" = 1]>

// Programs inherit the contracts of the loss function; those of values are in
// their locations, where they cannot change the compilation.
// PROGRAMS: func @train_step({{.*}}) {{.*}}shardc.expect = [#shardc.max_bytes<64>]
// PROGRAMS-NOT: shardc.region
// PROGRAMS-NOT: max_collectives<1
// PROGRAMS: func @evaluate({{.*}}) {{.*}}shardc.expect = [#shardc.max_bytes<64>]
// PROGRAMS-NOT: shardc.region
module attributes {
    shardc.expect = [#shardc.max_collectives<0 over "model">],
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 2, "model" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>,
          shardc.expect = [#shardc.max_collectives<1>]}) -> tensor<f32>
      attributes {shardc.expect = [#shardc.max_bytes<64>]} {
    %0 = shardc.linear %x, %w {shardc.region = "tower", shardc.expect = [#shardc.max_collectives<1>]} : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}
