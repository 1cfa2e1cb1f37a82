// The pass alone, on a local program whose locations say nothing: causes then
// explain. Contracts that hold leave no trace. test/Pipelines/explain has the
// rest.

// RUN: shardc-opt %s --split-input-file --shardc-check-expectations --verify-diagnostics -o /dev/null
// RUN: shardc-opt %s --split-input-file --shardc-check-expectations=after=memory -o /dev/null
// RUN: not shardc-opt %s --split-input-file --shardc-check-expectations=after=plan -o /dev/null 2>&1 | FileCheck %s
// CHECK: shardc-check-expectations: expected after=propagate, after=collectives or after=memory, found 'plan'

module attributes {shardc.expect = [#shardc.max_collectives<1>, #shardc.max_bytes<768 of all_gather over "a" in forward>]} {
  shardc.mesh @mesh <["a" = 4]>
  func.func @gather(%x: tensor<4x16xf32>) -> tensor<16x16xf32> {
    %0 = shardc.all_gather %x over @mesh["a"] dims = [0] {shardc.cause = "x is wanted whole", shardc.part = #shardc.part<forward>} : (tensor<4x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
}

// -----

// Another kind, axis, part or region is not counted; a contract on a function
// is about it alone.
module attributes {
    shardc.expect = [#shardc.max_collectives<0 of all_reduce>, #shardc.max_collectives<0 over "b">,
                     #shardc.max_collectives<0 in backward>, #shardc.max_collectives<0 region "tower">]} {
  shardc.mesh @mesh <["a" = 4, "b" = 2]>
  func.func @gather(%x: tensor<4x16xf32>) -> tensor<16x16xf32> {
    %0 = shardc.all_gather %x over @mesh["a"] dims = [0] {shardc.cause = "x is wanted whole", shardc.part = #shardc.part<forward>} : (tensor<4x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
  // expected-error @+3 {{contract broken: @other: found 768, expected at most 767 bytes on the wire of all_gather over "a" in forward}}
  // expected-note @+2 {{says what would remove them}}
  // expected-error @+1 {{contract broken: @other: found 1, expected at most 0 collectives}}
  func.func @other(%x: tensor<4x16xf32>) -> tensor<16x16xf32> attributes {
      shardc.expect = [#shardc.max_bytes<767 of all_gather over "a" in forward>, #shardc.max_collectives<0>]} {
    // expected-note @+1 {{all_gather over "a" in forward sends 768 bytes: x is wanted whole}}
    %0 = shardc.all_gather %x over @mesh["a"] dims = [0] {shardc.cause = "x is wanted whole", shardc.part = #shardc.part<forward>} : (tensor<4x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
}
