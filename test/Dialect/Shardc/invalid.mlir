// One case per numbered constraint of ShardcOps.td.
// RUN: shardc-opt %s --split-input-file --verify-diagnostics

// compare C1
func.func @compare_c1(%a: tensor<4xf32>) {
  // expected-error @+1 {{result must have the shape of the operand, got 'tensor<5xi1>' for 'tensor<4xf32>'}}
  %0 = shardc.compare gt %a, %a : tensor<4xf32> -> tensor<5xi1>
  return
}

// -----
// select C1
func.func @select_c1(%p: tensor<5xi1>, %a: tensor<4xf32>) {
  // expected-error @+1 {{predicate must have the shape of the result}}
  %0 = shardc.select %p, %a, %a : tensor<5xi1>, tensor<4xf32>
  return
}

// -----
// bitcast C1
func.func @bitcast_c1(%a: tensor<4xf32>) {
  // expected-error @+1 {{result must have the shape of the operand}}
  %0 = shardc.bitcast %a : tensor<4xf32> -> tensor<2x2xi32>
  return
}

// -----
// bitcast C2
func.func @bitcast_c2(%a: tensor<4xf32>) {
  // expected-error @+1 {{expected a float and an integer of as many bits, got 'f32' and 'i64'}}
  %0 = shardc.bitcast %a : tensor<4xf32> -> tensor<4xi64>
  return
}

// -----
// convert C1
func.func @convert_c1(%a: tensor<4xf32>) {
  // expected-error @+1 {{result must have the shape of the operand}}
  %0 = shardc.convert %a : tensor<4xf32> -> tensor<2x2xbf16>
  return
}

// -----
// dot_general C1
func.func @dot_general_c1_range(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{lhs dimension 2 is out of range for rank 2}}
  %0 = shardc.dot_general %a, %a contracting = [2] x [1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----
// dot_general C1
func.func @dot_general_c1_twice(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{rhs dimension 1 is used more than once}}
  %0 = shardc.dot_general %a, %a batching = [0] x [1] contracting = [1] x [1]
      : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4xf32>
  return
}

// -----
// dot_general C2
func.func @dot_general_c2(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{contracting dimensions 1 and 0 must have equal sizes, got 8 and 4}}
  %0 = shardc.dot_general %a, %a contracting = [1] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// dot_general C2
func.func @dot_general_c2_count(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{needs as many contracting dimensions on the left as on the right, got 1 and 2}}
  %0 = shardc.dot_general %a, %a contracting = [1] x [0, 1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----
// dot_general C3
func.func @dot_general_c3(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error @+1 {{result must be 'tensor<4x2xf32>', got 'tensor<2x4xf32>'}}
  %0 = shardc.dot_general %a, %b contracting = [1] x [0] : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<2x4xf32>
  return
}

// -----
// dot_general C4
func.func @dot_general_c4(%a: tensor<4x8xf32>, %b: tensor<8x2xbf16>) {
  // expected-error @+1 {{operands must have the same element type, got 'f32' and 'bf16'}}
  %0 = shardc.dot_general %a, %b contracting = [1] x [0] : tensor<4x8xf32>, tensor<8x2xbf16> -> tensor<4x2xf32>
  return
}

// -----
// dot_general C5
func.func @dot_general_c5(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error @+1 {{result must be 'tensor<4x2xf32>', got 'tensor<4x2xf64>'}}
  %0 = shardc.dot_general %a, %b contracting = [1] x [0] : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf64>
  return
}

// -----
// broadcast C1
func.func @broadcast_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dims must be ascending, but 0 follows 1}}
  %0 = shardc.broadcast %a dims = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----
// broadcast C1
func.func @broadcast_c1_count(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dims must have one entry per operand dimension, got 1 for rank 2}}
  %0 = shardc.broadcast %a dims = [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// broadcast C2
func.func @broadcast_c2(%a: tensor<8xf32>) {
  // expected-error @+1 {{result dimension 0 must have the size of operand dimension 0, got 4 and 8}}
  %0 = shardc.broadcast %a dims = [0] : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----
// broadcast C3
func.func @broadcast_c3(%a: tensor<8xf32>) {
  // expected-error @+1 {{must have the same element type, got 'f32' and 'bf16'}}
  %0 = shardc.broadcast %a dims = [1] : tensor<8xf32> -> tensor<4x8xbf16>
  return
}

// -----
// reduce C1
func.func @reduce_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dims has dimension 2, out of range for rank 2}}
  %0 = shardc.reduce sum %a dims = [2] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----
// reduce C2
func.func @reduce_c2(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{result must be 'tensor<8xf32>', got 'tensor<4xf32>'}}
  %0 = shardc.reduce max %a dims = [0] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----
// transpose C1
func.func @transpose_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{permutation must be one of the 2 operand dimensions, got [1, 1]}}
  %0 = shardc.transpose %a permutation = [1, 1] : tensor<4x8xf32> -> tensor<8x8xf32>
  return
}

// -----
// transpose C2
func.func @transpose_c2(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{result must be 'tensor<8x4xf32>', got 'tensor<4x8xf32>'}}
  %0 = shardc.transpose %a permutation = [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// reshape C1
func.func @reshape_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{must keep the number and type of the elements}}
  %0 = shardc.reshape %a : tensor<4x8xf32> -> tensor<4x9xf32>
  return
}

// -----
// extract_slice C1
func.func @extract_slice_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{starts must have one entry per dimension, got 1 for rank 2}}
  %0 = shardc.extract_slice %a starts = [0] strides = [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// extract_slice C1
func.func @extract_slice_c1_stride(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{strides must have entries of at least 1, got 0}}
  %0 = shardc.extract_slice %a starts = [0, 0] strides = [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// extract_slice C2
func.func @extract_slice_c2(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{result must have the rank and the element type of the operand, got 'tensor<4xf32>' for 'tensor<4x8xf32>'}}
  %0 = shardc.extract_slice %a starts = [0, 0] strides = [1, 1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----
// extract_slice C3
func.func @extract_slice_c3(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dimension 1 of the operand has no element 8, its size is 8}}
  %0 = shardc.extract_slice %a starts = [0, 2] strides = [1, 3] : tensor<4x8xf32> -> tensor<4x3xf32>
  return
}

// -----
// pad C1
func.func @pad_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{low must have entries of at least 0, got -1}}
  %0 = shardc.pad %a low = [-1, 0] interior = [0, 0] fill = 0.0 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// pad C1
func.func @pad_c1_interior(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{interior must have one entry per dimension, got 3 for rank 2}}
  %0 = shardc.pad %a low = [0, 0] interior = [0, 0, 0] fill = 0.0 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// pad C2
func.func @pad_c2(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{result must have the rank and the element type of the operand}}
  %0 = shardc.pad %a low = [0, 0] interior = [0, 0] fill = 0.0 : tensor<4x8xf32> -> tensor<4x8xf64>
  return
}

// -----
// pad C3
func.func @pad_c3(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dimension 0 of the result has no element 7, its size is 7}}
  %0 = shardc.pad %a low = [1, 0] interior = [1, 0] fill = 0.0 : tensor<4x8xf32> -> tensor<7x8xf32>
  return
}

// -----
// concatenate C1
func.func @concatenate_c1() {
  // expected-error @+1 {{needs at least one operand}}
  %0 = shardc.concatenate dim = 0 : () -> tensor<4xf32>
  return
}

// -----
// concatenate C1
func.func @concatenate_c1_dim(%a: tensor<4xf32>) {
  // expected-error @+1 {{dim 1 is out of range for rank 1}}
  %0 = shardc.concatenate %a dim = 1 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
// concatenate C2
func.func @concatenate_c2(%a: tensor<4x8xf32>, %b: tensor<3x2xf32>) {
  // expected-error @+1 {{operands must have the type of the result but for dimension 1, got 'tensor<3x2xf32>' for 'tensor<4x10xf32>'}}
  %0 = shardc.concatenate %a, %b dim = 1 : (tensor<4x8xf32>, tensor<3x2xf32>) -> tensor<4x10xf32>
  return
}

// -----
// concatenate C2
func.func @concatenate_c2_sum(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dimension 1 of the result must have size 16, the sum of those of the operands, got 10}}
  %0 = shardc.concatenate %a, %a dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x10xf32>
  return
}

// -----
// permute_rows C1
func.func @permute_rows_c1(%a: tensor<4xf32>) {
  // expected-error @+1 {{dim 1 is out of range for rank 1}}
  %0 = shardc.permute_rows %a dim = 1 sources = [0] : tensor<4xf32>
  return
}

// -----
// permute_rows C2
func.func @permute_rows_c2(%a: tensor<4xf32>) {
  // expected-error @+1 {{sources must be a permutation of the 4 rows, got [0, 1, 2, 2]}}
  %0 = shardc.permute_rows %a dim = 0 sources = [0, 1, 2, 2] : tensor<4xf32>
  return
}

// -----
// permute_rows C2
func.func @permute_rows_c2_count(%a: tensor<4xf32>) {
  // expected-error @+1 {{sources must be a permutation of the 4 rows, got [1, 0]}}
  %0 = shardc.permute_rows %a dim = 0 sources = [1, 0] : tensor<4xf32>
  return
}

// -----
// iota C1
func.func @iota_c1() {
  // expected-error @+1 {{dim 2 is out of range for rank 2}}
  %0 = shardc.iota dim = 2 : tensor<4x8xi32>
  return
}

// -----
// random_uniform C1
func.func @random_uniform_c1(%step: tensor<i32>) {
  // expected-error @+1 {{shard and global_shape must be given together}}
  %0 = shardc.random_uniform %step stream = 0 global_shape = [4, 8] : tensor<i32> -> tensor<4x8xf32>
  return
}

// -----
// random_uniform C2
func.func @random_uniform_c2(%step: tensor<1xi32>) {
  // expected-error @+1 {{step must be a scalar, got 'tensor<1xi32>'}}
  %0 = shardc.random_uniform %step stream = 0 : tensor<1xi32> -> tensor<4x8xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// mask C1
func.func @mask_c1(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{shard and global_shape must have the rank of the operand, got 2 and 1 for rank 2}}
  %0 = shardc.mask %a dims = [0] fill = 0.0 shard = <@mesh, [{"data"}, {}]> global_shape = [14] : tensor<4x8xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// mask C2
func.func @mask_c2(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dimension 0 must have size 5, the shard of 17 over 4 devices, got 4}}
  %0 = shardc.mask %a dims = [0] fill = 0.0 shard = <@mesh, [{"data"}, {}]> global_shape = [17, 8] : tensor<4x8xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// mask C3
func.func @mask_c3(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{dims has dimension 2, out of range for rank 2}}
  %0 = shardc.mask %a dims = [2] fill = 0.0 shard = <@mesh, [{"data"}, {}]> global_shape = [14, 8] : tensor<4x8xf32>
  return
}

// -----
// linear C1
func.func @linear_c1(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{needs w of rank 2 and x of rank 2 or more}}
  %0 = shardc.linear %x, %w : tensor<4x8xf32>, tensor<8xf32> -> tensor<4xf32>
  return
}

// -----
// linear C2
func.func @linear_c2(%x: tensor<4x8xf32>, %w: tensor<9x2xf32>) {
  // expected-error @+1 {{last dimension of x must be the first of w, got 8 and 9}}
  %0 = shardc.linear %x, %w : tensor<4x8xf32>, tensor<9x2xf32> -> tensor<4x2xf32>
  return
}

// -----
// linear C3
func.func @linear_c3(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{bias must be 'tensor<2xf32>', got 'tensor<3xf32>'}}
  %0 = shardc.linear %x, %w, %b : tensor<4x8xf32>, tensor<8x2xf32>, tensor<3xf32> -> tensor<4x2xf32>
  return
}

// -----
// linear C4
func.func @linear_c4(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) {
  // expected-error @+1 {{result must be 'tensor<4x2xf32>', got 'tensor<2x4xf32>'}}
  %0 = shardc.linear %x, %w : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<2x4xf32>
  return
}

// -----
// layer_norm C1
func.func @layer_norm_c1(%x: tensor<4x8xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{scale and bias must be 'tensor<8xf32>', got 'tensor<4xf32>'}}
  %0 = shardc.layer_norm %x, %s, %s epsilon = 1.0e-6 : tensor<4x8xf32>, tensor<4xf32>
  return
}

// -----
// layer_norm C2
func.func @layer_norm_c2(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{epsilon must be positive and finite}}
  %0 = shardc.layer_norm %x, %s, %s epsilon = 0.0 : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----
// dropout C1
func.func @dropout_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{rate must be in [0, 1)}}
  %0 = shardc.dropout %x rate = 1.0 stream = 0 : tensor<4x8xf32>
  return
}

// -----
// softmax_cross_entropy C1
func.func @softmax_cross_entropy_c1(%x: tensor<4x8xf32>, %y: tensor<5xi32>) {
  // expected-error @+1 {{needs logits [rows, classes] and labels [rows]}}
  %0 = shardc.softmax_cross_entropy %x, %y : tensor<4x8xf32>, tensor<5xi32> -> tensor<f32>
  return
}

// -----
// softmax_cross_entropy C2
func.func @softmax_cross_entropy_c2(%x: tensor<4x8xf32>, %y: tensor<4xi32>) {
  // expected-error @+1 {{result must be 'tensor<f32>', got 'tensor<4xf32>'}}
  %0 = shardc.softmax_cross_entropy %x, %y : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>
  return
}

// -----
// mse C1
func.func @mse_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{result must be 'tensor<f32>', got 'tensor<1xf32>'}}
  %0 = shardc.mse %x, %x : tensor<4x8xf32> -> tensor<1xf32>
  return
}

// -----
// mesh C1
// expected-error @+1 {{C1: axis names must be distinct and not empty}}
shardc.mesh @mesh <["data" = 4, "data" = 2]>

// -----
// mesh C1
// expected-error @+1 {{C1: axis names must not start with '*', got "*2"}}
shardc.mesh @mesh <["*2" = 4]>

// -----
// mesh C1
// expected-error @+1 {{C1: axis "data" has size 0, expected at least 1}}
shardc.mesh @mesh <["data" = 0]>

// -----
// mesh C2
// expected-error @+1 {{C2: the mesh has more than 1048576 devices}}
shardc.mesh @mesh <["data" = 1024, "model" = 1025]>

// -----
// mesh C3
// expected-note @+1 {{the first mesh is here}}
shardc.mesh @mesh <["data" = 4]>
// expected-error @+1 {{C3: a module has one mesh, this is another}}
shardc.mesh @other <["data" = 4]>

// -----
// sharding_constraint C1
func.func @sharding_constraint_c1(%x: tensor<32x64xf32>) {
  // expected-error @+1 {{needs exactly one of sharding and logical_axes}}
  %0 = shardc.sharding_constraint %x : tensor<32x64xf32>
  return
}

// -----
// sharding_constraint C2
func.func @sharding_constraint_c2(%x: tensor<32x64xf32>) {
  // expected-error @+1 {{needs one entry per dimension of the operand, got 1 for rank 2}}
  %0 = shardc.sharding_constraint %x logical_axes = ["batch"] : tensor<32x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// sharding_constraint C3
func.func @sharding_constraint_c3(%x: tensor<32x64xf32>) {
  // expected-error @+1 {{uses axis "model", but mesh @mesh has axes "data"}}
  %0 = shardc.sharding_constraint %x sharding = <@mesh, [{"model"}, {}]> : tensor<32x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// reshard C1
func.func @reshard_c1(%x: tensor<32x64xf32>) {
  // expected-error @+1 {{uses axis "data" twice}}
  %0 = shardc.reshard %x from <@mesh, [{"data"}, {"data"}]> to <@mesh, [{}, {}]> : tensor<32x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// reshard C2
func.func @reshard_c2(%x: tensor<32x64xf32>) {
  // expected-error @+1 {{axis "data" is unreduced in `to` but not in `from`}}
  %0 = shardc.reshard %x from <@mesh, [{}, {}]> to <@mesh, [{}, {}], unreduced={"data"}> : tensor<32x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// all_reduce C1
func.func @all_reduce_c1(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{uses axis "data" twice}}
  %0 = shardc.all_reduce sum %x over @mesh["data", "data"] : (tensor<16x64xf32>) -> tensor<16x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// all_reduce C2
func.func @all_reduce_c2(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{results must have the types of the operands}}
  %0 = shardc.all_reduce sum %x over @mesh["data"] : (tensor<16x64xf32>) -> tensor<4x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// all_gather C1
func.func @all_gather_c1(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{needs at least one mesh axis}}
  %0 = shardc.all_gather %x over @mesh[] dims = [0] : (tensor<16x64xf32>) -> tensor<64x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// all_gather C2
func.func @all_gather_c2(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{dims must have one entry per operand, got 2 for 1}}
  %0 = shardc.all_gather %x over @mesh["data"] dims = [0, 1] : (tensor<16x64xf32>) -> tensor<64x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// all_gather C3
func.func @all_gather_c3(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{the shard of 'tensor<65x64xf32>' in dimension 0 over 4 devices must be 'tensor<17x64xf32>', got 'tensor<16x64xf32>'}}
  %0 = shardc.all_gather %x over @mesh["data"] dims = [0] : (tensor<16x64xf32>) -> tensor<65x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// reduce_scatter C1
func.func @reduce_scatter_c1(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{uses axis "model", which mesh @mesh lacks}}
  %0 = shardc.reduce_scatter sum %x over @mesh["model"] dims = [0] : (tensor<16x64xf32>) -> tensor<4x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// reduce_scatter C2
func.func @reduce_scatter_c2(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{dims entry 2 is out of range for rank 2}}
  %0 = shardc.reduce_scatter sum %x over @mesh["data"] dims = [2] : (tensor<16x64xf32>) -> tensor<4x64xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// reduce_scatter C3
func.func @reduce_scatter_c3(%x: tensor<16x64xf32>) {
  // expected-error @+1 {{must be 'tensor<16x16xf32>', got 'tensor<4x64xf32>'}}
  %0 = shardc.reduce_scatter sum %x over @mesh["data"] dims = [1] : (tensor<16x64xf32>) -> tensor<4x64xf32>
  return
}

// -----
// all_to_all C1
func.func @all_to_all_c1(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{names mesh @mesh, but the module has none of that name}}
  %0 = shardc.all_to_all %x over @mesh["x"] split_dim = 1 concat_dim = 0 : tensor<4x16xf32> -> tensor<8x8xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2]>
// all_to_all C2
func.func @all_to_all_c2(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{split_dim and concat_dim must differ, both are 1}}
  %0 = shardc.all_to_all %x over @mesh["x"] split_dim = 1 concat_dim = 1 : tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2]>
// all_to_all C3
func.func @all_to_all_c3(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{dimension 1 must shrink to its shard over 2 devices, dimension 0 grow from its own}}
  %0 = shardc.all_to_all %x over @mesh["x"] split_dim = 1 concat_dim = 0 : tensor<4x16xf32> -> tensor<4x8xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2]>
// collective_permute C1
func.func @collective_permute_c1(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{uses axis "y", which mesh @mesh lacks}}
  %0 = shardc.collective_permute %x over @mesh["y"] to ["y"] : tensor<4x16xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2, "y" = 2]>
// collective_permute C2
func.func @collective_permute_c2(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{target axes must be a permutation of the axes}}
  %0 = shardc.collective_permute %x over @mesh["x", "y"] to ["x"] : tensor<4x16xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2, "y" = 2]>
// collective_permute C3
func.func @collective_permute_c3(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{sources must be a permutation of the 4 members, got [3, 0, 1, 4]}}
  %0 = shardc.collective_permute %x over @mesh["x", "y"] to ["x", "y"] sources = [3, 0, 1, 4] : tensor<4x16xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2, "y" = 2]>
// collective_permute C3
func.func @collective_permute_c3_count(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{sources must be a permutation of the 4 members, got [1, 0]}}
  %0 = shardc.collective_permute %x over @mesh["x", "y"] to ["x", "y"] sources = [1, 0] : tensor<4x16xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2]>
// slice C1
func.func @slice_c1(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{needs at least one mesh axis}}
  %0 = shardc.slice %x over @mesh[] dim = 0 : tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----
shardc.mesh @mesh <["x" = 2]>
// slice C2
func.func @slice_c2(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{must be 'tensor<2x16xf32>', got 'tensor<4x16xf32>'}}
  %0 = shardc.slice %x over @mesh["x"] dim = 0 : tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----
// kernel C1
func.func @kernel_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{body's arguments must have the types of the operands}}
  %0 = shardc.kernel(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<5xf32>):
    %1 = shardc.constant dense<0.0> : tensor<4xf32>
    shardc.yield %1 : tensor<4xf32>
  }
  return
}

// -----
// kernel C2
func.func @kernel_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{must yield the types of its results}}
  %0 = shardc.kernel(%x) : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<4xf32>):
    shardc.yield %a : tensor<4xf32>
  }
  return
}

// -----
// gemm C1
func.func @gemm_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{operands and result must have the same rank, 2 or 3}}
  %0 = shardc.gemm %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// gemm C2
func.func @gemm_c2(%x: tensor<4x8xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{contracted, batch and result dimensions must agree}}
  %0 = shardc.gemm %x, %w : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----
// gemm C3
func.func @gemm_c3(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{bias must be 'tensor<2xf32>', got 'tensor<3xf32>'}}
  %0 = shardc.gemm %x, %w, %b : tensor<4x8xf32>, tensor<8x2xf32>, tensor<3xf32> -> tensor<4x2xf32>
  return
}

// -----
// gemm C4
func.func @gemm_c4(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %s: tensor<4x3xf32>) {
  // expected-error @+1 {{sum must have the type of the result, 'tensor<4x2xf32>', got 'tensor<4x3xf32>'}}
  %0 = shardc.gemm %x, %w plus %s : tensor<4x8xf32>, tensor<8x2xf32> plus tensor<4x3xf32> -> tensor<4x2xf32>
  return
}

// -----
// gemm C5
func.func @gemm_c5(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) {
  // expected-error @+1 {{operands must have the element type of the result, or bf16 for a result of f32, got 'tensor<4x8xf32>' and 'tensor<8x2xf32>' for 'tensor<4x2xbf16>'}}
  %0 = shardc.gemm %x, %w : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xbf16>
  return
}

// -----
// gemm C5
func.func @gemm_c5_bias(%x: tensor<4x8xbf16>, %w: tensor<8x2xbf16>, %b: tensor<2xbf16>) {
  // expected-error @+1 {{bias must be 'tensor<2xf32>', got 'tensor<2xbf16>'}}
  %0 = shardc.gemm %x, %w, %b : tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<2xbf16> -> tensor<4x2xf32>
  return
}

// -----
// gemm C6
func.func @gemm_c6_flag(%x: tensor<4x8xf32>, %g: tensor<4x2xf32>) {
  // expected-error @+1 {{needs a second result and either sums_lhs or sums_rhs, or none of them}}
  %0 = shardc.gemm %x, %g transpose_lhs sums_rhs : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  return
}

// -----
// gemm C6
func.func @gemm_c6_result(%x: tensor<4x8xf32>, %g: tensor<4x2xf32>) {
  // expected-error @+1 {{needs a second result and either sums_lhs or sums_rhs, or none of them}}
  %0:2 = shardc.gemm %x, %g transpose_lhs : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<8x2xf32>, tensor<2xf32>
  return
}

// -----
// gemm C6
func.func @gemm_c6_both(%x: tensor<4x8xf32>, %g: tensor<4x2xf32>) {
  // expected-error @+1 {{needs a second result and either sums_lhs or sums_rhs, or none of them}}
  %0:2 = shardc.gemm %x, %g transpose_lhs sums_lhs sums_rhs : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<8x2xf32>, tensor<2xf32>
  return
}

// -----
// gemm C6
func.func @gemm_c6_relu(%x: tensor<4x8xf32>, %g: tensor<4x2xf32>) {
  // expected-error @+1 {{with sums of columns must be of rank 2, without bias and relu}}
  %0:2 = shardc.gemm %x, %g transpose_lhs relu sums_rhs : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<8x2xf32>, tensor<2xf32>
  return
}

// -----
// gemm C6
func.func @gemm_c6_type(%x: tensor<4x8xf32>, %g: tensor<4x2xf32>) {
  // expected-error @+1 {{sums of columns must be 'tensor<8xf32>', got 'tensor<2xf32>'}}
  %0:2 = shardc.gemm %x, %g transpose_lhs sums_lhs : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<8x2xf32>, tensor<2xf32>
  return
}

// -----
// gemm C6
func.func @gemm_c6_rows(%x: tensor<8x4xf32>, %g: tensor<4x2xf32>) {
  // expected-error @+1 {{can sum the columns only of an operand whose rows are contracted}}
  %0:2 = shardc.gemm %x, %g sums_lhs : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>, tensor<8xf32>
  return
}

// -----
// accumulate C1
func.func @accumulate_c1(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{must run at least once, got 0}}
  %0 = shardc.accumulate 0 of (%x) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    shardc.yield %a : tensor<8x4xf32>
  }
  return
}

// -----
// accumulate C2
func.func @accumulate_c2(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{body argument 0 must be 1/3 of the rows of 'tensor<8x4xf32>', got 'tensor<3x4xf32>'}}
  %0 = shardc.accumulate 3 of (%x) : (tensor<8x4xf32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<3x4xf32>):
    shardc.yield %a : tensor<3x4xf32>
  }
  return
}

// -----
// accumulate C3
func.func @accumulate_c3(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{body argument 1 must have the type of its result, 'tensor<4x4xf32>', got 'tensor<4xf32>'}}
  %0 = shardc.accumulate 2 of (%x) : (tensor<8x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %s: tensor<4xf32>):
    shardc.yield %a : tensor<4x4xf32>
  }
  return
}

// -----
// accumulate C4
func.func @accumulate_c4(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{must yield the types of its results}}
  %0 = shardc.accumulate 2 of (%x) : (tensor<8x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    shardc.yield %a : tensor<4x4xf32>
  }
  return
}

// -----
// accumulate C5
func.func @accumulate_c5(%x: tensor<8x4xf32>) {
  %0 = shardc.accumulate 2 of (%x) : (tensor<8x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    // expected-error @+1 {{must not be inside of another loop}}
    %1 = shardc.accumulate 2 of (%a) : (tensor<4x4xf32>) -> tensor<2x4xf32> {
    ^bb0(%b: tensor<2x4xf32>):
      shardc.yield %b : tensor<2x4xf32>
    }
    shardc.yield %1 : tensor<2x4xf32>
  }
  return
}

// -----
// random_uniform C3
func.func @random_uniform_c3(%step: tensor<i32>) {
  // expected-error @+1 {{microbatch must be [count, rows], two positive numbers, got [4]}}
  %0 = shardc.random_uniform %step stream = 3 microbatch = [4] : tensor<i32> -> tensor<4x8xf32>
  return
}

// -----
// scatter_rows C1
func.func @scatter_rows_c1(%x: tensor<32xf32>) {
  %0 = shardc.accumulate 4 of (%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%a: tensor<8xf32>):
    // expected-error @+1 {{result must have 4 times the rows of 'tensor<8xf32>', got 'tensor<16xf32>'}}
    %1 = shardc.scatter_rows %a of 4 : tensor<8xf32> -> tensor<16xf32>
    shardc.yield %x : tensor<32xf32>
  }
  return
}

// -----
func.func @scatter_rows_c1_scalar(%x: tensor<32xf32>, %s: tensor<f32>) {
  %0 = shardc.accumulate 1 of (%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%a: tensor<32xf32>):
    // expected-error @+1 {{result must have 1 times the rows of 'tensor<f32>', got 'tensor<f32>'}}
    %1 = shardc.scatter_rows %s of 1 : tensor<f32> -> tensor<f32>
    shardc.yield %x : tensor<32xf32>
  }
  return
}

// -----
// scatter_rows C2
func.func @scatter_rows_c2(%x: tensor<32xf32>) {
  %0 = shardc.accumulate 4 of (%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%a: tensor<8xf32>):
    // expected-error @+1 {{must be in the body of a shardc.accumulate with 2 runs}}
    %1 = shardc.scatter_rows %a of 2 : tensor<8xf32> -> tensor<16xf32>
    shardc.yield %x : tensor<32xf32>
  }
  return
}

// -----
func.func @scatter_rows_c2_outside(%x: tensor<8xf32>) {
  // expected-error @+1 {{must be in the body of a shardc.accumulate with 4 runs}}
  %0 = shardc.scatter_rows %x of 4 : tensor<8xf32> -> tensor<32xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// collective_start C1
func.func @collective_start_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{body's arguments must have the types of the operands}}
  %h = shardc.collective_start(%x) : tensor<4xf32> {
  ^bb0(%a: tensor<5xf32>):
    %0 = shardc.all_reduce sum %a over @mesh["data"] : (tensor<5xf32>) -> tensor<5xf32>
    shardc.yield %0 : tensor<5xf32>
  }
  %1 = shardc.collective_wait %h : tensor<5xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// collective_start C2
func.func @collective_start_c2(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{body must be one collective, send or receive on all its arguments and a yield of all its results}}
  %h = shardc.collective_start(%x, %y) : tensor<4xf32>, tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = shardc.all_reduce sum %a over @mesh["data"] : (tensor<4xf32>) -> tensor<4xf32>
    shardc.yield %0 : tensor<4xf32>
  }
  %1 = shardc.collective_wait %h : tensor<4xf32>
  return
}

// -----
// collective_start C2, of something else
func.func @collective_start_c2_other(%x: tensor<4xf32>) {
  // expected-error @+1 {{body must be one collective}}
  %h = shardc.collective_start(%x) : tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = shardc.exp %a : tensor<4xf32>
    shardc.yield %0 : tensor<4xf32>
  }
  %1 = shardc.collective_wait %h : tensor<4xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// collective_start C3
func.func @collective_start_c3(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs one shardc.collective_wait for its handle}}
  %h = shardc.collective_start(%x) : tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = shardc.all_reduce sum %a over @mesh["data"] : (tensor<4xf32>) -> tensor<4xf32>
    shardc.yield %0 : tensor<4xf32>
  }
  %1 = shardc.collective_wait %h : tensor<4xf32>
  %2 = shardc.collective_wait %h : tensor<4xf32>
  return
}

// -----
// collective_wait C1
func.func @collective_wait_c1(%h: !shardc.handle) {
  // expected-error @+1 {{needs the handle of a shardc.collective_start}}
  %0 = shardc.collective_wait %h : tensor<4xf32>
  return
}

// -----
shardc.mesh @mesh <["data" = 4]>
// collective_wait C2
func.func @collective_wait_c2(%x: tensor<4xf32>) {
  %h = shardc.collective_start(%x) : tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = shardc.all_reduce sum %a over @mesh["data"] : (tensor<4xf32>) -> tensor<4xf32>
    shardc.yield %0 : tensor<4xf32>
  }
  // expected-error @+1 {{results must have the types of what was started, got ('tensor<5xf32>') for ('tensor<4xf32>')}}
  %1 = shardc.collective_wait %h : tensor<5xf32>
  return
}

// -----
// expect E1: a list
// expected-error @+1 {{`shardc.expect` must be a list of contracts such as [#shardc.max_collectives<0>]}}
module attributes {shardc.expect = #shardc.max_collectives<0>} {
}

// -----
// expect E1: of contracts
// expected-error @+1 {{`shardc.expect` has 3 : i64, expected #shardc.max_collectives, #shardc.max_bytes, #shardc.max_memory or #shardc.no_redundant_flops}}
module attributes {shardc.expect = [3]} {
}

// -----
// region E1
func.func @region_e1(%x: tensor<4xf32>) {
  // expected-error @+1 {{`shardc.region` must be a name such as "tower"}}
  %0 = shardc.exp %x {shardc.region = 1} : tensor<4xf32>
  return
}

// -----
// expect E2
// expected-error @+1 {{expected a limit of at least 0, found -1}}
module attributes {shardc.expect = [#shardc.max_collectives<-1>]} {
}

// -----
// expect E2: memory
// expected-error @+1 {{expected a limit of at least 0, found -5}}
module attributes {shardc.expect = [#shardc.max_memory<-5>]} {
}

// -----
// expect: kinds
// expected-error @+1 {{unknown 'allgather'}}
module attributes {shardc.expect = [#shardc.max_bytes<0 of allgather>]} {
}

// -----
// expect E3
// expected-error @+1 {{has #shardc.max_memory<64>, which belongs on the module: all programs share one arena}}
func.func @expect_e3(%x: tensor<4xf32>) attributes {shardc.expect = [#shardc.max_memory<64>]} {
  return
}

// -----
// expect E4
// expected-error @+1 {{has #shardc.no_redundant_flops, which belongs on a module, a function or an op: an argument is not computed}}
func.func @expect_e4(%x: tensor<4xf32> {shardc.expect = [#shardc.no_redundant_flops]}) {
  return
}

// -----
// expect E5
// expected-error @+1 {{has #shardc.max_collectives<0 over "dta">, but the mesh has no axis "dta"}}
module attributes {shardc.expect = [#shardc.max_collectives<0 over "dta">]} {
  shardc.mesh @mesh <["data" = 4]>
}

// -----
// plan P1
// expected-error @+1 {{`shardc.cost` must be a #shardc.cost attribute}}
func.func @plan_p1(%x: tensor<4xf32>) attributes {shardc.cost = 1.0} {
  return
}

// -----
// plan P1: objective
// expected-error @+1 {{unknown objective "speed", expected "time" or "bytes"}}
func.func @plan_p1_objective(%x: tensor<4xf32>) attributes {shardc.cost = #shardc.cost<objective = "speed", cost = 1.0, at_least = 1.0>} {
  return
}

// -----
// plan P1: numbers
// expected-error @+1 {{expected costs of at least 0, found -1.000000e+00 : f64}}
func.func @plan_p1_numbers(%x: tensor<4xf32>) attributes {shardc.cost = #shardc.cost<objective = "time", cost = 2.0, at_least = -1.0>} {
  return
}

// -----
// plan P1: memory
// expected-error @+1 {{expected within to be a number of bytes, an i64 above 0, found 0 : i64}}
func.func @plan_p1_memory(%x: tensor<4xf32>) attributes {shardc.cost = #shardc.cost<objective = "time", cost = 2.0, at_least = 1.0, within = 0 : i64>} {
  return
}

// -----
// plan P2: a list
// expected-error @+1 {{`shardc.starts` must be a list of #shardc.start attributes}}
func.func @plan_p2_list(%x: tensor<4xf32>) attributes {shardc.starts = ["data"]} {
  return
}

// -----
// plan P2: axes
shardc.mesh @mesh <["data" = 4, "model" = 2]>
// expected-error @+1 {{`shardc.starts` uses axis "dta", but mesh @mesh has axes "data", "model"}}
func.func @plan_p2_axes(%x: tensor<4xf32>) attributes {shardc.starts = [
    #shardc.start<forward, all_gather, ["data"]>, #shardc.start<backward, all_reduce, ["model", "dta"]>]} {
  return
}

// -----
// plan P2: a mesh
// expected-error @+1 {{`shardc.starts` uses axis "data", but the module has no `shardc.mesh`}}
func.func @plan_p2_mesh(%x: tensor<4xf32>) attributes {shardc.starts = [#shardc.start<forward, all_gather, ["data"]>]} {
  return
}

// -----
// plan P3: a dictionary
// expected-error @+1 {{`shardc.seconds_per_byte` must be a dictionary on the module}}
module attributes {shardc.seconds_per_byte = 1.0e-9} {
}

// -----
// plan P3: numbers
// expected-error @+1 {{`shardc.seconds_per_byte` of axis "data" must be a number of at least 0, found -1.000000e+00 : f64}}
module attributes {shardc.seconds_per_byte = {data = -1.0}} {
  shardc.mesh @mesh <["data" = 4]>
}

// -----
// plan P3: axes
// expected-error @+1 {{`shardc.seconds_per_byte` uses axis "model", but mesh @mesh has axes "data"}}
module attributes {shardc.seconds_per_byte = {data = 1.0e-9, model = 1.0e-9}} {
  shardc.mesh @mesh <["data" = 4]>
}

// -----
// Verified before the mesh: only those of its entries that are axes count.
// expected-error @+1 {{`shardc.seconds_per_byte` uses axis "data", but mesh @mesh has axes "model"}}
module attributes {shardc.seconds_per_byte = {data = 1.0e-9}} {
  "shardc.mesh"() <{axes = ["data", #shardc.axis<"model" = 2>], sym_name = "mesh"}> : () -> ()
}

// -----
// expected-error @+1 {{`shardc.seconds_per_byte` uses axis "data", but mesh @mesh has axes }}
module attributes {shardc.seconds_per_byte = {data = 1.0e-9}} {
  "shardc.mesh"() <{sym_name = "mesh"}> : () -> ()
}

// -----
// transfer C1
func.func @transfer_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: expected two stages, got 1 and 1}}
  %0 = shardc.transfer %x from 1 to 1 : tensor<4xf32>
  return
}

// -----
// transfer C1: negative
func.func @transfer_c1_negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: expected two stages, got -1 and 0}}
  %0 = shardc.transfer %x from -1 to 0 : tensor<4xf32>
  return
}

// -----
// transfer C2: without a pipeline
func.func @transfer_c2_none(%x: tensor<4xf32>) {
  // expected-error @+1 {{C2: the module has no `shardc.pipeline`}}
  %0 = shardc.transfer %x from 0 to 1 : tensor<4xf32>
  return
}

// -----

// transfer C2
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 2>} {
  func.func @transfer_c2(%x: tensor<4xf32>) {
    %0 = shardc.transfer %x from 0 to 3 : tensor<4xf32>
    // expected-error @+1 {{C2: there is no stage 4, the pipeline has stages 0 to 3}}
    %1 = shardc.transfer %0 from 4 to 0 : tensor<4xf32>
    return
  }
  shardc.mesh @mesh <["stage" = 2]>
}

// -----

// pipeline L1
// expected-error @+1 {{`shardc.pipeline` must be a #shardc.pipeline attribute on the module}}
module attributes {shardc.pipeline = "1f1b"} {
}

// -----
// pipeline L1: on the module
// expected-error @+1 {{`shardc.pipeline` must be a #shardc.pipeline attribute on the module}}
func.func @pipeline_l1() attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  return
}

// -----
// pipeline L2
func.func @pipeline_l2(%x: tensor<4xf32>) {
  // expected-error @+1 {{`shardc.stage` must be an i64 of at least 0, such as 1 : i64, got -1 : i64}}
  %0 = shardc.exp %x {shardc.stage = -1 : i64} : tensor<4xf32>
  return
}

// -----
// pipeline L2: type
func.func @pipeline_l2_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{`shardc.stage` must be an i64 of at least 0, such as 1 : i64, got "0"}}
  %0 = shardc.exp %x {shardc.stage = "0"} : tensor<4xf32>
  return
}

// -----
// pipeline L4
// expected-error @+1 {{`shardc.pipeline` uses axis "nope", but mesh @mesh has axes "stage", "data"}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "nope", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2, "data" = 2]>
}

// -----

// pipeline L5
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "interleaved", chunks = 2>} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @pipeline_l5(%x: tensor<4xf32>) {
    %0 = shardc.exp %x {shardc.stage = 3 : i64} : tensor<4xf32>
    // expected-error @+1 {{is on stage 4, but the pipeline has stages 0 to 3}}
    %1 = shardc.exp %0 {shardc.stage = 4 : i64} : tensor<4xf32>
    return
  }
}

// -----

// pipeline L5: without a pipeline
func.func @pipeline_l5_none(%x: tensor<4xf32>) {
  // expected-error @+1 {{has a `shardc.stage`, but the module has no `shardc.pipeline`}}
  %0 = shardc.exp %x {shardc.stage = 0 : i64} : tensor<4xf32>
  return
}

// -----

// pipeline L3
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b">} {
  shardc.mesh @mesh <["stage" = 2]>
  func.func @pipeline_l3(%x: tensor<4xf32>) {
    // expected-error @+1 {{sharding uses axis "stage", which is that of the stages of `shardc.pipeline`; nothing is sharded over it}}
    %0 = shardc.sharding_constraint %x sharding = <@mesh, [{"stage"}]> : tensor<4xf32>
    return
  }
}

// -----
// chunks
// expected-error @+1 {{expected 1 to 1048576 chunks, got 0}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 0>} {
}

// -----
// expected-error @+1 {{#shardc.pipeline needs the name of a mesh axis and a schedule}}
module attributes {shardc.pipeline = #shardc.pipeline<axis = "", schedule = "1f1b">} {
}

// -----
// send C1
func.func @send_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: expected a rank and a message of at least 0, got -1 and 0}}
  shardc.send %x to -1 message 0 : tensor<4xf32>
  return
}

// -----
// receive C1
func.func @receive_c1() {
  // expected-error @+1 {{C1: expected a rank and a message of at least 0, got 0 and -5}}
  %0 = shardc.receive from 0 message -5 : tensor<4xf32>
  return
}

// -----
// rows C1
func.func @rows_c1(%x: tensor<8x2xf32>) {
  // expected-error @+1 {{C1: expected a part of 4 parts, got 4}}
  %0 = shardc.rows %x 4 of 4 : tensor<8x2xf32> -> tensor<2x2xf32>
  return
}

// -----
// rows C1: no parts
func.func @rows_c1_none(%x: tensor<8x2xf32>) {
  // expected-error @+1 {{C1: expected a part of 0 parts, got 0}}
  %0 = shardc.rows %x 0 of 0 : tensor<8x2xf32> -> tensor<2x2xf32>
  return
}

// -----
// rows C2
func.func @rows_c2(%x: tensor<9x2xf32>) {
  // expected-error @+1 {{C2: 'tensor<2x2xf32>' is not one of 4 equal parts of 'tensor<9x2xf32>'}}
  %0 = shardc.rows %x 0 of 4 : tensor<9x2xf32> -> tensor<2x2xf32>
  return
}

// -----
// rows C2: another element type
func.func @rows_c2_type(%x: tensor<8x2xf32>) {
  // expected-error @+1 {{C2: 'tensor<2x2xbf16>' is not one of 4 equal parts of 'tensor<8x2xf32>'}}
  %0 = shardc.rows %x 0 of 4 : tensor<8x2xf32> -> tensor<2x2xbf16>
  return
}

// -----
// pipeline L6
func.func @pipeline_l6(%x: tensor<4xf32>) {
  // expected-error @+1 {{`shardc.task` must be a string, got 1 : i64}}
  %0 = shardc.exp %x {shardc.task = 1 : i64} : tensor<4xf32>
  return
}

// -----
// a constraint of a shard_map
func.func @manual(%x: tensor<4xf32>) {
  // expected-error @+1 {{`shardc.manual` must be a string on a `shardc.sharding_constraint`}}
  %0 = shardc.exp %x {shardc.manual = "psum"} : tensor<4xf32>
  return
}

// -----
// pipeline L6: a rank
// expected-error @+1 {{`shardc.pipeline_rank` must be an i64 of at least 0, got -1 : i64}}
func.func @pipeline_l6_rank() attributes {shardc.pipeline_rank = -1 : i64} {
  return
}

// -----
// pipeline L6: a number
// expected-error @+1 {{argument 0: `shardc.unpadded_rows` must be an i64 from 1 to the rows of the argument, got 5 : i64}}
func.func @unpadded_rows(%arg0: tensor<4x2xf32> {shardc.unpadded_rows = 5 : i64}) {
  return
}

// -----

// expected-error @+1 {{argument 0: `shardc.number` must be an i64 of at least 0, got "1"}}
func.func @pipeline_l6_number(%x: tensor<4xf32> {shardc.number = "1"}) {
  return
}

// -----
// Digits of the bits of a float need its type: alone they are an integer.
module attributes {
    // expected-error @+1 {{expected a decimal number, or the bits of a float and its type}}
    shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0x7FC00000>>} {
}

// -----
// expected-error @+1 {{expected a decimal number, or the bits of a float and its type}}
func.func private @bits_of_first_values(tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(0x7FC00000)>})

// -----
// expected-error @+1 {{expected a number}}
func.func private @flag_of_first_values(tensor<4xf32> {shardc.role = #shardc.parameter<"w", constant(true)>})

// -----
// expected-error @+1 {{argument 0: `shardc.role` has a name with control characters: "w\00x"}}
func.func private @name_with_nul(tensor<4xf32> {shardc.role = #shardc.parameter<"w\00x", constant(0)>})

// -----
// expected-error @+1 {{argument 0: `shardc.role` has a name with control characters: "a\0Ab"}}
func.func private @name_of_two_lines(tensor<4xf32> {shardc.role = #shardc.input<"a\0Ab">})
