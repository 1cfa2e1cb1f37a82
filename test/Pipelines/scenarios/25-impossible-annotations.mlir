// Impossible annotations are errors at their place, never ignored.

// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-import \
// RUN:   --shardc-decompose-composites --shardc-differentiate --shardc-propagate

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      // expected-error @+1 {{argument 0: `shardc.sharding` uses axis "d" twice}}
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {"d"}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      // expected-error @+1 {{uses axis "e", but mesh @mesh has axes "d"}}
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"e"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %a = shardc.relu %h : tensor<32x64xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<32x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module @small attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      // expected-error @+1 {{shards dimension 0 of size 6 over 4 devices, which does not divide}}
      %x: tensor<6x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}], uneven=error>},
      %y: tensor<6x8xf32> {shardc.role = #shardc.label<"y">, shardc.sharding = #shardc.sharding<@mesh, [{"d"}, {}]>},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %b2: tensor<8xf32> {shardc.role = #shardc.parameter<"b2", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, [{}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w1, %b1 : tensor<6x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<6x64xf32>
    %a = shardc.relu %h : tensor<6x64xf32>
    %o = shardc.linear %a, %w2, %b2 : tensor<6x64xf32>, tensor<64x8xf32>, tensor<8xf32> -> tensor<6x8xf32>
    %loss = shardc.mse %o, %y : tensor<6x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module @m attributes {
    shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["d" = 4]>
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">},
      %y: tensor<32x16xf32> {shardc.role = #shardc.label<"y">},
      %w: tensor<16x16xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      // expected-error @+1 {{parameter "u" has no gradient}}
      %u: tensor<16x16xf32> {shardc.role = #shardc.parameter<"u", he_normal>, shardc.state_sharding = #shardc.sharding<@mesh, [{"d"}, {}]>})
      -> tensor<f32> {
    %h = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
    %loss = shardc.mse %h, %y : tensor<32x16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
