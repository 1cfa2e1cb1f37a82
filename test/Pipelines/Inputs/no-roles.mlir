module {
  shardc.mesh @mesh <["d" = 2]>
  func.func @f(%x: tensor<8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
    %0 = shardc.exp %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
