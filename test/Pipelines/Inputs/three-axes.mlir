module @three attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["a" = 2, "b" = 2, "one" = 1, "c" = 2]>

  func.func @loss(
      %x: tensor<8x4x5xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x5x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {"one", "c"}, {}]>}) -> tensor<f32> {
    %z = shardc.dot_general %x, %w contracting = [1, 2] x [0, 1] : tensor<8x4x5xf32>, tensor<4x5x4xf32> -> tensor<8x4xf32>
    %loss = shardc.reduce sum %z dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
