// An axis that comes behind a gap divides its dimension as the gap does.

// RUN: shardc-opt %s --compile-to=collectives --verify-partition -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: partition verified

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <momentum, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["a" = 4, "b" = 2, "c" = 2]>
  func.func @loss(
      %x0: tensor<7x8xf32> {shardc.role = #shardc.input<"x0">, shardc.sharding = #shardc.sharding<@mesh, [{?}, {"c"}]>},
      %x1: tensor<8xf32> {shardc.role = #shardc.parameter<"x1", constant(0.5)>, shardc.state_sharding = #shardc.sharding<@mesh, [{"a", "b", ?}p0], replicated={"c"}>},
      %x2: tensor<8xf32> {shardc.role = #shardc.parameter<"x2", constant(0.5)>, shardc.sharding = #shardc.sharding<@mesh, [{"b", ?}]>},
      %x3: tensor<8xf32> {shardc.role = #shardc.parameter<"x3", constant(0.5)>, shardc.sharding = #shardc.sharding<@mesh, [{"c"}], replicated={"a", "b"}>},
      %x4: tensor<8xf32> {shardc.role = #shardc.parameter<"x4", constant(0.5)>, shardc.sharding = #shardc.sharding<@mesh, [{"a"}], replicated={"c", "b"}>},
      %x5: tensor<8xf32> {shardc.role = #shardc.parameter<"x5", constant(0.5)>, shardc.sharding = #shardc.sharding<@mesh, [{"c", ?}]>},
      %x6: tensor<2xf32> {shardc.role = #shardc.parameter<"x6", constant(0.5)>}) -> tensor<f32> {
    %v0 = shardc.constant dense<1.0> : tensor<7x8xf32>
    %v1 = shardc.abs %x0 : tensor<7x8xf32>
    %v2 = shardc.add %v1, %v0 : tensor<7x8xf32>
    %v3 = shardc.log %v2 : tensor<7x8xf32>
    %v4 = shardc.sharding_constraint %v3 sharding = <@mesh, [{"b"}, {}], replicated={"c", "a"}> : tensor<7x8xf32>
    %v5 = shardc.reduce sum %v4 dims = [0] : tensor<7x8xf32> -> tensor<8xf32>
    %v6 = shardc.layer_norm %v5, %x1, %x2 epsilon = 1.0e-3 : tensor<8xf32>, tensor<8xf32>
    %v7 = shardc.mul %v6, %x2 : tensor<8xf32>
    %v8 = shardc.layer_norm %v7, %x3, %x4 epsilon = 1.0e-3 : tensor<8xf32>, tensor<8xf32>
    %v9 = shardc.sharding_constraint %v8 sharding = <@mesh, [{"b", ?}]> : tensor<8xf32>
    %v10 = shardc.broadcast %x5 dims = [0] : tensor<8xf32> -> tensor<8xf32>
    %v11 = shardc.sub %v9, %v10 : tensor<8xf32>
    %v12 = shardc.sharding_constraint %v11 sharding = <@mesh, [{"b"}]> : tensor<8xf32>
    %v13 = shardc.reshape %v12 : tensor<8xf32> -> tensor<4x2xf32>
    %v14 = shardc.broadcast %x6 dims = [1] : tensor<2xf32> -> tensor<4x2xf32>
    %v15 = shardc.add %v13, %v14 : tensor<4x2xf32>
    %v16 = shardc.reduce sum %v15 dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
    return %v16 : tensor<f32>
  }
}
