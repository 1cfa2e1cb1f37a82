//===- MeasureDevice.h - What the workers of a process attain ---*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASUREDEVICE_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASUREDEVICE_H

#include "exec/WorkerPool.h"
#include "shardc-rt/DType.h"

#include <map>
#include <nlohmann/json.hpp>

namespace shardc::run {

using Json = nlohmann::ordered_json;

/// Three digits: more would be noise.
double rounded(double value);

/// Rates of GEMMs and of memory, each the best that has been measured.
class DeviceRates {
public:
  /// Measures all of them once more, for about `seconds` each; of GEMMs with a
  /// short side those of `types`.
  void measure(rt::WorkerPool &pool, double seconds,
               std::initializer_list<rt::DType> types);

  /// Those of `other` where they are better.
  void update(const DeviceRates &other);

  double f32() const { return flops.at({rt::DType::F32, "", 0}); }
  double memory() const { return bytesPerSecond; }

  /// Adds the keys `device` and `gemms` to a machine file, of which the device
  /// has a share of `memoryBytes`.
  void write(Json &machine, double memoryBytes) const;

private:
  struct Gemm {
    rt::DType type;
    /// The short side and its elements; empty: all sides have 1024.
    std::string side;
    int64_t elements;
    bool operator<(const Gemm &o) const {
      return std::tie(type, side, elements) <
             std::tie(o.type, o.side, o.elements);
    }
  };
  std::map<Gemm, double> flops;
  double bytesPerSecond = 0;
};

/// The memory of this computer.
double physicalBytes();

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASUREDEVICE_H
