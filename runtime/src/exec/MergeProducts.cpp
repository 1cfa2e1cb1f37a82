//===- MergeProducts.cpp - One product instead of many --------------------===//

#include "exec/MergeProducts.h"

#include <algorithm>

using namespace shardc::rt;

/// All terms of every sum into one.
static void mergeTerms(GemmCommand &gemm, GemmTypes types,
                       std::vector<ProductPlaces> &products) {
  int64_t count = products[0].terms.size();
  // Rows along k follow one another if they are whole rows of the factor.
  if (count == 1 || (!gemm.transposeA && gemm.m != 1) ||
      (gemm.transposeB && gemm.n != 1))
    return;
  int64_t width = byteSize(types.factors);
  int64_t aBytes = gemm.m * gemm.k * width, bBytes = gemm.k * gemm.n * width;
  for (const ProductPlaces &product : products)
    for (int64_t i = 0; i < count; ++i)
      if (product.terms[i].a != product.terms[0].a + i * aBytes ||
          product.terms[i].b != product.terms[0].b + i * bBytes)
        return;
  for (ProductPlaces &product : products)
    product.terms.resize(1);
  gemm.k *= count;
}

/// Whether `product` is as `first` with rows `rows` further down.
static bool continues(const GemmCommand &gemm, GemmTypes types,
                      const ProductPlaces &first, const ProductPlaces &product,
                      int64_t rows) {
  if (product.c != first.c + rows * gemm.n * byteSize(types.result) ||
      product.bias != first.bias)
    return false;
  for (size_t i = 0; i < first.terms.size(); ++i)
    if (product.terms[i].a !=
            first.terms[i].a + rows * gemm.k * byteSize(types.factors) ||
        product.terms[i].b != first.terms[i].b)
      return false;
  return true;
}

/// Equal numbers of neighbours into one each, as many as possible.
static void mergeRows(GemmCommand &gemm, GemmTypes types,
                      std::vector<ProductPlaces> &products) {
  if (gemm.transposeA && gemm.k != 1)
    return;
  std::sort(
      products.begin(), products.end(),
      [](const ProductPlaces &x, const ProductPlaces &y) { return x.c < y.c; });
  size_t count = products.size();
  auto fits = [&](size_t group) {
    for (size_t i = 0; i < count; ++i) {
      size_t first = i / group * group;
      if (!continues(gemm, types, products[first], products[i],
                     (i - first) * gemm.m))
        return false;
    }
    return true;
  };
  size_t group = count;
  while (count % group != 0 || !fits(group))
    --group;
  for (size_t i = 0; i < count / group; ++i)
    products[i] = products[i * group];
  products.resize(count / group);
  gemm.m *= group;
}

void shardc::rt::mergeProducts(GemmCommand &gemm, GemmTypes types,
                               std::vector<ProductPlaces> &products) {
  if (gemm.batch != 1 || gemm.m == 0 || gemm.n == 0 || gemm.k == 0)
    return;
  mergeTerms(gemm, types, products);
  mergeRows(gemm, types, products);
}
