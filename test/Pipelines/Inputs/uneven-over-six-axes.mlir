module @m attributes { shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>> } {
 shardc.mesh @mesh <["a0" = 2, "a1" = 2, "a2" = 3, "a3" = 3, "a4" = 2, "a5" = 2]>
 func.func @loss(%x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"a4", "a3"}, {}]>},
  %y: tensor<8x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"a4", "a5"}, {"a3", "a0", "a1", "a2"}]>},
  %w0: tensor<4x8xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"a5", "a1", "a3"}, {"a2"}]>},
  %b0: tensor<8xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"a3", "a1", "a4", "a5"}]>},
  %w1: tensor<8x8xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"a5"}]>},
  %b1: tensor<8xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>}) -> tensor<f32> {
  %z0 = shardc.linear %x, %w0, %b0 : tensor<8x4xf32>, tensor<4x8xf32>, tensor<8xf32> -> tensor<8x8xf32>
  %c = shardc.sharding_constraint %z0 sharding = <@mesh, [{"a4", "a0"}, {"a5", "a1", "a3"}]> : tensor<8x8xf32>
  %h0 = shardc.relu %c : tensor<8x8xf32>
  %z1 = shardc.linear %h0, %w1, %b1 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<8x8xf32>
  %loss = shardc.mse %z1, %y : tensor<8x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
 } }
