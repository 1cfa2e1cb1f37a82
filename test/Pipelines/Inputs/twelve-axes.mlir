#rows = #shardc.sharding<@mesh, [{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11"}, {}]>
#vec = #shardc.sharding<@mesh, [{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11"}]>
module @twelve_axes attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["a0" = 2, "a1" = 2, "a2" = 2, "a3" = 2, "a4" = 2, "a5" = 2, "a6" = 2, "a7" = 2, "a8" = 2, "a9" = 2, "a10" = 2, "a11" = 2]>
  func.func @loss(
      %x: tensor<4096x4096xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows},
      %y: tensor<4096x4096xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #rows},
      %w: tensor<4096x4096xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #rows},
      %b: tensor<4096xf32> {shardc.role = #shardc.parameter<"b", constant(0.0)>, shardc.sharding = #vec}) -> tensor<f32> {
    %z = shardc.linear %x, %w, %b : tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096xf32> -> tensor<4096x4096xf32>
    %l = shardc.mse %z, %y : tensor<4096x4096xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
