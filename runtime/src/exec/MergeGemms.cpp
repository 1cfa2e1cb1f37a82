//===- MergeGemms.cpp - One GEMM instead of many --------------------------===//

#include "exec/MergeGemms.h"

#include <algorithm>

using namespace shardc::rt;

/// Merges all terms of every sum into one.
static void mergeTerms(GemmCommand &gemm, GemmTypes types,
                       std::vector<GemmPointers> &gemms) {
  int64_t count = gemms[0].terms.size();
  // Rows along k follow one another if they are whole rows of the factor.
  if (count == 1 || (!gemm.transposeA && gemm.m != 1) ||
      (gemm.transposeB && gemm.n != 1))
    return;
  int64_t width = byteSize(types.factors);
  int64_t aBytes = gemm.m * gemm.k * width, bBytes = gemm.k * gemm.n * width;
  for (const GemmPointers &one : gemms)
    for (int64_t i = 0; i < count; ++i)
      if (one.terms[i].a != one.terms[0].a + i * aBytes ||
          one.terms[i].b != one.terms[0].b + i * bBytes)
        return;
  for (GemmPointers &one : gemms)
    one.terms.resize(1);
  gemm.k *= count;
}

/// Whether `one` is as `first` with rows `rows` further down.
static bool continues(const GemmCommand &gemm, GemmTypes types,
                      const GemmPointers &first, const GemmPointers &one,
                      int64_t rows) {
  if (one.c != first.c + rows * gemm.n * byteSize(types.result) ||
      one.bias != first.bias)
    return false;
  for (size_t i = 0; i < first.terms.size(); ++i)
    if (one.terms[i].a !=
            first.terms[i].a + rows * gemm.k * byteSize(types.factors) ||
        one.terms[i].b != first.terms[i].b)
      return false;
  return true;
}

/// Merges neighbours in groups of equal size, as large as possible.
static void mergeRows(GemmCommand &gemm, GemmTypes types,
                      std::vector<GemmPointers> &gemms) {
  if (gemm.transposeA && gemm.k != 1)
    return;
  std::sort(
      gemms.begin(), gemms.end(),
      [](const GemmPointers &x, const GemmPointers &y) { return x.c < y.c; });
  size_t count = gemms.size();
  auto fits = [&](size_t group) {
    for (size_t i = 0; i < count; ++i) {
      size_t first = i / group * group;
      if (!continues(gemm, types, gemms[first], gemms[i], (i - first) * gemm.m))
        return false;
    }
    return true;
  };
  size_t group = count;
  while (count % group != 0 || !fits(group))
    --group;
  for (size_t i = 0; i < count / group; ++i)
    gemms[i] = gemms[i * group];
  gemms.resize(count / group);
  gemm.m *= group;
}

void shardc::rt::mergeGemms(GemmCommand &gemm, GemmTypes types, bool inOrder,
                            std::vector<GemmPointers> &gemms) {
  if (gemm.batch != 1 || gemm.m == 0 || gemm.n == 0 || gemm.k == 0)
    return;
  if (!inOrder)
    mergeTerms(gemm, types, gemms);
  mergeRows(gemm, types, gemms);
}

std::vector<GemmPointers> shardc::rt::bindGemms(const ProgramBuffers &buffers,
                                                uint32_t command,
                                                GemmCommand &gemm) {
  const ProgramSpec &program = buffers.program();
  const ArenaLayout &layout = buffers.devices().layout;
  std::vector<int64_t> devices = layout.devicesFor(
      buffers.number, operandsOf(program, program.commands[command]));
  std::vector<std::vector<int64_t>> terms =
      layout.termsOf(buffers.number, command, devices);
  std::vector<GemmPointers> gemms;
  for (size_t i = 0; i < devices.size(); ++i) {
    GemmPointers &one = gemms.emplace_back();
    for (int64_t device : terms[i])
      one.terms.push_back(
          {buffers.address(device, gemm.a), buffers.address(device, gemm.b)});
    one.c = buffers.address(devices[i], gemm.c);
    one.bias =
        gemm.bias >= 0 ? buffers.address(devices[i], gemm.bias) : nullptr;
  }
  mergeGemms(gemm, program.typesOf(gemm), layout.addsInOrder(), gemms);
  return gemms;
}
