module @golden attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<32x20xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32xi32> {shardc.role = #shardc.label<"y">},
      %w0: tensor<20x48xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %b0: tensor<48xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>},
      %w1: tensor<48x33xf32> {shardc.role = #shardc.parameter<"w1", he_normal>},
      %b1: tensor<33xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>},
      %w2: tensor<33x17xf32> {shardc.role = #shardc.parameter<"w2", he_normal>},
      %b2: tensor<17xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>},
      %w3: tensor<17x10xf32> {shardc.role = #shardc.parameter<"w3", he_normal>},
      %b3: tensor<10xf32> {shardc.role = #shardc.parameter<"b3", constant(0.0)>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<32x20xf32>, tensor<20x48xf32>, tensor<48xf32> -> tensor<32x48xf32>
    %h0 = shardc.relu %z0 : tensor<32x48xf32>
    %d0 = shardc.dropout %h0 rate = 0.3 stream = 0 : tensor<32x48xf32>
    %z1 = shardc.linear %d0, %w1, %b1 : tensor<32x48xf32>, tensor<48x33xf32>, tensor<33xf32> -> tensor<32x33xf32>
    %h1 = shardc.relu %z1 : tensor<32x33xf32>
    %d1 = shardc.dropout %h1 rate = 0.3 stream = 1 : tensor<32x33xf32>
    %z2 = shardc.linear %d1, %w2, %b2 : tensor<32x33xf32>, tensor<33x17xf32>, tensor<17xf32> -> tensor<32x17xf32>
    %h2 = shardc.relu %z2 : tensor<32x17xf32>
    %d2 = shardc.dropout %h2 rate = 0.3 stream = 2 : tensor<32x17xf32>
    %z3 = shardc.linear %d2, %w3, %b3 : tensor<32x17xf32>, tensor<17x10xf32>, tensor<10xf32> -> tensor<32x10xf32>
    %loss = shardc.softmax_cross_entropy %z3, %y : tensor<32x10xf32>, tensor<32xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
