//===- MeasureDevice.cpp - What the workers of a process attain -----------===//

#include "MeasureDevice.h"

#include "exec/MeasureRates.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

double shardc::run::rounded(double value) {
  double shortened = 0;
  return absl::SimpleAtod(absl::StrFormat("%.3g", value), &shortened)
             ? shortened
             : value;
}

void DeviceRates::measure(WorkerPool &pool, double seconds,
                          std::initializer_list<DType> types) {
  constexpr int64_t usual = 1024;
  auto measureOne = [&](DType type, const char *side, int64_t elements,
                        int64_t rows, int64_t columns, int64_t terms,
                        double time) {
    double &best = flops[{type, side, elements}];
    best = std::max(best, measureGemm(pool, time, type, rows, columns, terms));
  };
  for (DType type : {DType::F32, DType::BF16})
    measureOne(type, "", 0, usual, usual, usual, seconds);
  for (DType type : types)
    for (int64_t few : {8, 32, 128}) {
      measureOne(type, "rows", few, few, usual, usual, seconds / 4);
      measureOne(type, "columns", few, usual, few, usual, seconds / 4);
      measureOne(type, "terms", few, usual, usual, few, seconds / 4);
    }
  bytesPerSecond = std::max(bytesPerSecond, measureMemory(pool, seconds));
}

void DeviceRates::update(const DeviceRates &other) {
  for (const auto &[gemm, rate] : other.flops)
    flops[gemm] = std::max(flops[gemm], rate);
  bytesPerSecond = std::max(bytesPerSecond, other.bytesPerSecond);
}

void DeviceRates::write(Json &machine, double memoryBytes) const {
  Json device, gemms;
  // There are no GEMMs of f64; a vector holds half as many.
  device["flops_per_second"]["f64"] = rounded(f32() / 2);
  // Other work on the computer lowers rates: no side has one below that of a
  // shorter one, which comes before it.
  double least = 0;
  std::pair<DType, std::string> previous;
  for (const auto &[gemm, measured] : flops) {
    std::pair<DType, std::string> side(gemm.type, gemm.side);
    least = side == previous ? std::max(least, measured) : measured;
    previous = side;
    const double rate = least;
    const char *type = gemm.type == DType::F32 ? "f32" : "bf16";
    if (gemm.side.empty())
      device["flops_per_second"][type] = rounded(rate);
    else
      gemms[type][gemm.side][std::to_string(gemm.elements)] = rounded(rate);
  }
  device["memory_bytes"] = rounded(memoryBytes);
  device["memory_bytes_per_second"] = rounded(bytesPerSecond);
  machine["device"] = std::move(device);
  machine["gemms"] = std::move(gemms);
}

double shardc::run::physicalBytes() {
  return double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE));
}
