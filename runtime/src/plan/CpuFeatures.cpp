//===- CpuFeatures.cpp - What this CPU can run ----------------------------===//

#include "plan/CpuFeatures.h"

#include <cpuid.h>

using namespace shardc::rt;

namespace {
/// One bit of a CPUID leaf. `vector`: needs the OS to save the AVX registers.
struct Feature {
  absl::string_view name;
  unsigned leaf;
  int reg; // 0 eax, 1 ebx, 2 ecx, 3 edx
  int bit;
  bool vector;
};
} // namespace

static constexpr Feature features[] = {
    {"sse4_2", 1, 2, 20, false},  {"popcnt", 1, 2, 23, false},
    {"fma", 1, 2, 12, true},      {"movbe", 1, 2, 22, false},
    {"avx", 1, 2, 28, true},      {"f16c", 1, 2, 29, true},
    {"bmi1", 7, 1, 3, false},     {"avx2", 7, 1, 5, true},
    {"bmi2", 7, 1, 8, false},     {"avx512f", 7, 1, 16, true},
    {"avx512dq", 7, 1, 17, true}, {"avx512bw", 7, 1, 30, true},
    {"avx512vl", 7, 1, 31, true}, {"abm", 0x80000001, 2, 5, false},
};

/// Whether the operating system saves XMM and YMM state (XCR0 bits 1 and 2).
static bool osSavesVectors() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27)))
    return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 6) == 6;
}

bool shardc::rt::cpuHasFeature(absl::string_view name) {
  for (const Feature &feature : features) {
    if (feature.name != name)
      continue;
    unsigned registers[4];
    if (!__get_cpuid_count(feature.leaf, 0, &registers[0], &registers[1],
                           &registers[2], &registers[3]))
      return false;
    return (registers[feature.reg] >> feature.bit & 1) &&
           (!feature.vector || osSavesVectors());
  }
  return false;
}
