//===- PrepareProducts.cpp - GEMMs bound to their arenas ------------------===//
//
// A GEMM is one step, and one each for what a GPU's library does with it at
// once: a mask that is written or applied, sums of columns.
//
//===----------------------------------------------------------------------===//

#include "exec/PreparedProgram.h"

using namespace shardc::rt;

/// The GEMM, with a bias and a relu, but without anything behind it.
absl::Status PreparedProgram::addProduct(Step &step, uint32_t command,
                                         const GemmCommand &gemm) {
  step.kind = Step::Kind::Gemm;
  std::vector<int64_t> of =
      devices.layout.devicesFor(number, operandsOf(program->commands[command]));
  std::vector<std::vector<int64_t>> terms =
      devices.layout.termsOf(number, command, of);
  std::vector<GemmPointers> gemms;
  for (size_t i = 0; i < of.size(); ++i) {
    GemmPointers &one = gemms.emplace_back();
    for (int64_t device : terms[i])
      one.terms.push_back({address(device, gemm.a), address(device, gemm.b)});
    one.c = address(of[i], gemm.c);
    one.bias = gemm.bias >= 0 ? address(of[i], gemm.bias) : nullptr;
  }
  GemmTypes types = program->typesOf(gemm);
  GemmCommand merged = gemm;
  if (gemm.activation == Activation::ReluGradient)
    merged.activation = Activation::None;
  mergeGemms(merged, types, gemms);

  absl::StatusOr<std::unique_ptr<PreparedGemm>> prepared =
      PreparedGemm::prepare(merged, types);
  if (!prepared.ok())
    return prepared.status();
  step.gemm = *std::move(prepared);
  step.tiles = step.gemm->numTiles();
  step.hasBias = gemm.bias >= 0;
  std::vector<uint32_t> buffers;
  for (size_t i = 0; i < gemms[0].terms.size(); ++i)
    buffers.insert(buffers.end(), {gemm.a, gemm.b});
  if (gemms[0].terms.size() > 1) {
    GemmCommand added = merged;
    added.accumulate = true;
    if (prepared = PreparedGemm::prepare(added, types); !prepared.ok())
      return prepared.status();
    step.addTerm = *std::move(prepared);
  }
  buffers.push_back(gemm.c);
  if (step.hasBias)
    buffers.push_back(gemm.bias);
  step.operands = buffers.size();
  setStrides(step, buffers);

  uint64_t factor = merged.batch * byteSize(types.factors);
  for (size_t i = 0; i < gemms[0].terms.size(); ++i) {
    step.touched.push_back({merged.m * merged.k * factor, false});
    step.touched.push_back({merged.k * merged.n * factor, false});
  }
  uint64_t result = merged.batch * byteSize(types.result);
  step.touched.push_back({merged.m * merged.n * result, true});
  if (step.hasBias)
    step.touched.push_back({program->buffers[gemm.bias].bytes, false});
  for (const GemmPointers &one : gemms) {
    step.calls.push_back({nullptr, step.table.size()});
    for (const GemmPointers::Factors &term : one.terms)
      step.table.insert(step.table.end(), {term.a, term.b});
    step.table.push_back(one.c);
    if (step.hasBias)
      step.table.push_back(one.bias);
  }
  return absl::OkStatus();
}

/// The step behind a GEMM with a relu, which notes where it is positive, or
/// with the gradient of one, which keeps it where that was.
void PreparedProgram::addMask(const GemmCommand &gemm) {
  Step &step = steps.emplace_back();
  bool isWritten = gemm.activation == Activation::Relu;
  step.kind = isWritten ? Step::Kind::WriteMask : Step::Kind::ApplyMask;
  step.mask.emplace(gemm, program->typesOf(gemm).result);
  step.tiles = step.mask->numTiles();
  uint32_t mask = gemm.mask;
  if (isWritten)
    bind(step, {{gemm.c, false}, {mask, true}}, {gemm.c, mask});
  else
    bind(step, {{mask, false}, {gemm.c, true}}, {mask, gemm.c});
}

/// The step behind a GEMM that adds up the columns of one of its matrices.
void PreparedProgram::addColumnSums(const GemmCommand &gemm) {
  Step &step = steps.emplace_back();
  step.kind = Step::Kind::ColumnSums;
  step.columnSums.emplace(gemm, program->typesOf(gemm));
  step.tiles = step.columnSums->numTiles();
  uint32_t matrix = gemm.columnSumsOf == Summed::A   ? gemm.a
                    : gemm.columnSumsOf == Summed::B ? gemm.b
                                                     : gemm.c;
  uint32_t sums = gemm.columnSums;
  bind(step, {{matrix, false}, {sums, true}}, {matrix, sums});
}

absl::Status PreparedProgram::addGemm(uint32_t command,
                                      const GemmCommand &gemm) {
  if (absl::Status status = addProduct(steps.emplace_back(), command, gemm);
      !status.ok())
    return status;
  if (gemm.mask >= 0)
    addMask(gemm);
  if (gemm.columnSums >= 0)
    addColumnSums(gemm);
  return absl::OkStatus();
}
