//===- GemmView.cpp - dot_general as a strided GEMM -----------------------===//

#include "shardc/Analysis/GemmView.h"

using namespace mlir;

namespace shardc {

/// The single stride and size of the dimensions `dims` of a row-major `shape`,
/// in this order; false if they have none.
static bool collapse(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims,
                     int64_t &size, int64_t &stride) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  size = 1;
  stride = 0;
  for (int64_t dim : llvm::reverse(dims)) {
    if (shape[dim] == 1)
      continue;
    if (size == 1)
      stride = strides[dim];
    else if (strides[dim] != stride * size)
      return false;
    size *= shape[dim];
  }
  return true;
}

std::optional<GemmView> getGemmView(DotGeneralOp dot) {
  auto lhsShape = cast<RankedTensorType>(dot.getLhs().getType()).getShape();
  auto rhsShape = cast<RankedTensorType>(dot.getRhs().getType()).getShape();
  GemmView view;
  int64_t size;
  if (!collapse(lhsShape, dot.getLhsBatching(), view.batch, view.lhs.batch) ||
      !collapse(rhsShape, dot.getRhsBatching(), size, view.rhs.batch) ||
      !collapse(lhsShape, dot.getLhsContracting(), view.k,
                view.lhs.contracted) ||
      !collapse(rhsShape, dot.getRhsContracting(), size, view.rhs.contracted) ||
      !collapse(lhsShape, dot.getLhsFree(), view.m, view.lhs.free) ||
      !collapse(rhsShape, dot.getRhsFree(), view.n, view.rhs.free))
    return std::nullopt;
  auto isF32 = [](Value value) {
    return getElementTypeOrSelf(value.getType()).isF32();
  };
  view.isF32 =
      isF32(dot.getLhs()) && isF32(dot.getRhs()) && isF32(dot.getResult());
  return view;
}

int64_t getBlocksOfRows(int64_t rows, int64_t columns, int64_t elementsOfSum) {
  // Those of two narrow factors fill half a first-level cache. Larger blocks
  // are for rows, or sums, that have no such one; the caches hold them still.
  constexpr int64_t usualRows = 128, leastRows = 64, mostRows = 256;
  // Fewer are too little for several workers.
  constexpr int64_t leastBlocks = 4;
  // The sums of blocks are written and read beside the rows, and take memory.
  // 256 KiB of them still pay where they are no more than the rows.
  constexpr int64_t leastReadBySum = 4, fewElements = 1 << 16;
  // A second kernel costs more than is saved on fewer elements.
  constexpr int64_t leastElements = 1 << 12;
  if (rows * columns < leastElements)
    return 1;
  for (bool areFew : {false, true}) {
    auto isBlock = [&](int64_t size) {
      return rows % size == 0 && rows >= leastBlocks * size &&
             (areFew ? 1 : leastReadBySum) * elementsOfSum <= size * columns &&
             (!areFew || rows / size * elementsOfSum <= fewElements);
    };
    for (int64_t size = usualRows; size >= leastRows; --size)
      if (isBlock(size))
        return rows / size;
    for (int64_t size = usualRows + 1; size <= mostRows; ++size)
      if (isBlock(size))
        return rows / size;
  }
  return 1;
}

/// Whether the right factor is small, beside the rows too: it stays in the
/// second-level cache, and a packed panel of its columns in the first-level
/// one. Generated code reads the left factor where it is, which takes terms
/// side by side, and widens bf16 anew for each tile, the library once. It does
/// not divide a matrix of a batch among workers.
static bool hasSmallFactor(const GemmView &view) {
  const int64_t mostSide = view.isF32 ? 192 : 32;
  const int64_t side = std::max(view.k, view.n);
  return view.batch == 1 && (view.lhs.contracted == 1 || view.k == 1) &&
         side <= mostSide && side <= view.m;
}

/// Whether the GEMM adds up rows that `shardc-split-sums` cuts into blocks,
/// whose products stay in the second-level cache.
static bool isSumOfBlocks(const GemmView &view) {
  constexpr int64_t mostSide = 128, leastBySide = 2;
  const int64_t side = std::max(view.m, view.n);
  return view.lhs.free == 1 && view.rhs.free == 1 && view.batch == 1 &&
         view.isF32 && side <= mostSide && leastBySide * side <= view.k &&
         getBlocksOfRows(view.k, view.m + view.n, view.m * view.n) > 1;
}

bool isLargeGemm(const GemmView &view, bool isForCPU) {
  if (isForCPU && (hasSmallFactor(view) || isSumOfBlocks(view)))
    return false;
  // Multiply-adds of one GEMM from which on the library is faster, including
  // its call and the separate epilogue.
  int64_t threshold = 1 << 20;
  // With fewer rows than that, the runtime merges GEMMs of several devices.
  constexpr int64_t leastSide = 64, smallElements = 1 << 14;
  if (isForCPU && view.isF32 &&
      std::min({view.m, view.n, view.k}) >= leastSide &&
      std::min({view.m * view.k, view.k * view.n, view.m * view.n}) <=
          smallElements)
    threshold = 1 << 22;
  // Narrow results leave the library no tiles; they are bound by memory. On a
  // CPU few rows of a batch, as a device has them, are not: the library reads
  // the right factor once for all devices, and packs nothing for one.
  constexpr int64_t narrow = 4, fewRowsOfBf16 = 2;
  const bool areRowsOfBatch = isForCPU && view.lhs.contracted == 1;
  const int64_t fewRows = !areRowsOfBatch ? narrow
                          : view.isF32    ? 0
                                          : fewRowsOfBf16;
  return view.m * view.n * view.k >= threshold && view.n > narrow &&
         view.m > fewRows;
}

} // namespace shardc
