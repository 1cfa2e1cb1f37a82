// Rows arrive sharded over the axis that the hidden layer is sharded over: each
// microbatch is gathered in the loop, and the random numbers of dropout are of
// rows that a device got from all others.

module @microbatches attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <momentum, learning_rate = 0.05>, microbatches = 4>} {
  shardc.mesh @mesh <["t" = 4]>
  func.func @loss(
      %x: tensor<32x24xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"t"}p1, {}p1]>},
      %y: tensor<32x6xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"t"}p1, {}p1]>},
      %w1: tensor<24x38xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {"t"}]>},
      %b1: tensor<38xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}]>},
      %w2: tensor<38x6xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"t"}, {}]>},
      %b2: tensor<6xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x24xf32>, tensor<24x38xf32>, tensor<38xf32> -> tensor<32x38xf32>
    %a = shardc.relu %h : tensor<32x38xf32>
    %d = shardc.dropout %a rate = 0.25 stream = 0 : tensor<32x38xf32>
    %o = shardc.linear %d, %w2, %b2 : tensor<32x38xf32>, tensor<38x6xf32>, tensor<6xf32> -> tensor<32x6xf32>
    %loss = shardc.mse %o, %y : tensor<32x6xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
