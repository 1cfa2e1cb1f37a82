//===- GemmSteps.cpp - The steps of GEMMs ---------------------------------===//

#include "exec/GemmSteps.h"

#include "exec/MergeGemms.h"

#include "absl/algorithm/container.h"

#include <algorithm>

using namespace shardc::rt;

/// A GEMM, with a bias and a relu, of all devices.
struct GemmSteps::Merged {
  const GemmCommand &command;
  GemmCommand merged;
  GemmTypes types;
  std::vector<GemmPointers> calls;
  /// One for every copy of the results, before calls were merged.
  std::vector<int64_t> devices;
  uint64_t firstPacked; ///< The place of its first packed factor.
  std::shared_ptr<const PreparedGemm> first;
  /// Adds the second and further terms of a sum; null if there are none, or
  /// `first` adds them up.
  std::shared_ptr<const PreparedGemm> added;

  size_t numTerms() const { return calls[0].terms.size(); }
  /// The factors of some terms of a call.
  static Factors factorsOf(const GemmPointers &call, Terms terms, bool ofA) {
    Factors factors;
    for (size_t term = terms.begin; term < terms.end; ++term)
      factors.push_back(ofA ? call.terms[term].a : call.terms[term].b);
    return factors;
  }
  /// The different ones of all calls.
  std::vector<Factors> distinct(Terms terms, bool ofA) const {
    std::vector<Factors> factors;
    for (const GemmPointers &one : calls)
      factors.push_back(factorsOf(one, terms, ofA));
    std::sort(factors.begin(), factors.end());
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    return factors;
  }
  /// What is packed for all tiles of some terms.
  std::vector<Factors> shared(Terms terms) const {
    return distinct(terms, isShared(PreparedGemm::SharedFactor::A));
  }
  bool isShared(PreparedGemm::SharedFactor factor) const {
    return first->sharedFactor() == factor;
  }
  /// The distance of packed factors.
  uint64_t packedStride() const {
    return (first->packedBytes() + 63) / 64 * 64;
  }
};

MatrixPieces GemmSteps::piecesOf(uint32_t buffer) const {
  const GatheredFactors::Factor *factor = gathered.find(buffer);
  return factor ? factor->pieces : MatrixPieces();
}

/// What the table has for a factor that is, or would be gathered, at `address`.
void *GemmSteps::place(uint32_t buffer, char *address) const {
  const GatheredFactors::Factor *factor = gathered.find(buffer);
  if (!factor)
    return address;
  absl::Span<void *const> shards = factor->addresses.at(address);
  return factor->numPieces == 1 ? shards[0]
                                : const_cast<void **>(shards.data());
}

/// Adds the pieces of a factor, if it lies in several, as operands.
void GemmSteps::addPieces(Step &step, uint32_t buffer,
                          std::vector<uint32_t> &operands) const {
  if (!isInPieces(buffer))
    return;
  const GatheredFactors::Factor &factor = *gathered.find(buffer);
  step.pieces += factor.numPieces;
  operands.insert(operands.end(), factor.numPieces, buffer);
  step.accesses.insert(step.accesses.end(), factor.numPieces,
                       {factor.bytesOfPiece, false});
}

/// Adds their addresses to the table.
void GemmSteps::bindPieces(Step &step, uint32_t buffer, char *address) const {
  if (!isInPieces(buffer))
    return;
  absl::Span<void *const> shards = gathered.find(buffer)->addresses.at(address);
  step.table.insert(step.table.end(), shards.begin(), shards.end());
}

/// Packs the shared factors of some terms, each once.
void GemmSteps::addPacking(const Merged &gemms, Terms terms, int64_t round) {
  Step &step = prepared.steps.emplace_back();
  step.kind = Step::Kind::Pack;
  step.devices = gemms.devices;
  step.gemm = terms.begin == 0 ? gemms.first : gemms.added;
  step.round = round;
  step.tiles = step.gemm->numPackTasks(round);
  step.hasPacked = true;
  bool isA = gemms.isShared(PreparedGemm::SharedFactor::A);
  const GemmCommand &merged = gemms.merged;
  const uint32_t buffer = isA ? gemms.command.a : gemms.command.b;
  uint64_t bytes = merged.batch * merged.k * (isA ? merged.m : merged.n) *
                   byteSize(gemms.types.factors);
  std::vector<uint32_t> numbers(terms.end - terms.begin, buffer);
  step.accesses.assign(numbers.size(), {isInPieces(buffer) ? 0 : bytes, false});
  for (size_t term = terms.begin; term < terms.end; ++term)
    addPieces(step, buffer, numbers);
  step.accesses.push_back({step.gemm->packedBytes(), true});
  buffers.setStrides(step, numbers);
  if (!step.strides.empty())
    step.strides.push_back(0);
  step.operands = numbers.size() + 1;
  std::vector<Factors> factors = gemms.shared(terms);
  for (size_t i = 0; i < factors.size(); ++i) {
    step.calls.push_back({nullptr, step.table.size()});
    uint64_t packed = gemms.firstPacked + i * gemms.packedStride();
    for (char *factor : factors[i])
      step.table.push_back(place(buffer, factor));
    for (char *factor : factors[i])
      bindPieces(step, buffer, factor);
    step.table.push_back(reinterpret_cast<void *>(packed));
  }
  nextPacked = gemms.firstPacked + factors.size() * gemms.packedStride();
  prepared.packedBytes = std::max(prepared.packedBytes, nextPacked);
}

/// The tiles of some terms.
void GemmSteps::addTiles(const Merged &gemms, Terms terms, int64_t round) {
  Step &step = prepared.steps.emplace_back();
  const GemmCommand &command = gemms.command, &merged = gemms.merged;
  step.kind = Step::Kind::Gemm;
  step.devices = gemms.devices;
  step.flops = 2.0 * merged.batch * merged.m * merged.n * merged.k *
               gemms.calls.size() * (terms.end - terms.begin) /
               gemms.first->numRounds();
  step.gemm = terms.begin == 0 ? gemms.first : gemms.added;
  step.addTerm = gemms.added;
  step.round = round;
  step.tiles = step.gemm->numTiles();
  step.hasBias = command.bias >= 0;
  step.hasPacked = !gemms.isShared(PreparedGemm::SharedFactor::None);
  std::vector<uint32_t> numbers;
  uint64_t factor = merged.batch * byteSize(gemms.types.factors);
  for (size_t term = terms.begin; term < terms.end; ++term) {
    numbers.insert(numbers.end(), {command.a, command.b});
    for (auto [buffer, elements] : {std::pair(command.a, merged.m * merged.k),
                                    std::pair(command.b, merged.k * merged.n)})
      step.accesses.push_back(
          {isInPieces(buffer) ? 0 : elements * factor, false});
  }
  numbers.push_back(command.c);
  uint64_t result = merged.batch * byteSize(gemms.types.result);
  step.accesses.push_back({merged.m * merged.n * result, true});
  if (step.hasBias) {
    numbers.push_back(command.bias);
    step.accesses.push_back(
        {buffers.program().buffers[command.bias].bytes, false});
  }
  for (size_t term = terms.begin; term < terms.end; ++term)
    for (uint32_t buffer : {command.a, command.b})
      addPieces(step, buffer, numbers);
  buffers.setStrides(step, numbers);
  step.operands = numbers.size();
  std::vector<Factors> shared;
  if (step.hasPacked) {
    shared = gemms.shared(terms);
    step.accesses.push_back({step.gemm->packedBytes(), false});
    ++step.operands;
    if (!step.strides.empty())
      step.strides.push_back(0);
  }
  for (const GemmPointers &one : gemms.calls) {
    step.calls.push_back({nullptr, step.table.size()});
    for (size_t term = terms.begin; term < terms.end; ++term)
      step.table.insert(step.table.end(),
                        {place(command.a, one.terms[term].a),
                         place(command.b, one.terms[term].b)});
    step.table.push_back(one.c);
    if (step.hasBias)
      step.table.push_back(one.bias);
    for (size_t term = terms.begin; term < terms.end; ++term) {
      bindPieces(step, command.a, one.terms[term].a);
      bindPieces(step, command.b, one.terms[term].b);
    }
    if (step.hasPacked) {
      Factors own = Merged::factorsOf(
          one, terms, gemms.isShared(PreparedGemm::SharedFactor::A));
      size_t number = absl::c_lower_bound(shared, own) - shared.begin();
      step.table.push_back(reinterpret_cast<void *>(
          gemms.firstPacked + number * gemms.packedStride()));
    }
  }
}

/// The GEMM itself, with a bias and a relu, for all devices.
void GemmSteps::addMerged(uint32_t command, const GemmCommand &gemm) {
  Merged gemms{gemm,    gemm,   buffers.program().typesOf(gemm),
               {},      {},     nextPacked,
               nullptr, nullptr};
  gemms.devices = buffers.devices().layout.devicesFor(
      buffers.number,
      operandsOf(buffers.program(), buffers.program().commands[command]));
  gemms.calls = bindGemms(buffers, command, gemms.merged);
  const bool inOrder = buffers.devices().layout.addsInOrder();
  const GemmPieces pieces{piecesOf(gemm.a), piecesOf(gemm.b),
                          scattered.columnsOfBlocks(gemm.c)};

  const Terms all{0, gemms.numTerms()}, one{0, inOrder ? all.end : 1};
  GemmCalls calls{
      static_cast<int64_t>(gemms.calls.size()),
      static_cast<int64_t>(gemms.distinct(one, /*ofA=*/true).size()),
      static_cast<int64_t>(gemms.distinct(one, /*ofA=*/false).size())};
  if (inOrder && all.end > 1) {
    gemms.first = PreparedGemm::prepareSum(gemms.merged, gemms.types, all.end,
                                           calls, pieces);
  } else {
    gemms.first =
        PreparedGemm::prepare(gemms.merged, gemms.types, calls, pieces);
    GemmCommand added = gemms.merged;
    added.accumulate = true;
    if (all.end > 1)
      gemms.added = PreparedGemm::prepare(added, gemms.types, calls, pieces);
  }
  int64_t rounds = gemms.first->numRounds();
  if (gemms.isShared(PreparedGemm::SharedFactor::None)) {
    for (int64_t round = 0; round < rounds; ++round)
      addTiles(gemms, all, round);
    return;
  }
  for (Terms terms = one; terms.begin < all.end;
       terms = {terms.end, terms.end + 1})
    for (int64_t round = 0; round < rounds; ++round) {
      addPacking(gemms, terms, round);
      addTiles(gemms, terms, round);
    }
}

/// The step behind a GEMM with sums over the columns of one of its factors.
void GemmSteps::addColumnSums(const GemmCommand &gemm) {
  Step &step = prepared.steps.emplace_back();
  step.kind = Step::Kind::ColumnSums;
  step.columnSums.emplace(gemm, buffers.program().typesOf(gemm));
  step.tiles = step.columnSums->numTiles();
  uint32_t matrix = gemm.columnSumsOf == Summed::A ? gemm.a : gemm.b;
  uint32_t sums = gemm.columnSums;
  buffers.bind(step, {{matrix, false}, {sums, true}}, {matrix, sums});
}

void GemmSteps::add(uint32_t command, const GemmCommand &gemm) {
  addMerged(command, gemm);
  if (gemm.columnSums >= 0)
    addColumnSums(gemm);
}
