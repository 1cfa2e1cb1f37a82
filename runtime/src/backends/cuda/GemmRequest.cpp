//===- GemmRequest.cpp - A request to the library for a GEMM --------------===//

#include "backends/cuda/Gemm.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// The largest power of two, 256 at most, that divides all of `addresses`.
static uint32_t alignmentOf(absl::Span<const uint64_t> addresses) {
  uint64_t bits = 256;
  for (uint64_t address : addresses)
    bits |= address;
  return static_cast<uint32_t>(bits & -bits);
}

GemmRequest shardc::rt::cuda::gemmRequest(const ProgramSpec &program,
                                          uint32_t number) {
  auto &gemm = std::get<GemmCommand>(program.commands[number].operation);
  // Only buffers in loops have strides.
  std::vector<uint64_t> addresses;
  for (int64_t buffer :
       {int64_t(gemm.a), int64_t(gemm.b), int64_t(gemm.c), vectorOf(gemm)})
    if (buffer >= 0) {
      addresses.push_back(program.buffers[buffer].offset);
      addresses.push_back(program.buffers[buffer].stride);
    }
  return {number, &gemm, program.typesOf(gemm), alignmentOf(addresses)};
}

std::vector<GemmRequest>
shardc::rt::cuda::gemmRequests(const ProgramSpec &program) {
  std::vector<GemmRequest> requests;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    auto *gemm = std::get_if<GemmCommand>(&program.commands[i].operation);
    if (gemm && gemm->m > 0 && gemm->n > 0 && gemm->k > 0 && gemm->batch > 0)
      requests.push_back(gemmRequest(program, i));
  }
  return requests;
}

cuda::GemmOperands shardc::rt::cuda::placesOf(
    const GemmCommand &gemm,
    absl::FunctionRef<CUdeviceptr(uint32_t buffer)> address) {
  GemmOperands places{address(gemm.a), address(gemm.b), address(gemm.c)};
  if (vectorOf(gemm) >= 0)
    places.vector = address(vectorOf(gemm));
  return places;
}

static absl::string_view nameOfSums(const GemmCommand &of) {
  if (of.columnSums < 0)
    return "";
  return of.columnSumsOf == Summed::A ? " sums of a" : " sums of b";
}

std::string GemmRequest::name() const {
  const GemmCommand &of = *command;
  return absl::StrCat(
      "m=", of.m, " n=", of.n, " k=", of.k, " batch=", of.batch,
      of.transposeA ? " a'" : " a", of.transposeB ? " b'" : " b",
      of.accumulate ? " accumulate" : "", of.bias >= 0 ? " bias" : "",
      nameOfSums(of), of.activation == Activation::Relu ? " relu" : "", " ",
      std::string(toString(types.factors)), " to ",
      std::string(toString(types.result)), " precision ",
      static_cast<int>(of.precision), " aligned ", alignment);
}
