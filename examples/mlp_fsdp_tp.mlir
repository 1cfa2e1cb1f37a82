// The MLP of the JAX scaling notebooks on a 4x2 mesh: rows of the batch over
// "data", parameters over both axes. Try
//   shardc-run examples/mlp_fsdp_tp.mlir --data=synthetic:quadratic --epochs=5

#rows_data = #shardc.sharding<@mesh, [{"data"}, {}]>
#data_by_model = #shardc.sharding<@mesh, [{"data"}, {"model"}]>
#split_model = #shardc.sharding<@mesh, [{"model"}]>
#model_by_data = #shardc.sharding<@mesh, [{"model"}, {"data"}]>
#replicated_1d = #shardc.sharding<@mesh, [{}]>

module @mlp attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>

  func.func @loss(
      %x: tensor<1024x10xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #rows_data},
      %y: tensor<1024x1xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #rows_data},
      %w0: tensor<10x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.sharding = #data_by_model},
      %b0: tensor<32xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>, shardc.sharding = #split_model},
      %w1: tensor<32x16xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #model_by_data},
      %b1: tensor<16xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #replicated_1d},
      %w2: tensor<16x1xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #data_by_model},
      %b2: tensor<1xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #split_model}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<1024x10xf32>, tensor<10x32xf32>, tensor<32xf32> -> tensor<1024x32xf32>
    %h0 = shardc.relu %z0 : tensor<1024x32xf32>
    %z1 = shardc.linear %h0, %w1, %b1 : tensor<1024x32xf32>, tensor<32x16xf32>, tensor<16xf32> -> tensor<1024x16xf32>
    %h1 = shardc.relu %z1 : tensor<1024x16xf32>
    %z2 = shardc.linear %h1, %w2, %b2 : tensor<1024x16xf32>, tensor<16x1xf32>, tensor<1xf32> -> tensor<1024x1xf32>
    %loss = shardc.mse %z2, %y : tensor<1024x1xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
