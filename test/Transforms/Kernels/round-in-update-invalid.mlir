// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-round-in-update

func.func @train_step(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>}) -> (tensor<4xf32> {shardc.result = "w"}, tensor<4xbf16>) {
  %0 = shardc.convert %w : tensor<4xf32> -> tensor<4xbf16>
  %1 = shardc.neg %w {shardc.part = #shardc.part<update>} : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xbf16>
}
// expected-error @below {{this is the name of the program that rounds parameters: expected another one}}
func.func @round_parameters(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

// -----

// Without copies the name is free.

func.func @round_parameters(%w: tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0)>}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
