// RUN: shardc-opt %s --verify-diagnostics --shardc-insert-reshards --shardc-partition -o /dev/null

// Random numbers are of rows that must be known.
module @strided {
  shardc.mesh @mesh <["a" = 2, "b" = 2]>
  func.func @train_step(
      %step: tensor<i32> {shardc.role = #shardc.state<"step", constant(0.0)>, shardc.sharding = #shardc.sharding<@mesh, []>},
      %x: tensor<16x8xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"a", "b"}, {}]>})
      -> (tensor<f32> {shardc.result = "loss", shardc.sharding = #shardc.sharding<@mesh, []>}) {
    %0 = shardc.accumulate 2 of (%x) {shardc.part = #shardc.part<backward>, shardc.strategy = #shardc.strategy<[{"*2", "b"}, {}]>} : (tensor<16x8xf32>) -> tensor<f32> {
    ^bb0(%p: tensor<8x8xf32>):
      // expected-error @+1 {{needs the rows of its microbatch, of which strided shards are no block}}
      %1 = shardc.random_uniform %step stream = 0 microbatch = [2, 8] {shardc.strategy = #shardc.strategy<[{}, {}]>} : tensor<i32> -> tensor<8x8xf32>
      %2 = shardc.mul %p, %1 {shardc.strategy = #shardc.strategy<[{"*2", "b"}, {}]>} : tensor<8x8xf32>
      %3 = shardc.reduce sum %2 dims = [0, 1] {shardc.strategy = #shardc.strategy<[{"*2", "b"}, {}]>} : tensor<8x8xf32> -> tensor<f32>
      shardc.yield %3 : tensor<f32>
    }
    return %0 : tensor<f32>
  }
}
