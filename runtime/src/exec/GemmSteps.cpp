//===- GemmSteps.cpp - The steps of GEMMs ---------------------------------===//

#include "exec/GemmSteps.h"

#include "exec/MergeGemms.h"

#include "absl/algorithm/container.h"

#include <algorithm>

using namespace shardc::rt;

/// Where a factor of a GEMM is.
struct GemmSteps::Factor {
  uint32_t buffer;
  uint64_t bytes; ///< Of a matrix of the merged GEMM.
  MatrixPieces pieces;
  int64_t numPieces = 1;
  uint64_t bytesOfPiece = 0;
  /// If pieces are shards, which would be gathered in the buffer.
  const GatheredFactors::Factor *gathered = nullptr;

  /// Of a matrix that is, or would be, at `address` the address that the GEMM
  /// takes.
  void *place(char *address) const {
    if (!gathered)
      return address;
    absl::Span<void *const> shards = gathered->addresses.at(address);
    return numPieces == 1 ? shards[0] : const_cast<void **>(shards.data());
  }
  /// Without those of pieces, which are operands of their own.
  uint64_t bytesInPlace() const { return pieces.isWhole() ? bytes : 0; }
  /// The address of piece `i` of several.
  void *piece(char *address, int64_t i) const {
    if (gathered)
      return gathered->addresses.at(address)[i];
    return address + i * pieces.distance * byteSize(DType::F32);
  }
};

/// A GEMM, with a bias and a relu, of all devices.
struct GemmSteps::Merged {
  const GemmCommand &command;
  GemmTypes types;
  GemmCommand merged;
  std::vector<GemmPointers> calls;
  Factor a, b;
  /// One for every copy of the results, before calls were merged.
  std::vector<int64_t> devices;
  uint64_t firstPacked; ///< The place of its first packed factor.
  std::shared_ptr<const PreparedGemm> first = nullptr;
  /// Adds the second and further terms of a sum; null if there are none, or
  /// `first` adds them up.
  std::shared_ptr<const PreparedGemm> added = nullptr;

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

/// The factor in `buffer`, of `bytes`, or in pieces of `own` bytes that lie as
/// `joined` says.
GemmSteps::Factor GemmSteps::factorOf(uint32_t buffer, uint64_t bytes,
                                      uint64_t own,
                                      const MatrixPieces &joined) const {
  Factor factor{buffer, bytes, joined};
  if (const GatheredFactors::Factor *gather = gathered.find(buffer)) {
    factor.gathered = gather;
    factor.pieces = gather->pieces;
    factor.numPieces = gather->numPieces;
    factor.bytesOfPiece = gather->bytesOfPiece;
  } else if (!joined.isWhole()) {
    factor.numPieces = bytes / own;
    factor.bytesOfPiece = own;
  }
  return factor;
}

/// Adds the pieces of a factor, if it lies in several, as operands.
void GemmSteps::addPieces(Step &step, const Factor &factor,
                          std::vector<uint32_t> &operands) const {
  if (factor.pieces.isWhole())
    return;
  step.pieces += factor.numPieces;
  operands.insert(operands.end(), factor.numPieces, factor.buffer);
  step.accesses.insert(step.accesses.end(), factor.numPieces,
                       {factor.bytesOfPiece, false});
}

/// Adds their addresses to the table.
void GemmSteps::bindPieces(Step &step, const Factor &factor,
                           char *address) const {
  for (int64_t i = 0; !factor.pieces.isWhole() && i < factor.numPieces; ++i)
    step.table.push_back(factor.piece(address, i));
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
  const Factor &factor = isA ? gemms.a : gemms.b;
  std::vector<uint32_t> numbers(terms.end - terms.begin, factor.buffer);
  step.accesses.assign(numbers.size(), {factor.bytesInPlace(), false});
  for (size_t term = terms.begin; term < terms.end; ++term)
    addPieces(step, factor, numbers);
  step.accesses.push_back({step.gemm->packedBytes(), true});
  buffers.setStrides(step, numbers);
  if (!step.strides.empty())
    step.strides.push_back(0);
  step.operands = numbers.size() + 1;
  std::vector<Factors> factors = gemms.shared(terms);
  for (size_t i = 0; i < factors.size(); ++i) {
    step.calls.push_back({nullptr, step.table.size()});
    uint64_t packed = gemms.firstPacked + i * gemms.packedStride();
    for (char *address : factors[i])
      step.table.push_back(factor.place(address));
    for (char *address : factors[i])
      bindPieces(step, factor, address);
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
  for (size_t term = terms.begin; term < terms.end; ++term)
    for (const Factor *factor : {&gemms.a, &gemms.b}) {
      numbers.push_back(factor->buffer);
      step.accesses.push_back({factor->bytesInPlace(), false});
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
    for (const Factor *factor : {&gemms.a, &gemms.b})
      addPieces(step, *factor, numbers);
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
      step.table.insert(step.table.end(), {gemms.a.place(one.terms[term].a),
                                           gemms.b.place(one.terms[term].b)});
    step.table.push_back(one.c);
    if (step.hasBias)
      step.table.push_back(one.bias);
    for (size_t term = terms.begin; term < terms.end; ++term) {
      bindPieces(step, gemms.a, one.terms[term].a);
      bindPieces(step, gemms.b, one.terms[term].b);
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
  const GemmTypes types = buffers.program().typesOf(gemm);
  MergedGemms bound = bindGemms(
      buffers, command, {!gathered.find(gemm.a), !gathered.find(gemm.b)});
  const GemmCommand &merged = bound.command;
  const uint64_t width = gemm.batch * byteSize(types.factors);
  Merged gemms{
      gemm,
      types,
      merged,
      std::move(bound.calls),
      factorOf(gemm.a, merged.m * merged.k * width, gemm.m * gemm.k * width,
               bound.pieces.a),
      factorOf(gemm.b, merged.k * merged.n * width, gemm.k * gemm.n * width,
               bound.pieces.b),
      buffers.devices().layout.devicesFor(
          buffers.number,
          operandsOf(buffers.program(), buffers.program().commands[command])),
      nextPacked};
  const bool inOrder = buffers.devices().layout.addsInOrder();
  const GemmPieces pieces{gemms.a.pieces, gemms.b.pieces,
                          scattered.columnsOfBlocks(gemm.c)};

  const Terms all{0, gemms.numTerms()}, one{0, inOrder ? all.end : 1};
  GemmCalls calls{
      static_cast<int64_t>(gemms.calls.size()),
      static_cast<int64_t>(gemms.distinct(one, /*ofA=*/true).size()),
      static_cast<int64_t>(gemms.distinct(one, /*ofA=*/false).size())};
  if (inOrder && all.end > 1) {
    gemms.first = PreparedGemm::prepareSum(gemms.merged, gemms.types, all.end,
                                           calls, pieces, kernels);
  } else {
    gemms.first = PreparedGemm::prepare(gemms.merged, gemms.types, calls,
                                        pieces, kernels);
    GemmCommand added = gemms.merged;
    added.accumulate = true;
    if (all.end > 1)
      gemms.added =
          PreparedGemm::prepare(added, gemms.types, calls, pieces, kernels);
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
