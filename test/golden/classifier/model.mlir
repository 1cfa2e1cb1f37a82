module @golden attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<32x20xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32xi32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<20x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %b0: tensor<32xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>},
      %w1: tensor<32x10xf32> {shardc.role = #shardc.parameter<"w1", he_normal>},
      %b1: tensor<10xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<32x20xf32>, tensor<20x32xf32>, tensor<32xf32> -> tensor<32x32xf32>
    %h0 = shardc.relu %z0 : tensor<32x32xf32>
    %z1 = shardc.linear %h0, %w1, %b1 : tensor<32x32xf32>, tensor<32x10xf32>, tensor<10xf32> -> tensor<32x10xf32>
    %loss = shardc.softmax_cross_entropy %z1, %y : tensor<32x10xf32>, tensor<32xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
