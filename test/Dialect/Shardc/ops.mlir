// Every op and attribute prints in the form in which it was read.
// RUN: shardc-opt %s --mlir-print-local-scope | FileCheck %s
// RUN: shardc-opt %s | shardc-opt --mlir-print-local-scope | FileCheck %s
// RUN: shardc-opt %s --mlir-print-op-generic | shardc-opt --mlir-print-local-scope | FileCheck %s

// CHECK: module attributes
// CHECK-SAME: shardc.expect = [#shardc.max_collectives<0>, #shardc.max_collectives<2 of all_gather over "data">, #shardc.max_collectives<1 of all_reduce over "model" in backward region "tower">, #shardc.max_bytes<50362374>, #shardc.max_bytes<0 in forward>, #shardc.max_memory<1048576>, #shardc.no_redundant_flops]
// CHECK-SAME: shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 2>
// CHECK-SAME: shardc.rules = {batch = ["data"], embed = []}
// CHECK-SAME: shardc.training = #shardc.training<loss = @loss, optimizer = <adamw, b1 = 0.9, learning_rate = 0.001>, clip_norm = 1, schedule = <cosine, decay_steps = 10, warmup_steps = 2>, microbatches = 4>
module attributes {
    shardc.expect = [
        #shardc.max_collectives<0>, #shardc.max_collectives<2 of all_gather over "data">,
        #shardc.max_collectives<1 of all_reduce over "model" in backward region "tower">,
        #shardc.max_bytes<50362374>, #shardc.max_bytes<0 in forward>,
        #shardc.max_memory<1048576>, #shardc.no_redundant_flops],
    shardc.pipeline = #shardc.pipeline<schedule = "interleaved", axis = "stage", chunks = 2>,
    shardc.rules = {batch = ["data"], embed = []},
    shardc.training = #shardc.training<loss = @loss,
        optimizer = <adamw, learning_rate = 1.0e-3, b1 = 0.9>, clip_norm = 1.0,
        schedule = <cosine, warmup_steps = 2, decay_steps = 10>, microbatches = 4>} {

  // CHECK: shardc.mesh @mesh <["data" = 4, "model" = 2, "stage" = 2]>
  shardc.mesh @mesh <["data" = 4, "model" = 2, "stage" = 2]>

  // CHECK-LABEL: func @roles
  // CHECK-SAME: #shardc.input<"x">
  // CHECK-SAME: #shardc.sharding<@mesh, [{"data", "model"}, {?}]>
  // CHECK-SAME: #shardc.label<"y">
  // CHECK-SAME: #shardc.sharding<@mesh, [{"data", ?}p1], replicated={"model"}>
  // CHECK-SAME: #shardc.parameter<"w", he_normal>
  // CHECK-SAME: #shardc.sharding<@mesh, [{}, {"model"}], uneven=error>
  // CHECK-SAME: #shardc.parameter<"b", uniform(-1, 1)>
  // CHECK-SAME: #shardc.state<"w.m", constant(0), of = "w">
  // CHECK-SAME: #shardc.state<"step", constant(0)>
  // CHECK-SAME: #shardc.copy<"w.bf16", of = "w">
  func.func @roles(
      %x: tensor<8x4xf32> {shardc.role = #shardc.input<"x">,
          shardc.sharding = #shardc.sharding<@mesh, [{"data", "model"}, {?}]>},
      %y: tensor<8xi32> {shardc.role = #shardc.label<"y">,
          shardc.sharding = #shardc.sharding<@mesh, [{"data", ?}p1], replicated={"model"}>},
      %w: tensor<4x4xf32> {shardc.role = #shardc.parameter<"w", he_normal>,
          shardc.state_sharding = #shardc.sharding<@mesh, [{}, {"model"}], uneven=error>},
      %b: tensor<4xf32> {shardc.role = #shardc.parameter<"b", uniform(-1.0, 1.0)>,
          shardc.logical_axes = ["embed"]},
      %m: tensor<4x4xf32> {shardc.role = #shardc.state<"w.m", constant(0.0), of = "w">},
      %step: tensor<i32> {shardc.role = #shardc.state<"step", constant(0.0)>},
      %c: tensor<4x4xbf16> {shardc.role = #shardc.copy<"w.bf16", of = "w">}) {
    return
  }

  // CHECK-LABEL: func @elementwise
  func.func @elementwise(%x: tensor<4x8xf32>, %n: tensor<4x8xi32>) {
    // CHECK: shardc.neg %{{.*}} : tensor<4x8xf32>
    %0 = shardc.neg %x : tensor<4x8xf32>
    // CHECK: shardc.abs
    %1 = shardc.abs %x : tensor<4x8xf32>
    // CHECK: shardc.sign
    %2 = shardc.sign %x : tensor<4x8xf32>
    // CHECK: shardc.exp %
    %3 = shardc.exp %x : tensor<4x8xf32>
    // CHECK: shardc.expm1
    %4 = shardc.expm1 %x : tensor<4x8xf32>
    // CHECK: shardc.log %
    %5 = shardc.log %x : tensor<4x8xf32>
    // CHECK: shardc.log1p
    %6 = shardc.log1p %x : tensor<4x8xf32>
    // CHECK: shardc.sqrt
    %7 = shardc.sqrt %x : tensor<4x8xf32>
    // CHECK: shardc.rsqrt
    %8 = shardc.rsqrt %x : tensor<4x8xf32>
    // CHECK: shardc.tanh
    %9 = shardc.tanh %x : tensor<4x8xf32>
    // CHECK: shardc.erf
    %10 = shardc.erf %x : tensor<4x8xf32>
    // CHECK: shardc.cos
    %11 = shardc.cos %x : tensor<4x8xf32>
    // CHECK: shardc.sin
    %12 = shardc.sin %x : tensor<4x8xf32>
    // CHECK: shardc.stop_gradient
    %13 = shardc.stop_gradient %x : tensor<4x8xf32>
    // CHECK: shardc.add %{{.*}}, %{{.*}} : tensor<4x8xi32>
    %14 = shardc.add %n, %n : tensor<4x8xi32>
    // CHECK: shardc.sub
    %15 = shardc.sub %x, %0 : tensor<4x8xf32>
    // CHECK: shardc.mul
    %16 = shardc.mul %x, %0 : tensor<4x8xf32>
    // CHECK: shardc.div
    %17 = shardc.div %x, %0 : tensor<4x8xf32>
    // CHECK: shardc.max
    %18 = shardc.max %x, %0 : tensor<4x8xf32>
    // CHECK: shardc.min
    %19 = shardc.min %x, %0 : tensor<4x8xf32>
    // CHECK: shardc.compare gt %{{.*}}, %{{.*}} : tensor<4x8xf32> -> tensor<4x8xi1>
    %20 = shardc.compare gt %x, %0 : tensor<4x8xf32> -> tensor<4x8xi1>
    // CHECK: shardc.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>
    %21 = shardc.select %20, %x, %0 : tensor<4x8xi1>, tensor<4x8xf32>
    // CHECK: shardc.convert %{{.*}} : tensor<4x8xf32> -> tensor<4x8xbf16>
    %22 = shardc.convert %x : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK: shardc.floor
    %23 = shardc.floor %x : tensor<4x8xf32>
    // CHECK: shardc.remainder
    %24 = shardc.remainder %n, %n : tensor<4x8xi32>
    // CHECK: shardc.power
    %25 = shardc.power %x, %0 : tensor<4x8xf32>
    // CHECK: shardc.and %{{.*}}, %{{.*}} : tensor<4x8xi32>
    %26 = shardc.and %n, %n : tensor<4x8xi32>
    // CHECK: shardc.or
    %27 = shardc.or %n, %n : tensor<4x8xi32>
    // CHECK: shardc.xor
    %28 = shardc.xor %n, %n : tensor<4x8xi32>
    // CHECK: shardc.shift_left
    %29 = shardc.shift_left %n, %n : tensor<4x8xi32>
    // CHECK: shardc.shift_right_logical
    %30 = shardc.shift_right_logical %n, %n : tensor<4x8xi32>
    // CHECK: shardc.shift_right_arithmetic
    %31 = shardc.shift_right_arithmetic %n, %n : tensor<4x8xi32>
    // CHECK: shardc.bitcast %{{.*}} : tensor<4x8xf32> -> tensor<4x8xi32>
    %32 = shardc.bitcast %x : tensor<4x8xf32> -> tensor<4x8xi32>
    return
  }

  // CHECK-LABEL: func @tensors
  func.func @tensors(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<3x4x8xf32>,
                     %d: tensor<3x8x2xf32>, %e: tensor<8xf32>, %step: tensor<i32>,
                     %f: tensor<4x8xbf16>, %g: tensor<8x2xbf16>) {
    // CHECK: shardc.dot_general %{{.*}}, %{{.*}} contracting = [1] x [0] : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
    %0 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
    // CHECK: shardc.dot_general %{{.*}}, %{{.*}} batching = [0] x [0] contracting = [2] x [1] :
    %1 = shardc.dot_general %c, %d batching = [0] x [0] contracting = [2] x [1]
        : tensor<3x4x8xf32>, tensor<3x8x2xf32> -> tensor<3x4x2xf32>
    // CHECK: shardc.dot_general {{.*}} : tensor<4x8xbf16>, tensor<8x2xbf16> -> tensor<4x2xf32>
    %summed = shardc.dot_general %f, %g contracting = [1] x [0]
        : tensor<4x8xbf16>, tensor<8x2xbf16> -> tensor<4x2xf32>
    // CHECK: shardc.broadcast %{{.*}} dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
    %2 = shardc.broadcast %e dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
    // CHECK: shardc.reduce sum %{{.*}} dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
    %3 = shardc.reduce sum %a dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
    // CHECK: shardc.reduce max %{{.*}} dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %4 = shardc.reduce max %a dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    // CHECK: shardc.transpose %{{.*}} permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    %5 = shardc.transpose %a permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    // CHECK: shardc.reshape %{{.*}} : tensor<4x8xf32> -> tensor<4x2x4xf32>
    %6 = shardc.reshape %a : tensor<4x8xf32> -> tensor<4x2x4xf32>
    // CHECK: shardc.extract_slice %{{.*}} starts = [0, 2] strides = [1, 3] : tensor<4x8xf32> -> tensor<4x2xf32>
    %part = shardc.extract_slice %a starts = [0, 2] strides = [1, 3] : tensor<4x8xf32> -> tensor<4x2xf32>
    // CHECK: shardc.pad %{{.*}} low = [0, 2] interior = [0, 1] fill = 0.000000e+00 : tensor<4x2xf32> -> tensor<4x8xf32>
    %padded = shardc.pad %part low = [0, 2] interior = [0, 1] fill = 0.0 : tensor<4x2xf32> -> tensor<4x8xf32>
    // CHECK: shardc.concatenate %{{.*}}, %{{.*}} dim = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
    %joined = shardc.concatenate %a, %part dim = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
    // CHECK: shardc.permute_rows %{{.*}} dim = 0 sources = [3, 0, 1, 2] : tensor<4x8xf32>
    %turned = shardc.permute_rows %a dim = 0 sources = [3, 0, 1, 2] : tensor<4x8xf32>
    // CHECK: shardc.constant dense<0.000000e+00> : tensor<4x8xf32>
    %7 = shardc.constant dense<0.0> : tensor<4x8xf32>
    // CHECK: shardc.iota dim = 1 : tensor<4x8xi32>
    %8 = shardc.iota dim = 1 : tensor<4x8xi32>
    // CHECK: shardc.iota dim = 0 shard = <@mesh, [{"data"}, {}]> : tensor<4x8xi32>
    %9 = shardc.iota dim = 0 shard = <@mesh, [{"data"}, {}]> : tensor<4x8xi32>
    // CHECK: shardc.random_uniform %{{.*}} stream = 3 : tensor<i32> -> tensor<4x8xf32>
    %10 = shardc.random_uniform %step stream = 3 : tensor<i32> -> tensor<4x8xf32>
    // CHECK: shardc.random_uniform %{{.*}} stream = 3 shard = <@mesh, [{"data"}, {}]> global_shape = [16, 8] : tensor<i32> -> tensor<4x8xf32>
    %11 = shardc.random_uniform %step stream = 3 shard = <@mesh, [{"data"}, {}]> global_shape = [16, 8]
        : tensor<i32> -> tensor<4x8xf32>
    // CHECK: shardc.random_uniform %{{.*}} stream = 3 microbatch = [4, 4] : tensor<i32> -> tensor<4x8xf32>
    %13 = shardc.random_uniform %step stream = 3 microbatch = [4, 4] : tensor<i32> -> tensor<4x8xf32>
    // CHECK: shardc.iota dim = 0 microbatch = [4, 4] : tensor<4x8xi32>
    %14 = shardc.iota dim = 0 microbatch = [4, 4] : tensor<4x8xi32>
    // CHECK: shardc.mask %{{.*}} dims = [0] fill = 0.000000e+00 shard = <@mesh, [{"data"}, {}]> global_shape = [14, 8] : tensor<4x8xf32>
    %12 = shardc.mask %a dims = [0] fill = 0.0 shard = <@mesh, [{"data"}, {}]>
        global_shape = [14, 8] : tensor<4x8xf32>
    return
  }

  // CHECK-LABEL: func @composites
  func.func @composites(%x: tensor<32x16xf32>, %w: tensor<16x64xf32>, %b: tensor<64xf32>,
                        %y: tensor<32xi32>) {
    // CHECK: shardc.linear %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %0 = shardc.linear %x, %w, %b : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    // CHECK: shardc.linear %{{.*}}, %{{.*}} : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %1 = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    // CHECK: shardc.relu %{{.*}} : tensor<32x64xf32>
    %2 = shardc.relu %0 : tensor<32x64xf32>
    // CHECK: shardc.silu
    %3 = shardc.silu %0 : tensor<32x64xf32>
    // CHECK: shardc.sigmoid
    %4 = shardc.sigmoid %0 : tensor<32x64xf32>
    // CHECK: shardc.gelu %
    %5 = shardc.gelu %0 : tensor<32x64xf32>
    // CHECK: shardc.gelu tanh %
    %6 = shardc.gelu tanh %0 : tensor<32x64xf32>
    // CHECK: shardc.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon = 9.9{{.*}}E-7 : tensor<32x64xf32>, tensor<64xf32>
    %7 = shardc.layer_norm %0, %b, %b epsilon = 1.0e-6 : tensor<32x64xf32>, tensor<64xf32>
    // CHECK: shardc.dropout %{{.*}} rate = 1.000000e-01 stream = 0 : tensor<32x64xf32>
    %8 = shardc.dropout %0 rate = 1.0e-1 stream = 0 : tensor<32x64xf32>
    // CHECK: shardc.softmax_cross_entropy %{{.*}}, %{{.*}} : tensor<32x64xf32>, tensor<32xi32> -> tensor<f32>
    %9 = shardc.softmax_cross_entropy %0, %y : tensor<32x64xf32>, tensor<32xi32> -> tensor<f32>
    // CHECK: shardc.mse %{{.*}}, %{{.*}} : tensor<32x64xf32> -> tensor<f32>
    %10 = shardc.mse %0, %1 : tensor<32x64xf32> -> tensor<f32>
    return
  }

  // CHECK-LABEL: func @sharding
  func.func @sharding(%x: tensor<32x64xf32>) {
    // CHECK: shardc.sharding_constraint %{{.*}} sharding = <@mesh, [{"data"}, {}]> : tensor<32x64xf32>
    %0 = shardc.sharding_constraint %x sharding = <@mesh, [{"data"}, {}]> : tensor<32x64xf32>
    // CHECK: shardc.sharding_constraint %{{.*}} logical_axes = ["batch", "embed"] : tensor<32x64xf32>
    %1 = shardc.sharding_constraint %x logical_axes = ["batch", "embed"] : tensor<32x64xf32>
    // CHECK: shardc.reshard %{{.*}} from <@mesh, [{}, {}], unreduced={"model"}> to <@mesh, [{"model"}, {}]> {cause = "why"} : tensor<32x64xf32>
    %2 = shardc.reshard %x from <@mesh, [{}, {}], unreduced={"model"}> to <@mesh, [{"model"}, {}]>
        {cause = "why"} : tensor<32x64xf32>
    // CHECK: shardc.exp %{{.*}} {shardc.part = #shardc.part<backward>, shardc.strategy = #shardc.strategy<[{"data"}, {}], unreduced={"model"}>}
    %3 = shardc.exp %x {shardc.strategy = #shardc.strategy<[{"data"}, {}], unreduced={"model"}>,
        shardc.part = #shardc.part<backward>} : tensor<32x64xf32>
    return
  }

  // CHECK-LABEL: func @stages
  func.func @stages(%x: tensor<32x64xf32>) {
    // CHECK: %[[X:.*]] = shardc.exp %{{.*}} {shardc.stage = 0 : i64} : tensor<32x64xf32>
    %0 = shardc.exp %x {shardc.stage = 0 : i64} : tensor<32x64xf32>
    // CHECK: shardc.transfer %[[X]] from 0 to 2 : tensor<32x64xf32>
    %1 = shardc.transfer %0 from 0 to 2 : tensor<32x64xf32>
    return
  }

  // CHECK-LABEL: func @collectives
  func.func @collectives(%x: tensor<16x64xf32>, %b: tensor<64xf32>) {
    // CHECK: shardc.all_reduce sum %{{.*}}, %{{.*}} over @mesh["data", "model"] : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
    %0:2 = shardc.all_reduce sum %x, %b over @mesh["data", "model"]
        : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
    // CHECK: shardc.all_gather %{{.*}} over @mesh["data"] dims = [0] : (tensor<16x64xf32>) -> tensor<62x64xf32>
    %1 = shardc.all_gather %x over @mesh["data"] dims = [0] : (tensor<16x64xf32>) -> tensor<62x64xf32>
    // CHECK: shardc.reduce_scatter sum %{{.*}} over @mesh["data"] dims = [0] : (tensor<16x64xf32>) -> tensor<4x64xf32>
    %2 = shardc.reduce_scatter sum %x over @mesh["data"] dims = [0] : (tensor<16x64xf32>) -> tensor<4x64xf32>
    // CHECK: shardc.all_to_all %{{.*}} over @mesh["model"] split_dim = 1 concat_dim = 0 : tensor<16x64xf32> -> tensor<32x32xf32>
    %3 = shardc.all_to_all %x over @mesh["model"] split_dim = 1 concat_dim = 0
        : tensor<16x64xf32> -> tensor<32x32xf32>
    // CHECK: shardc.collective_permute %{{.*}} over @mesh["data", "model"] to ["model", "data"] : tensor<16x64xf32>
    %4 = shardc.collective_permute %x over @mesh["data", "model"] to ["model", "data"] : tensor<16x64xf32>
    // CHECK: shardc.collective_permute %{{.*}} over @mesh["data"] to ["data"] sources = [3, 0, 1, 2] : tensor<16x64xf32>
    %ring = shardc.collective_permute %x over @mesh["data"] to ["data"] sources = [3, 0, 1, 2] : tensor<16x64xf32>
    // CHECK: shardc.slice %{{.*}} over @mesh["data"] dim = 0 : tensor<16x64xf32> -> tensor<4x64xf32>
    %5 = shardc.slice %x over @mesh["data"] dim = 0 : tensor<16x64xf32> -> tensor<4x64xf32>
    return
  }

  // CHECK-LABEL: func @under_way
  func.func @under_way(%x: tensor<16x64xf32>, %b: tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>) {
    // CHECK: %[[H:.*]] = shardc.collective_start(%{{.*}}, %{{.*}}) : tensor<16x64xf32>, tensor<64xf32> {
    // CHECK: ^bb0(%[[A:.*]]: tensor<16x64xf32>, %[[B:.*]]: tensor<64xf32>):
    // CHECK: %[[R:.*]]:2 = shardc.all_reduce sum %[[A]], %[[B]] over @mesh["data"]
    // CHECK: shardc.yield %[[R]]#0, %[[R]]#1 : tensor<16x64xf32>, tensor<64xf32>
    // CHECK: %{{.*}}:2 = shardc.collective_wait %[[H]] : tensor<16x64xf32>, tensor<64xf32>
    %h = shardc.collective_start(%x, %b) : tensor<16x64xf32>, tensor<64xf32> {
    ^bb0(%arg0: tensor<16x64xf32>, %arg1: tensor<64xf32>):
      %0:2 = shardc.all_reduce sum %arg0, %arg1 over @mesh["data"]
          : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
      shardc.yield %0#0, %0#1 : tensor<16x64xf32>, tensor<64xf32>
    }
    %1:2 = shardc.collective_wait %h : tensor<16x64xf32>, tensor<64xf32>
    return %1#0, %1#1 : tensor<16x64xf32>, tensor<64xf32>
  }

  // CHECK-LABEL: func @messages
  // CHECK-SAME: shardc.number = 2 : i64
  // CHECK-SAME: shardc.pipeline_rank = 0 : i64, shardc.program = "train_step", shardc.tasks = "0F0,0B0"
  func.func @messages(%x: tensor<32x16xf32> {shardc.number = 2 : i64}) -> tensor<8x16xf32>
      attributes {shardc.pipeline_rank = 0 : i64, shardc.program = "train_step", shardc.tasks = "0F0,0B0"} {
    // CHECK: %[[ROWS:.*]] = shardc.rows %{{.*}} 1 of 4 : tensor<32x16xf32> -> tensor<8x16xf32>
    %0 = shardc.rows %x 1 of 4 : tensor<32x16xf32> -> tensor<8x16xf32>
    // CHECK: %[[SENT:.*]] = shardc.collective_start(%[[ROWS]]) : tensor<8x16xf32> {
    // CHECK: shardc.send %{{.*}} to 1 message 0 : tensor<8x16xf32>
    %sent = shardc.collective_start(%0) : tensor<8x16xf32> {
    ^bb0(%arg0: tensor<8x16xf32>):
      shardc.send %arg0 to 1 message 0 : tensor<8x16xf32>
      shardc.yield
    }
    // CHECK: %[[RECEIVED:.*]] = shardc.collective_start() : () {
    // CHECK: shardc.receive from 1 message 1 : tensor<8x16xf32>
    %received = shardc.collective_start() : () {
      %1 = shardc.receive from 1 message 1 : tensor<8x16xf32>
      shardc.yield %1 : tensor<8x16xf32>
    }
    // CHECK: shardc.collective_wait %[[SENT]] : ()
    shardc.collective_wait %sent : ()
    // CHECK: shardc.collective_wait %[[RECEIVED]] : tensor<8x16xf32>
    %2 = shardc.collective_wait %received : tensor<8x16xf32>
    // CHECK: shardc.zeros {shardc.task = "0B0"} : tensor<8x16xf32>
    %3 = shardc.zeros {shardc.task = "0B0"} : tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  }

  // CHECK-LABEL: func @kernels
  func.func @kernels(%x: tensor<128x784xf32>, %w: tensor<784x512xf32>, %b: tensor<512xf32>,
                     %g: tensor<128x512xf32>) -> tensor<128x512xf32> {
    // CHECK: shardc.gemm %{{.*}}, %{{.*}}, %{{.*}} relu : tensor<128x784xf32>, tensor<784x512xf32>, tensor<512xf32> -> tensor<128x512xf32>
    %0 = shardc.gemm %x, %w, %b relu : tensor<128x784xf32>, tensor<784x512xf32>, tensor<512xf32> -> tensor<128x512xf32>
    // CHECK: shardc.gemm %{{.*}}, %{{.*}} transpose_lhs : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>
    %1 = shardc.gemm %x, %g transpose_lhs : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>
    // CHECK: shardc.gemm %{{.*}}, %{{.*}} plus %{{.*}} transpose_lhs : tensor<128x784xf32>, tensor<128x512xf32> plus tensor<784x512xf32> -> tensor<784x512xf32>
    %5 = shardc.gemm %x, %g plus %1 transpose_lhs
        : tensor<128x784xf32>, tensor<128x512xf32> plus tensor<784x512xf32> -> tensor<784x512xf32>
    // CHECK: shardc.gemm %{{.*}}, %{{.*}} transpose_lhs sums_rhs : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>, tensor<512xf32>
    %6:2 = shardc.gemm %x, %g transpose_lhs sums_rhs
        : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>, tensor<512xf32>
    // CHECK: shardc.kernel(%{{.*}}, %{{.*}}) : (tensor<128x512xf32>, tensor<512xf32>) -> tensor<128x512xf32> {
    // CHECK: ^bb0(%[[A:.*]]: tensor<128x512xf32>, %[[B:.*]]: tensor<512xf32>):
    // CHECK: shardc.yield %{{.*}} : tensor<128x512xf32>
    %2 = shardc.kernel(%0, %b) : (tensor<128x512xf32>, tensor<512xf32>) -> tensor<128x512xf32> {
    ^bb0(%arg0: tensor<128x512xf32>, %arg1: tensor<512xf32>):
      %3 = shardc.broadcast %arg1 dims = [1] : tensor<512xf32> -> tensor<128x512xf32>
      %4 = shardc.add %arg0, %3 : tensor<128x512xf32>
      shardc.yield %4 : tensor<128x512xf32>
    }
    return %2 : tensor<128x512xf32>
  }

  // CHECK-LABEL: func @accumulate
  func.func @accumulate(%x: tensor<32x16xf32>, %g: tensor<32x64xf32>) -> tensor<16x64xf32> {
    // CHECK: shardc.accumulate 4 of(%{{.*}}, %{{.*}}) : (tensor<32x16xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> {
    // CHECK: ^bb0(%[[X:.*]]: tensor<8x16xf32>, %[[G:.*]]: tensor<8x64xf32>):
    // CHECK: shardc.dot_general %[[X]], %[[G]]
    // CHECK: shardc.yield %{{.*}} : tensor<16x64xf32>
    %0 = shardc.accumulate 4 of (%x, %g) : (tensor<32x16xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> {
    ^bb0(%arg0: tensor<8x16xf32>, %arg1: tensor<8x64xf32>):
      %1 = shardc.dot_general %arg0, %arg1 contracting = [0] x [0]
          : tensor<8x16xf32>, tensor<8x64xf32> -> tensor<16x64xf32>
      shardc.yield %1 : tensor<16x64xf32>
    }
    return %0 : tensor<16x64xf32>
  }

  // CHECK-LABEL: func @scatter_rows
  func.func @scatter_rows(%x: tensor<32x2xf32>) -> tensor<32x2xf32> {
    %0 = shardc.accumulate 4 of (%x) : (tensor<32x2xf32>) -> tensor<32x2xf32> {
    ^bb0(%a: tensor<8x2xf32>):
      // CHECK: shardc.scatter_rows %{{.*}} of 4 : tensor<8x2xf32> -> tensor<32x2xf32>
      %1 = shardc.scatter_rows %a of 4 : tensor<8x2xf32> -> tensor<32x2xf32>
      shardc.yield %1 : tensor<32x2xf32>
    }
    return %0 : tensor<32x2xf32>
  }
}
