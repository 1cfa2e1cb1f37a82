// RUN: shardc-opt %s --shardc-differentiate --mlir-print-local-scope | FileCheck %s
// RUN: shardc-opt %s --shardc-differentiate --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

module attributes {shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.5>>} {
  shardc.mesh @mesh <["data" = 4]>

  // CHECK-NOT: func @loss
  // CHECK-LABEL: func @train_step
  // CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}
  // CHECK-SAME: %[[B1:[a-z0-9]+]]: tensor<64xf32>
  // CHECK-SAME: %[[W2:[a-z0-9]+]]: tensor<64x8xf32>
  // CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}
  // CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<32x8xf32> {shardc.role = #shardc.label<"y">}
  // CHECK-SAME: -> (tensor<16x64xf32> {shardc.result = "w1", shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}
  // CHECK-SAME: tensor<64xf32> {shardc.result = "b1"}, tensor<64x8xf32> {shardc.result = "w2"}, tensor<f32> {shardc.result = "loss"})
  func.func @loss(
      %x: tensor<32x16xf32> {shardc.role = #shardc.input<"x">, shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %y: tensor<32x8xf32> {shardc.role = #shardc.label<"y">},
      %w1: tensor<16x64xf32> {shardc.role = #shardc.parameter<"w1", he_normal>,
          shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
      %b1: tensor<64xf32> {shardc.role = #shardc.parameter<"b1", constant(0.0)>},
      %w2: tensor<64x8xf32> {shardc.role = #shardc.parameter<"w2", he_normal>}) -> tensor<f32> {
    // The forward part.
    // CHECK: %[[Z1:.*]] = shardc.dot_general %[[X]], %[[W1]] contracting = [1] x [0] {shardc.part = #shardc.part<forward>}
    // CHECK: %[[H:.*]] = shardc.add %[[Z1]], %
    // CHECK: %[[A:.*]] = shardc.max %[[H]], %
    // CHECK: %[[O:.*]] = shardc.dot_general %[[A]], %[[W2]]
    // CHECK: %[[D:.*]] = shardc.sub %[[O]], %[[Y]]
    // CHECK: %[[S:.*]] = shardc.mul %[[D]], %[[D]]
    // CHECK: %[[SUM:.*]] = shardc.reduce sum %[[S]] dims = [0, 1] {{.*}} -> tensor<f32>
    // CHECK: %[[N:.*]] = shardc.constant {{.*}} dense<2.560000e+02> : tensor<f32>
    // CHECK: %[[LOSS:.*]] = shardc.div %[[SUM]], %[[N]]

    // The backward part, without a gradient of x and without a transpose. That
    // of relu looks at the result, so that nothing else is kept.
    // CHECK: %[[SCALE:.*]] = shardc.constant {{.*}} dense<7.812500e-03>
    // CHECK: %[[DO:.*]] = shardc.mul %[[D]], %[[SCALE]] {shardc.part = #shardc.part<backward>}
    // CHECK: %[[DA:.*]] = shardc.dot_general %[[DO]], %[[W2]] contracting = [1] x [1]
    // CHECK: %[[DW2:.*]] = shardc.dot_general %[[A]], %[[DO]] contracting = [0] x [0]
    // CHECK: %[[P:.*]] = shardc.compare gt %[[A]], %
    // CHECK: %[[DH:.*]] = shardc.select %[[P]], %[[DA]], %
    // CHECK: %[[DB1:.*]] = shardc.reduce sum %[[DH]] dims = [0]
    // CHECK: %[[DW1:.*]] = shardc.dot_general %[[X]], %[[DH]] contracting = [0] x [0]

    // The update.
    // CHECK: %[[LR:.*]] = shardc.constant {{.*}} dense<5.000000e-01> : tensor<16x64xf32>
    // CHECK: %[[U1:.*]] = shardc.mul %[[DW1]], %[[LR]] {shardc.part = #shardc.part<update>}
    // CHECK: %[[NW1:.*]] = shardc.sub %[[W1]], %[[U1]]
    // CHECK: %[[UB:.*]] = shardc.mul %[[DB1]], %
    // CHECK: %[[NB1:.*]] = shardc.sub %[[B1]], %[[UB]]
    // CHECK: %[[U2:.*]] = shardc.mul %[[DW2]], %
    // CHECK: %[[NW2:.*]] = shardc.sub %[[W2]], %[[U2]]
    // CHECK-NOT: transpose
    // CHECK: return %[[NW1]], %[[NB1]], %[[NW2]], %[[LOSS]]

    // LOC: shardc.dot_general {{.*}}part<forward>{{.*}} loc(fused<#shardc.source<op = "linear">>["{{.*}}differentiate.mlir":[[@LINE+2]]:
    // LOC: shardc.reduce sum {{.*}}part<backward>{{.*}} -> tensor<64xf32> loc(fused<#shardc.source<op = "linear">>["{{.*}}differentiate.mlir":[[@LINE+1]]:
    %0 = shardc.linear %x, %w1, %b1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    %1 = shardc.relu %0 : tensor<32x64xf32>
    %2 = shardc.linear %1, %w2 : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %2, %y : tensor<32x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }

  // CHECK-LABEL: func @evaluate
  // CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x64xf32>
  // CHECK-SAME: -> (tensor<f32> {shardc.result = "loss"}, tensor<32xf32> {shardc.result = "per_example_loss"})
  // CHECK: %[[S:.*]] = shardc.mul
  // CHECK: shardc.reduce sum %[[S]] dims = [0, 1]
  // CHECK: %[[ROWS:.*]] = shardc.reduce sum %[[S]] dims = [1] {{.*}} -> tensor<32xf32>
  // CHECK: %[[EIGHT:.*]] = shardc.constant {{.*}} dense<8.000000e+00>
  // CHECK: %[[MEAN:.*]] = shardc.div %[[ROWS]], %[[EIGHT]]
  // CHECK: return %{{.*}}, %[[MEAN]]
}
