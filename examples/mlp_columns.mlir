// The MLP of the JAX scaling notebooks with every weight split by columns, in JAX
// P(None, 'model'), also the last one, whose single column lies on one of four
// devices.
//   shardc-run examples/mlp_columns.mlir --data=synthetic:quadratic --epochs=5

#rows_data = #shardc.sharding<@mesh, [{"data"}, {}]>
#columns = #shardc.sharding<@mesh, [{}, {"model"}]>

module @mlp attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 2, "model" = 4]>

  func.func @loss(
      %x: tensor<1024x10xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows_data},
      %y: tensor<1024x1xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #rows_data},
      %w0: tensor<10x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #columns},
      %b0: tensor<32xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>},
      %w1: tensor<32x16xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #columns},
      %b1: tensor<16xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>},
      %w2: tensor<16x1xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #columns},
      %b2: tensor<1xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<1024x10xf32>, tensor<10x32xf32>, tensor<32xf32> -> tensor<1024x32xf32>
    %h0 = shardc.relu %z0 : tensor<1024x32xf32>
    %z1 = shardc.linear %h0, %w1, %b1 : tensor<1024x32xf32>, tensor<32x16xf32>, tensor<16xf32> -> tensor<1024x16xf32>
    %h1 = shardc.relu %z1 : tensor<1024x16xf32>
    %z2 = shardc.linear %h1, %w2, %b2 : tensor<1024x16xf32>, tensor<16x1xf32>, tensor<1xf32> -> tensor<1024x1xf32>
    %loss = shardc.mse %z2, %y : tensor<1024x1xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
