//===- MergeProducts.h - One product instead of many ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_MERGEPRODUCTS_H
#define SHARDC_RT_SRC_EXEC_MERGEPRODUCTS_H

#include "plan/PlanSpec.h"

#include <vector>

namespace shardc::rt {

/// Where one device's product, or a sum of several, has its operands.
struct ProductPlaces {
  struct Factors {
    char *a, *b;
  };
  /// The products that are added up, in this order: one or more.
  std::vector<Factors> terms;
  char *bias; ///< Null if there is none.
  char *c;
};

/// Makes few large products of many small ones where operands lie side by side
/// in memory. Terms of a sum whose rows of a (transposed) and b follow one
/// another are one product with a longer k; products with the same b whose rows
/// of a and c follow one another are one with a larger m. `gemm` is changed
/// accordingly.
void mergeProducts(GemmCommand &gemm, GemmTypes types,
                   std::vector<ProductPlaces> &products);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MERGEPRODUCTS_H
