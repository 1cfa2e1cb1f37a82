//===- make-data.cpp - Data and parameters for tests ----------------------===//
//
//   make-data KIND ROWS LAYERS DATA.npz [PARAMS.npz]
//
// Writes ROWS rows for a model of LAYERS ("10,32,16,1"), seeded by the sizes:
//   real      x in (-2, 2), y likewise: for mse
//   labels    x in (-2, 2), y a class: for softmax_cross_entropy
//   zero-rows likewise, but two rows of three are zeros, of class 0
//   integers  x and y in {-1, 0, 1}: for mse, exactly representable
// and, if asked, integer parameters in {-1, 0, 1}.
//
//===----------------------------------------------------------------------===//

#include "data/Npz.h"
#include "shardc-rt/Trainer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

using namespace shardc::rt;

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014 (SplitMix64).
static uint64_t next(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static HostArray fill(std::vector<int64_t> shape, bool integers,
                      uint64_t &state) {
  HostArray array(DType::F32, std::move(shape));
  for (float &value : array.values<float>())
    value = integers ? static_cast<float>(next(state) % 3) - 1.0f
                     : static_cast<float>(next(state) >> 40) * 0x1p-22f - 2.0f;
  return array;
}

int main(int argc, char **argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "make-data: four or five arguments expected\n");
    return 1;
  }
  std::string kind = argv[1];
  int64_t rows = std::atoll(argv[2]);
  std::vector<int64_t> layers;
  std::istringstream list(argv[3]);
  for (std::string size; std::getline(list, size, ',');)
    layers.push_back(std::atoll(size.c_str()));
  uint64_t state = rows;
  for (int64_t size : layers)
    state = state * 31 + size;

  bool integers = kind == "integers";
  ArrayMap data;
  data["x"] = fill({rows, layers.front()}, integers, state);
  if (kind == "labels" || kind == "zero-rows") {
    HostArray y(DType::I32, {rows});
    for (int32_t &label : y.values<int32_t>())
      label = static_cast<int32_t>(next(state) % layers.back());
    if (kind == "zero-rows")
      for (int64_t row = 0; row < rows; ++row)
        if (row % 3 != 0) {
          std::fill_n(&data["x"].values<float>()[row * layers.front()],
                      layers.front(), 0.0f);
          y.values<int32_t>()[row] = 0;
        }
    data["y"] = std::move(y);
  } else {
    data["y"] = fill({rows, layers.back()}, integers, state);
  }
  absl::Status status = writeArrays(argv[4], data);
  if (status.ok() && argc == 6) {
    ArrayMap parameters;
    for (size_t i = 0; i + 1 < layers.size(); ++i) {
      std::string number = std::to_string(i);
      parameters["w" + number] =
          fill({layers[i], layers[i + 1]}, /*integers=*/true, state);
      parameters["b" + number] =
          fill({layers[i + 1]}, /*integers=*/true, state);
    }
    status = writeArrays(argv[5], parameters);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "make-data: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
