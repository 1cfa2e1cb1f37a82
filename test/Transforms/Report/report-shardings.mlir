// RUN: shardc-opt %s --shardc-report-shardings -o /dev/null | FileCheck %s
// RUN: shardc-opt %s --shardc-report-shardings=json -o /dev/null | FileCheck %s --check-prefix=JSON

// CHECK-LABEL: @train_step
// CHECK: w parameter f32 [8, 6] [{"a"}, {"b"}] [4, 2] 32
// CHECK: r parameter f32 [3] [{}] [3] 12
// CHECK: c parameter f32 [2, 5, 4] [{"a"}, {"b"}, {}] [1, 2, 4] 32
// CHECK: w [8, 6] [{"a"}, {"b"}]
// CHECK-NEXT: 0:2 2:4 4:6
// CHECK-NEXT: +-----+-----+-----+
// CHECK-NEXT: 0:4 | 0   | 1   | 2   |
// CHECK-NEXT: +-----+-----+-----+
// CHECK-NEXT: 4:8 | 3   | 4   | 5   |
// CHECK-NEXT: +-----+-----+-----+
// CHECK: c [2, 5, 4]
// CHECK-NEXT: [0:1, :, :]
// CHECK: 0:2 | 0
// CHECK: 4:5 | 2
// CHECK: [1:2, :, :]
// CHECK: 0:2 | 3

// JSON: "train_step":[{"bytes_per_device":32,"global_shape":[8,6],"local_shape":[4,2],"name":"w","role":"parameter","sharding":"[{\"a\"}, {\"b\"}]","type":"f32"}
shardc.mesh @mesh <["a" = 2, "b" = 3]>
func.func @train_step(
    %w: tensor<8x6xf32> {shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {"b"}]>},
    %r: tensor<3xf32> {shardc.role = #shardc.parameter<"r", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{}]>},
    %c: tensor<2x5x4xf32> {shardc.role = #shardc.parameter<"c", he_normal>, shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {"b"}, {}]>}) {
  return
}
