module @golden attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adamw, learning_rate = 0.01, b1 = 0.8, b2 = 0.95, weight_decay = 0.1>>} {
  func.func @loss(
      %x: tensor<16x6xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<16x3xf32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<6x8xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %b0: tensor<8xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>},
      %w1: tensor<8x3xf32> {shardc.role = #shardc.parameter<"w1", he_normal>},
      %b1: tensor<3xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<16x6xf32>, tensor<6x8xf32>, tensor<8xf32> -> tensor<16x8xf32>
    %h0 = shardc.relu %z0 : tensor<16x8xf32>
    %z1 = shardc.linear %h0, %w1, %b1 : tensor<16x8xf32>, tensor<8x3xf32>, tensor<3xf32> -> tensor<16x3xf32>
    %loss = shardc.mse %z1, %y : tensor<16x3xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
