//===- PackPanel.cpp - Columns of a factor, side by side ------------------===//
//
// Where the columns of a product's second factor do not lie side by side, those
// of one panel are copied to the stack, as vectors of columns for each k.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc {

/// Bytes of the stack that packed columns may take, on vectors of the base.
static constexpr int64_t maxScratchBytes = 256 << 10;

Value NestBuilder::getScratch(int64_t elements) {
  if (scratch)
    return scratch;
  DotGeneralOp dot = nest.dot;
  Type type = NestEmitter::getComputeType(dot.getResult());
  Value count = emitter.constantI64(elements);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(count);
  scratch = builder.create<LLVM::AllocaOp>(
      loc, LLVM::LLVMPointerType::get(builder.getContext()), type, count,
      /*alignment=*/64);
  return scratch;
}

/// Transposes a square of as many rows as lanes. Each round pairs rows and
/// interleaves their elements, at first one by one and then in growing groups:
/// within 128 bits, as one instruction does, as long as groups are smaller.
static SmallVector<Value> transpose(OpBuilder &builder, Location loc,
                                    SmallVector<Value> rows) {
  int64_t size = rows.size();
  // Of each vector the columns that its lanes hold; alike for the two of a
  // pair.
  SmallVector<SmallVector<int64_t>> columns(
      size, llvm::to_vector(llvm::seq<int64_t>(0, size)));
  for (int64_t group = 1; group < size; group *= 2) {
    int64_t within = group < 4 ? 4 : size;
    // The low halves interleaved, or the high ones.
    auto interleave = [&](int64_t first, int64_t half) {
      SmallVector<int64_t> sources, held;
      for (int64_t lane = 0; lane < size; ++lane) {
        int64_t place = lane % within;
        int64_t source = lane - place + half * within / 2 +
                         place / (2 * group) * group + place % group;
        held.push_back(columns[first][source]);
        sources.push_back(place & group ? size + source : source);
      }
      Value vector = builder.create<vector::ShuffleOp>(
          loc, rows[first], rows[first + group], sources);
      return std::pair(vector, held);
    };
    for (int64_t first = 0; first < size; ++first) {
      if (first & group)
        continue;
      auto low = interleave(first, 0), high = interleave(first, 1);
      rows[first] = low.first;
      rows[first + group] = high.first;
      columns[first] = low.second;
      columns[first + group] = high.second;
    }
  }
  SmallVector<Value> transposed(size);
  for (auto [row, held] : llvm::zip_equal(rows, columns))
    transposed[held[0]] = row;
  return transposed;
}

Value NestBuilder::packPanel(const Index &batch, const Index &column,
                             int64_t columns) {
  const GemmView &gemm = plan.gemm;
  DotGeneralOp dot = nest.dot;
  Type type = NestEmitter::getComputeType(dot.getResult());
  int64_t width = gemm.n > numLanes ? 2 * numLanes : numLanes;
  if (gemm.k * width * type.getIntOrFloatBitWidth() / 8 >
      maxScratchBytes * (numLanes / baseLanes))
    return nullptr;
  Value packed = getScratch(gemm.k * width);
  Value operand = plan.isSwapped ? dot.getLhs() : dot.getRhs();
  auto load = [&](const Index &k, const Index &place, int64_t stride,
                  int64_t lanes) {
    Value from = getLinear({{batch, gemm.rhs.batch},
                            {place, gemm.rhs.free},
                            {k, gemm.rhs.contracted}});
    return emitter.load(operand, from, stride, lanes);
  };
  auto store = [&](const Index &k, int64_t offset, Value lanes) {
    Index to = emitter.addIndex(emitter.mulIndex(k, width), offset);
    Value address = emitter.getAddress(packed, type, to.value);
    builder.create<LLVM::StoreOp>(loc, lanes, address, 4 * numLanes);
  };

  // Whole vectors of columns whose elements lie side by side along k come in
  // squares.
  int64_t squares = gemm.rhs.contracted == 1 ? gemm.k / numLanes : 0;
  int64_t whole = columns / numLanes * numLanes;
  if (squares > 0 && whole > 0)
    emitter.buildCountedLoop(squares, {}, [&](Index square, ValueRange) {
      Index k = emitter.mulIndex(square, numLanes);
      for (int64_t offset = 0; offset < whole; offset += numLanes) {
        SmallVector<Value> rows;
        for (int64_t lane = 0; lane < numLanes; ++lane)
          rows.push_back(load(k, emitter.addIndex(column, offset + lane),
                              gemm.rhs.contracted, numLanes));
        for (auto [i, lanes] :
             llvm::enumerate(transpose(builder, loc, std::move(rows))))
          store(emitter.addIndex(k, i), offset, lanes);
      }
      return SmallVector<Value>();
    });
  auto packRest = [&](int64_t firstK, int64_t begin, int64_t end) {
    if (firstK == gemm.k || begin >= end)
      return;
    emitter.buildCountedLoop(gemm.k - firstK, {}, [&](Index rest, ValueRange) {
      Index k = emitter.addIndex(rest, firstK);
      for (int64_t offset = begin; offset < end; offset += numLanes)
        store(k, offset,
              load(k, emitter.addIndex(column, offset), gemm.rhs.free,
                   std::min(numLanes, columns - offset)));
      return SmallVector<Value>();
    });
  };
  packRest(squares * numLanes, 0, whole);
  packRest(0, whole, columns);
  return packed;
}

} // namespace shardc
