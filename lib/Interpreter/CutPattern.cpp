//===- CutPattern.cpp - The cuts of a dimension by a mesh -----------------===//

#include "shardc/Interpreter/ShrinkSizes.h"
#include "shardc/Sharding/Layout.h"

using namespace mlir;
using namespace shardc;

static int64_t getProduct(ArrayRef<int64_t> axes, unsigned set) {
  int64_t product = 1;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (set >> axis & 1)
      product *= axes[axis];
  return product;
}

/// The properties that isCutAlike compares, for groups `major` and `minor`.
static unsigned getPattern(int64_t size, ArrayRef<int64_t> axes, unsigned major,
                           unsigned minor) {
  int64_t p = getProduct(axes, major), q = getProduct(axes, minor);
  int64_t shard = ceilDiv(size, p);
  bool divides = size % p == 0, isGreater = p > size,
       leavesNone = ceilDiv(size, shard) < p,
       isNested = q * ceilDiv(size, p * q) == shard;
  return divides | isGreater << 1 | leavesNone << 2 | isNested << 3;
}

bool shardc::isCutAlike(int64_t size, ArrayRef<int64_t> axes, int64_t otherSize,
                        ArrayRef<int64_t> otherAxes) {
  unsigned all = 1u << axes.size();
  for (unsigned major = 0; major < all; ++major)
    for (unsigned minor = 0; minor < all; ++minor)
      if ((major & minor) == 0 &&
          getPattern(size, axes, major, minor) !=
              getPattern(otherSize, otherAxes, major, minor))
        return false;
  return true;
}
