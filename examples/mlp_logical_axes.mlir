// Dimensions have names, and rules map the names to mesh axes: the model stays
// the same on any mesh.
//
//   shardc-run examples/mlp_logical_axes.mlir --data=synthetic:quadratic --epochs=5
//   shardc-run examples/mlp_logical_axes.mlir --data=synthetic:quadratic --epochs=5 \
//     --mesh=data=8,model=1 --rules=batch=data,embed=,hidden=

module @mlp attributes {
    shardc.rules = {batch = ["data"], embed = [], hidden = ["model"]},
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>

  func.func @loss(
      %x: tensor<1024x10xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", "embed"]},
      %y: tensor<1024x1xf32> {shardc.role = #shardc.label<"y">, shardc.logical_axes = ["batch", "embed"]},
      %w0: tensor<10x32xf32> {shardc.role = #shardc.parameter<"w0", he_normal>, shardc.logical_axes = ["embed", "hidden"]},
      %b0: tensor<32xf32> {shardc.role = #shardc.parameter<"b0", constant(0.0)>, shardc.logical_axes = ["hidden"]},
      %w1: tensor<32x1xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.logical_axes = ["hidden", "embed"]},
      %b1: tensor<1xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.logical_axes = ["embed"]}) -> tensor<f32> {
    %z0 = shardc.linear %x, %w0, %b0 : tensor<1024x10xf32>, tensor<10x32xf32>, tensor<32xf32> -> tensor<1024x32xf32>
    %h0 = shardc.relu %z0 : tensor<1024x32xf32>
    %c0 = shardc.sharding_constraint %h0 logical_axes = ["batch", "hidden"] : tensor<1024x32xf32>
    %z1 = shardc.linear %c0, %w1, %b1 : tensor<1024x32xf32>, tensor<32x1xf32>, tensor<1xf32> -> tensor<1024x1xf32>
    %loss = shardc.mse %z1, %y : tensor<1024x1xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
