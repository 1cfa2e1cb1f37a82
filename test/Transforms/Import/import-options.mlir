// Options that make no sense.
// RUN: not shardc-opt %s --shardc-import="mesh=data=0" 2>&1 | FileCheck %s --check-prefix=CASE0
// CASE0: error: mesh 'data=0': axis 'data' needs a size of at least 1, found '0'
// RUN: not shardc-opt %s --shardc-import="rules=batch" 2>&1 | FileCheck %s --check-prefix=CASE1
// CASE1: error: {{.*}}rules 'batch': expected NAME=AXIS
// RUN: not shardc-opt %s --shardc-import="rules=a=x,a=y" 2>&1 | FileCheck %s --check-prefix=CASE2
// CASE2: error: {{.*}}logical axis 'a' has two rules
// RUN: not shardc-opt %s --shardc-import="batch=-1" 2>&1 | FileCheck %s --check-prefix=CASE3
// CASE3: error: {{.*}}batch size must be at least 1 and at most 2147483647, got -1
// RUN: not shardc-opt %s --shardc-import="batch=2147483648" 2>&1 | FileCheck %s --check-prefix=CASE4
// RUN: not shardc-opt %s --shardc-import="batch=9223372036854775807" 2>&1 | FileCheck %s --check-prefix=CASE4
// CASE4: error: {{.*}}batch size must be at least 1 and at most 2147483647, got

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}
