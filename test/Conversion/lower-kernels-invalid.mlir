// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-lower-kernels
// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-lower-kernels-to-gpu=chip=sm_90

shardc.mesh @mesh <["data" = 1]>
func.func @result(%x: tensor<4x0xf32>) -> tensor<0xf32> {
  // expected-error @below {{has a tensor without elements, 'tensor<4x0xf32>', of which no kernel can be made}}
  %0 = shardc.kernel(%x) : (tensor<4x0xf32>) -> tensor<0xf32> {
  ^bb0(%a: tensor<4x0xf32>):
    %1 = shardc.reduce sum %a dims = [0] : tensor<4x0xf32> -> tensor<0xf32>
    shardc.yield %1 : tensor<0xf32>
  }
  return %0 : tensor<0xf32>
}

// -----

shardc.mesh @mesh <["data" = 1]>
func.func @inside() -> tensor<4xf32> {
  %0 = shardc.kernel() : () -> tensor<4xf32> {
    // expected-error @below {{has a tensor without elements, 'tensor<4x0xf32>', of which no kernel can be made}}
    %1 = shardc.iota dim = 0 : tensor<4x0xf32>
    %2 = shardc.reduce sum %1 dims = [1] : tensor<4x0xf32> -> tensor<4xf32>
    shardc.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
