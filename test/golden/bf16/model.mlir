module @golden attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <momentum, learning_rate = 0.0001, momentum = 0.9>>} {
  func.func @loss(
      %x: tensor<32x20xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32xi32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<20x48xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %b0: tensor<48xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>},
      %w1: tensor<48x48xf32> {shardc.role = #shardc.parameter<"w1", he_normal>},
      %b1: tensor<48xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>},
      %w2: tensor<48x10xf32> {shardc.role = #shardc.parameter<"w2", he_normal>},
      %b2: tensor<10xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<32x20xf32>, tensor<20x48xf32>, tensor<48xf32> -> tensor<32x48xf32>
    %h0 = shardc.relu %z0 : tensor<32x48xf32>
    %z1 = shardc.linear %h0, %w1, %b1 : tensor<32x48xf32>, tensor<48x48xf32>, tensor<48xf32> -> tensor<32x48xf32>
    %h1 = shardc.relu %z1 : tensor<32x48xf32>
    %z2 = shardc.linear %h1, %w2, %b2 : tensor<32x48xf32>, tensor<48x10xf32>, tensor<10xf32> -> tensor<32x10xf32>
    %loss = shardc.softmax_cross_entropy %z2, %y : tensor<32x10xf32>, tensor<32xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
