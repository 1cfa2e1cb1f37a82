// RUN: shardc-opt %s --split-input-file --verify-diagnostics --shardc-propagate -o /dev/null

// expected-remark @+1 {{axis "t" shards nothing}}
shardc.mesh @mesh <["d" = 2, "t" = 2]>
func.func @unused(%x: tensor<8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
  %0 = shardc.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shardc.mesh @mesh <["t" = 2]>
func.func @sliced(
    %x: tensor<8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"t"}]>},
    // expected-remark @+1 {{w is stored replicated over "t" but used sharded over it}}
    %w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = shardc.mul %x, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shardc.mesh @mesh <["t" = 2]>
func.func @composite(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has no sharding rule; composites are decomposed before propagation}}
  %0 = shardc.silu %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
