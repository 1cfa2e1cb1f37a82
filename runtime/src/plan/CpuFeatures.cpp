//===- CpuFeatures.cpp - The features of this CPU -------------------------===//

#include "plan/CpuFeatures.h"

#include <cpuid.h>

using namespace shardc::rt;

namespace {
/// The registers that the operating system must save, as bits of XCR0: SSE and
/// AVX; for AVX-512 also masks and the rest of 32 registers.
constexpr unsigned none = 0, avx = 0x6, avx512 = 0xe6;

/// One bit of a CPUID leaf.
struct Feature {
  absl::string_view name;
  unsigned leaf;
  int reg; // 0 eax, 1 ebx, 2 ecx, 3 edx
  int bit;
  unsigned saved;
};
} // namespace

static constexpr Feature features[] = {
    {"sse4_2", 1, 2, 20, none},      {"popcnt", 1, 2, 23, none},
    {"fma", 1, 2, 12, avx},          {"movbe", 1, 2, 22, none},
    {"avx", 1, 2, 28, avx},          {"f16c", 1, 2, 29, avx},
    {"bmi1", 7, 1, 3, none},         {"avx2", 7, 1, 5, avx},
    {"bmi2", 7, 1, 8, none},         {"avx512f", 7, 1, 16, avx512},
    {"avx512dq", 7, 1, 17, avx512},  {"avx512cd", 7, 1, 28, avx512},
    {"avx512bw", 7, 1, 30, avx512},  {"avx512vl", 7, 1, 31, avx512},
    {"abm", 0x80000001, 2, 5, none},
};

/// Whether the operating system saves all registers of these bits of XCR0.
static bool osSaves(unsigned bits) {
  if (bits == none)
    return true;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27)))
    return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & bits) == bits;
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
           osSaves(feature.saved);
  }
  return false;
}
