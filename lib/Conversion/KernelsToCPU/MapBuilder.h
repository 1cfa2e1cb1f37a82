//===- MapBuilder.h - Elementwise nests -------------------------*- C++ -*-===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_MAPBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_MAPBUILDER_H

#include "NestBuilder.h"

namespace shardc {

/// Builds an elementwise nest, in vectors where its values allow it.
class MapBuilder : public NestBuilder {
public:
  using NestBuilder::NestBuilder;

  void build(UnitRange range);

private:
  /// At linear places of all tensors alike.
  void buildFlat(UnitRange range);
  /// In vectors along the last dimension longer than 1.
  void buildVectorised(UnitRange range);
  /// One element at a time.
  void buildScalar(UnitRange range);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_MAPBUILDER_H
