// A classifier of handwritten digits, fully sharded over eight devices, with Adam.
//   shardc-run examples/digits_fsdp.mlir --data=digits --epochs=20

#rows_data = #shardc.sharding<@mesh, [{"data"}, {}]>
#split_data = #shardc.sharding<@mesh, [{"data"}]>

module @mlp attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.002>>} {
  shardc.mesh @mesh <["data" = 8]>

  func.func @loss(
      %x: tensor<64x64xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows_data},
      %y: tensor<64xi32> {shardc.role = #shardc.label<"y">, shardc.sharding = #split_data},
      %w0: tensor<64x128xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #rows_data},
      %b0: tensor<128xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>, shardc.sharding = #split_data},
      %w1: tensor<128x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #rows_data},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #split_data},
      %w2: tensor<64x10xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #rows_data},
      %b2: tensor<10xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #split_data}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<64x64xf32>, tensor<64x128xf32>, tensor<128xf32> -> tensor<64x128xf32>
    %h0 = shardc.relu %z0 : tensor<64x128xf32>
    %z1 = shardc.linear %h0, %w1, %b1 : tensor<64x128xf32>, tensor<128x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
    %h1 = shardc.relu %z1 : tensor<64x64xf32>
    %z2 = shardc.linear %h1, %w2, %b2 : tensor<64x64xf32>, tensor<64x10xf32>, tensor<10xf32> -> tensor<64x10xf32>
    %loss = shardc.softmax_cross_entropy %z2, %y : tensor<64x10xf32>, tensor<64xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
