// RUN: shardc-opt %s --verify-diagnostics --shardc-split-microbatches

// A step that somebody has written by hand: results by rows have them along the first dimension.

module @transposed attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>, microbatches = 4>} {
  func.func @train_step(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">}) -> tensor<4x8xf32> {
    // expected-error @+1 {{has rows of the batch along dimension 1; results of a program need them along the first}}
    %0 = shardc.transpose %x permutation = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
