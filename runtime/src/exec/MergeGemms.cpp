//===- MergeGemms.cpp - One GEMM instead of many --------------------------===//

#include "exec/MergeGemms.h"

#include <algorithm>
#include <optional>

using namespace shardc::rt;

/// How matrices of `rows` rows of `columns` lie as the pieces of one whose
/// `distance` in bytes is the same; nullopt: it has no such pieces.
static std::optional<MatrixPieces> joinRows(int64_t rows, int64_t columns,
                                            DType dtype, int64_t distance,
                                            bool mayBeApart) {
  const int64_t width = byteSize(dtype), bytes = rows * columns * width;
  if (distance == bytes)
    return MatrixPieces();
  if (!mayBeApart || dtype != DType::F32 || distance < bytes ||
      distance % width != 0)
    return std::nullopt;
  return MatrixPieces{rows, /*areRows=*/true, columns, distance / width};
}

/// Merges all terms of every sum into one.
static void mergeTerms(GemmTypes types, MergedGemms &gemms, MayBeApart may) {
  GemmCommand &gemm = gemms.command;
  const auto &first = gemms.calls[0].terms;
  const int64_t count = first.size();
  // Rows along k follow one another if they are whole rows of the factor.
  if (count == 1 || (!gemm.transposeA && gemm.m != 1) ||
      (gemm.transposeB && gemm.n != 1))
    return;
  const int64_t distanceA = first[1].a - first[0].a;
  const int64_t distanceB = first[1].b - first[0].b;
  for (const GemmPointers &one : gemms.calls)
    for (int64_t i = 0; i < count; ++i)
      if (one.terms[i].a != one.terms[0].a + i * distanceA ||
          one.terms[i].b != one.terms[0].b + i * distanceB)
        return;
  const bool both = may.a && may.b;
  const auto a = joinRows(gemm.k, gemm.m, types.factors, distanceA,
                          both && gemm.transposeA);
  const auto b = joinRows(gemm.k, gemm.n, types.factors, distanceB,
                          both && !gemm.transposeB);
  if (!a || !b)
    return;
  gemms.pieces.a = *a;
  gemms.pieces.b = *b;
  for (GemmPointers &one : gemms.calls)
    one.terms.resize(1);
  gemm.k *= count;
}

/// Whether `one` is as `first` with rows `rows` of c further down, and those of
/// a at a distance.
static bool continues(const MergedGemms &gemms, GemmTypes types,
                      const GemmPointers &first, const GemmPointers &one,
                      int64_t rows, int64_t distance) {
  if (one.c != first.c + rows * gemms.command.n * byteSize(types.result) ||
      one.bias != first.bias)
    return false;
  for (size_t i = 0; i < first.terms.size(); ++i)
    if (one.terms[i].a != first.terms[i].a + distance ||
        one.terms[i].b != first.terms[i].b)
      return false;
  return true;
}

/// Merges neighbours in groups of equal size, as large as possible.
static void mergeRows(GemmTypes types, MergedGemms &gemms, MayBeApart may) {
  GemmCommand &gemm = gemms.command;
  std::vector<GemmPointers> &calls = gemms.calls;
  const size_t count = calls.size();
  if (count == 1 || (gemm.transposeA && gemm.k != 1))
    return;
  std::sort(
      calls.begin(), calls.end(),
      [](const GemmPointers &x, const GemmPointers &y) { return x.c < y.c; });
  const int64_t distance = calls[1].terms[0].a - calls[0].terms[0].a;
  const auto a = joinRows(gemm.m, gemm.k, types.factors, distance,
                          may.a && !gemm.transposeA);
  if (!a)
    return;
  auto fits = [&](size_t group) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t place = i % group;
      if (!continues(gemms, types, calls[i - place], calls[i], place * gemm.m,
                     place * distance))
        return false;
    }
    return true;
  };
  size_t group = count;
  while (count % group != 0 || !fits(group))
    --group;
  if (group == 1)
    return;
  gemms.pieces.a = *a;
  for (size_t i = 0; i < count / group; ++i)
    calls[i] = calls[i * group];
  calls.resize(count / group);
  gemm.m *= group;
}

void shardc::rt::mergeGemms(GemmTypes types, bool inOrder, MergedGemms &gemms,
                            MayBeApart may) {
  const GemmCommand &gemm = gemms.command;
  if (gemm.batch != 1 || gemm.m == 0 || gemm.n == 0 || gemm.k == 0)
    return;
  if (!inOrder)
    mergeTerms(types, gemms, may);
  mergeRows(types, gemms, may);
}

MergedGemms shardc::rt::bindGemms(const ProgramBuffers &buffers,
                                  uint32_t command, MayBeApart may) {
  const ProgramSpec &program = buffers.program();
  const ArenaLayout &layout = buffers.devices().layout;
  MergedGemms gemms;
  gemms.command = std::get<GemmCommand>(program.commands[command].operation);
  const GemmCommand &gemm = gemms.command;
  std::vector<int64_t> devices = layout.devicesFor(
      buffers.number, operandsOf(program, program.commands[command]));
  std::vector<std::vector<int64_t>> terms =
      layout.termsOf(buffers.number, command, devices);
  for (size_t i = 0; i < devices.size(); ++i) {
    GemmPointers &one = gemms.calls.emplace_back();
    for (int64_t device : terms[i])
      one.terms.push_back(
          {buffers.address(device, gemm.a), buffers.address(device, gemm.b)});
    one.c = buffers.address(devices[i], gemm.c);
    one.bias =
        gemm.bias >= 0 ? buffers.address(devices[i], gemm.bias) : nullptr;
  }
  mergeGemms(program.typesOf(gemm), layout.addsInOrder(), gemms, may);
  return gemms;
}
