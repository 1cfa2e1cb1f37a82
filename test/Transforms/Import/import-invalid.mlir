// Errors are at the op or argument that they are about.
// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-import

// no training description
// expected-error @+1 {{needs `shardc.training`}}
module {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// no loss function
// expected-error @+1 {{names loss function @other, but the module has none of that name}}
module attributes {shardc.training = #shardc.training<loss = @other, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// more than one function
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
  // expected-error @+1 {{holds a mesh and the loss function alone, got another func.func}}
  func.func private @helper()
}

// -----
// not a scalar
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  // expected-error @+1 {{must return one scalar such as tensor<f32>, got ('tensor<8x1xf32>')}}
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<8x1xf32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    return %0 : tensor<8x1xf32>
  }
}

// -----
// an op of a partitioned program
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    // expected-error @+1 {{'shardc.all_reduce' op does not belong in a loss function}}
    %r = shardc.all_reduce sum %0 over @mesh["data"] : (tensor<8x1xf32>) -> tensor<8x1xf32>
    %1 = shardc.reduce sum %r dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// no role
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      // expected-error @+1 {{argument 0 needs `shardc.role`}}
      %x: tensor<8x4xf32>,
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// a state in source
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      // expected-error @+1 {{argument 2 needs `shardc.role`: #shardc.parameter, #shardc.input or #shardc.label, got #shardc.state}}
      %s: tensor<4xf32> {shardc.role = #shardc.state<"s", constant(0)>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// duplicate names
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      // expected-note @+1 {{by argument 0}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{argument 1: the name "x" is taken}}
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"x", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// the name of a state
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      // expected-note @+1 {{by argument 0}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"w.m">},
      // expected-error @+1 {{argument 1: the name "w.m" is taken}}
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// reserved name
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{argument 1 has name "step"; expected one that is not empty, "loss" or "step"}}
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"step", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// integer parameter
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      // expected-error @+1 {{argument 2 is a parameter and must have floating-point elements, got 'tensor<4xi32>'}}
      %i: tensor<4xi32> {shardc.role = #shardc.parameter<"i", constant(0)>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// nothing to train
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  // expected-error @+1 {{there is nothing to train}}
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<8x1xf32> {shardc.role = #shardc.input<"w">}) -> tensor<f32> {
    %1 = shardc.reduce sum %w dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// different batches
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      // expected-note @+1 {{the first of them is here}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
      // expected-error @+1 {{argument 2 has a batch of 7, expected 8}}
      %y: tensor<7xi32> {shardc.role = #shardc.label<"y">}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// state sharding of an input
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{argument 0 has `shardc.state_sharding`, which belongs on a parameter, but its role is #shardc.input<"x">}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// unreduced in storage
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      // expected-error @+1 {{`shardc.sharding` has unreduced axes, but a stored tensor is never a partial sum}}
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}, {}], unreduced={"data"}>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// unknown logical axis
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>, shardc.rules = {batch = ["data"]}} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{argument 0: logical axes ["batch", "embed"] use logical axis "embed", which has no rule; there are rules for "batch"}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", "embed"]},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// rule with an unknown mesh axis
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>, shardc.rules = {batch = ["pod"]}} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{whose rule names "pod", but mesh @mesh has axes "data", "model"}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", ""]},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// rules that use an axis twice
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>, shardc.rules = {batch = ["data"]}} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{uses axis "data" twice}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", "batch"]},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// sharding and logical axes
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>, shardc.rules = {batch = ["data"]}} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{stand beside a `shardc.sharding`}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch", ""], shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// logical axes of another rank
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  // expected-error @+1 {{argument 0: `shardc.logical_axes` has 1 names for a tensor of rank 2}}
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.logical_axes = ["batch"]},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// unknown axis (scenario 25)
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{argument 0: `shardc.sharding` uses axis "pod", but mesh @mesh has axes "data", "model"}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"pod"}, {}]>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// axis twice (scenario 25)
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{argument 0: `shardc.sharding` uses axis "data" twice}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {"data"}]>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// 6 over 4 (scenario 25)
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{shards dimension 0 of size 6 over 4 devices, which does not divide, and the policy is uneven=error}}
      %x: tensor<6x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}], uneven=error>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<6x4xf32>, tensor<4x1xf32> -> tensor<6x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<6x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// rank mismatch
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4, "model" = 2]>
  func.func @loss(
      // expected-error @+1 {{has 1 dimension shardings for a tensor of rank 2}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// no such mesh
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <adam, learning_rate = 0.01>>} {
  func.func @loss(
      // expected-error @+1 {{names mesh @mesh, but the module has no `shardc.mesh` of that name}}
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// states of an optimizer without any
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  shardc.mesh @mesh <["data" = 4]>
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      // expected-remark @+1 {{argument 1: `shardc.state_sharding` has no effect, because the optimizer keeps no states}}
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>,
          shardc.state_sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// a contract on a region that no op has (E6)
// expected-error @+1 {{has contract #shardc.max_collectives<0 region "towr">, but no op has the `shardc.region` "towr"}}
module attributes {
    shardc.expect = [#shardc.max_collectives<0 region "towr">],
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    %0 = shardc.linear %x, %w {shardc.region = "tower"} : tensor<8x4xf32>, tensor<4x1xf32> -> tensor<8x1xf32>
    %1 = shardc.reduce sum %0 dims = [0, 1] : tensor<8x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----
// nothing to compute
module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>} {
  func.func @loss(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">},
      %w: tensor<4x1xf32> {shardc.role = #shardc.parameter<"w", he_normal>}) -> tensor<f32> {
    // expected-error @+1 {{'shardc.iota' op result must be a tensor without empty dimensions, got 'tensor<4x0xf32>'}}
    %0 = shardc.iota dim = 0 : tensor<4x0xf32>
    %1 = shardc.reduce sum %w dims = [0, 1] : tensor<4x1xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}
