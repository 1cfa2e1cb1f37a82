// Every device gathers the rows of its microbatch, which are its own next ones.
#rows_data = #shardc.sharding<@mesh, [{"data"}, {}]>
#split_data = #shardc.sharding<@mesh, [{"data"}]>

module @mlp attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, microbatches = 2>} {
  shardc.mesh @mesh <["data" = 3]>

  func.func @loss(
      %x: tensor<12x6xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows_data},
      %y: tensor<12xi32> {shardc.role = #shardc.label<"y">, shardc.sharding = #split_data},
      %w0: tensor<6x5xf32> {shardc.role = #shardc.parameter<"w0", he_normal>},
      %b0: tensor<5xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>}) -> tensor<f32> {
    %wx = shardc.sharding_constraint %x sharding = <@mesh, [{}, {}]> : tensor<12x6xf32>
    %wy = shardc.sharding_constraint %y sharding = <@mesh, [{}]> : tensor<12xi32>
    %z0 = shardc.linear %wx, %w0, %b0 : tensor<12x6xf32>, tensor<6x5xf32>, tensor<5xf32> -> tensor<12x5xf32>
    %loss = shardc.softmax_cross_entropy %z0, %wy : tensor<12x5xf32>, tensor<12xi32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
