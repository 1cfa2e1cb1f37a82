//===- MachineModel.cpp - Machines as numbers -----------------------------===//

#include "shardc/CostModel/MachineModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace shardc;

const Link &Machine::getLink(StringRef axis) const {
  for (const auto &[name, link] : axisLinks)
    if (name == axis)
      return link;
  return defaultLink;
}

/// Between two measured numbers of bytes on the line through both in
/// logarithms.
static double interpolate(ArrayRef<std::pair<double, double>> seconds,
                          double bytes) {
  auto above =
      find_if(seconds, [&](const auto &one) { return one.first >= bytes; });
  if (above == seconds.begin())
    return above->second;
  const auto &below = *std::prev(above);
  if (above == seconds.end())
    return below.second * bytes / below.first;
  double part =
      std::log(bytes / below.first) / std::log(above->first / below.first);
  return below.second * std::pow(above->second / below.second, part);
}

double MeasuredCollective::getSeconds(double wireBytes) const {
  return interpolate(seconds, wireBytes);
}

double ComputerRates::getLeastSeconds(CollectiveKind kind, double bytes) const {
  const auto &measured = collectives[static_cast<unsigned>(kind)];
  return measured.empty() ? 0 : interpolate(measured, bytes);
}

/// What a side of `elements` costs, in parts of the time of a GEMM.
static double getExcess(const ShortSides::Side &side, double elements) {
  if (side.empty())
    return 0;
  // Of each product of the other two sides; between two measured ones linear in
  // the logarithm.
  auto getCost = [](const auto &one) { return one.first * one.second; };
  auto found =
      find_if(side, [&](const auto &one) { return one.first >= elements; });
  if (found == side.begin())
    return getCost(*found) / elements;
  const auto &below = *std::prev(found);
  std::pair<double, double> above(ShortSides::usual, 0);
  if (found != side.end())
    above = *found;
  else if (elements >= above.first)
    return below.first < above.first ? 0 : getCost(below) / elements;
  double part =
      std::log(elements / below.first) / std::log(above.first / below.first);
  return ((1 - part) * getCost(below) + part * getCost(above)) / elements;
}

double ShortSides::getSlowdown(double ofRows, double ofColumns,
                               double ofTerms) const {
  return 1 + getExcess(rows, ofRows) + getExcess(columns, ofColumns) +
         getExcess(terms, ofTerms);
}

const MeasuredCollective *Machine::findMeasured(CollectiveKind kind,
                                                ArrayRef<LinkAxis> axes) const {
  int64_t devices = 1, apart = 1;
  for (const LinkAxis &axis : reverse(axes)) {
    if (axis.size == 1)
      continue;
    if (devices > 1 && axis.apart != apart * devices && !isShared)
      return nullptr;
    if (devices == 1)
      apart = axis.apart;
    devices *= axis.size;
  }
  auto getDistance = [&](const MeasuredCollective &one) {
    auto ratio = isShared ? static_cast<double>(one.devices) / devices
                          : static_cast<double>(one.apart) / apart;
    return std::abs(std::log(ratio));
  };
  const MeasuredCollective *nearest = nullptr;
  for (const MeasuredCollective &one : collectives)
    if (one.kind == kind && (isShared || one.devices == devices) &&
        (!nearest || getDistance(one) < getDistance(*nearest)))
      nearest = &one;
  return nearest;
}

Machine Machine::withFastestLinks() const {
  Machine fastest = *this;
  if (collectives.empty())
    return fastest;
  double rate = 0;
  for (const MeasuredCollective &one : collectives)
    for (const auto &[bytes, seconds] : one.seconds)
      rate =
          std::max(rate, bytes / seconds *
                             (isShared ? one.devices / double(numSharing) : 1));
  auto widen = [&](Link &link) {
    link.bytesPerSecond = std::max(link.bytesPerSecond, rate);
    link.latencySeconds = 0;
  };
  widen(fastest.defaultLink);
  widen(fastest.hostLink);
  for (auto &axis : fastest.axisLinks)
    widen(axis.second);
  return fastest;
}

double shardc::getSecondsPerByte(ArrayRef<MemoryRate> rates, double distance) {
  const MemoryRate *above = find_if(
      rates, [&](const MemoryRate &one) { return one.bytes >= distance; });
  if (above == rates.begin())
    return 1 / rates.front().bytesPerSecond;
  if (above == rates.end())
    return 1 / rates.back().bytesPerSecond;
  const MemoryRate &below = *std::prev(above);
  double part =
      std::log(distance / below.bytes) / std::log(above->bytes / below.bytes);
  return (1 - part) / below.bytesPerSecond + part / above->bytesPerSecond;
}

/// The factor at `side`; 1 if there are none.
static double getFactor(const GemmTimes::Factors &factors, double side) {
  if (factors.empty())
    return 1;
  auto above = llvm::find_if(
      factors, [&](const auto &one) { return one.first >= side; });
  if (above == factors.begin())
    return above->second;
  const auto &below = *std::prev(above);
  if (above == factors.end())
    return below.second;
  double part =
      std::log(side / below.first) / std::log(above->first / below.first);
  return (1 - part) * below.second + part * above->second;
}

double GemmTimes::getSeconds(double rows, double columns, double terms,
                             const GemmForm &form) const {
  /// The measured elements of a side on both sides of those of a GEMM, as
  /// numbers, the part of the way to the second, and the factor beyond.
  struct Place {
    size_t below, above;
    double part, beyond;
  };
  auto find = [](ArrayRef<double> side, double elements) -> Place {
    if (elements >= side.back())
      return {side.size() - 1, side.size() - 1, 0, elements / side.back()};
    auto above =
        static_cast<size_t>(llvm::lower_bound(side, elements) - side.begin());
    if (above == 0)
      return {0, 0, 0, 1};
    return {above - 1, above,
            std::log(elements / side[above - 1]) /
                std::log(side[above] / side[above - 1]),
            1};
  };
  const Place row = find(sides[0], rows), column = find(sides[1], columns),
              term = find(sides[2], terms);
  auto at = [&](size_t row, size_t column) {
    const double *first =
        &seconds[(row * sides[1].size() + column) * sides[2].size()];
    return (1 - term.part) * std::log(first[term.below]) +
           term.part * std::log(first[term.above]);
  };
  auto ofRow = [&](size_t row) {
    return (1 - column.part) * at(row, column.below) +
           column.part * at(row, column.above);
  };
  const double side = std::cbrt(rows * columns * terms);
  const bool hasSums = form.sumsColumns && !sumsRhs.empty();
  double factor = hasSums             ? getFactor(sumsRhs, side)
                  : form.transposeLhs ? getFactor(transposeLhs, side)
                                      : 1;
  if (form.transposeRhs)
    factor *= getFactor(transposeRhs, side);
  return std::exp((1 - row.part) * ofRow(row.below) +
                  row.part * ofRow(row.above)) *
         row.beyond * column.beyond * term.beyond * factor;
}

double ComputerRates::getFactorSeconds(double bytes, double distance) const {
  if (factors.empty())
    return 0;
  return bytes *
         std::max(0.0, shardc::getSecondsPerByte(factors, distance) +
                           getSecondsPerByte(1) - getSecondsPerByte(distance));
}

double ComputerRates::getMultiplyAdds(double rows, double columns, double terms,
                                      bool storesPieces) const {
  double vectors = std::floor(columns / vectorLanes);
  double perRow = vectors * (terms + vectorTerms);
  if (vectors * vectorLanes < columns) {
    auto lanes = static_cast<uint64_t>(columns - vectors * vectorLanes);
    double inPieces = llvm::popcount(lanes) * vectorTerms;
    perRow += terms + (storesPieces ? std::min(partialVectorTerms, inPieces)
                                    : partialVectorTerms);
  }
  return rows * perRow * vectorLanes;
}

double ComputerRates::getPairedMultiplyAdds(double rows, double columns,
                                            double terms) const {
  // Pairs of columns of four rows in 256 bits, on any CPU.
  constexpr double rowsOfVector = 4;
  double pairs = std::ceil(columns / 2);
  return std::ceil(rows / rowsOfVector) *
         (pairs * (terms + vectorTerms) + terms) * vectorLanes;
}

void Machine::shareAmong(int64_t devices) {
  if (!isShared)
    return;
  numSharing *= devices;
  for (MemoryRate &rate : memory) {
    rate.bytes /= devices;
    rate.bytesPerSecond /= devices;
  }
  commandSeconds =
      concurrentCommandSeconds == 0
          ? devices * commandSeconds
          : std::max(commandSeconds, devices * concurrentCommandSeconds);
  for (double &rate : flopsPerSecond)
    rate /= devices;
  memoryBytes /= devices;
  memoryBytesPerSecond /= devices;
  defaultLink.bytesPerSecond /= devices;
  for (auto &axis : axisLinks)
    axis.second.bytesPerSecond /= devices;
}

void Machine::placeOnHosts(ArrayRef<LinkAxis> axes) {
  if (devicesPerHost == 0)
    return;
  const size_t numNamed = axisLinks.size();
  /// The distance of neighbours along the axis.
  int64_t stride = 1;
  for (const LinkAxis &axis : llvm::reverse(axes)) {
    int64_t inner = stride;
    stride *= axis.size;
    bool isNamed =
        any_of(ArrayRef(axisLinks).take_front(numNamed),
               [&](const auto &each) { return each.first == axis.name; });
    if (isNamed || axis.size == 1 || stride <= devicesPerHost)
      continue;
    // Devices of a ring in one host.
    double members = std::max<int64_t>(devicesPerHost / inner, 1);
    Link link = hostLink;
    link.bytesPerSecond *= portsPerHost * members / devicesPerHost;
    if (members > 1)
      link.bytesPerSecond =
          std::min(link.bytesPerSecond, defaultLink.bytesPerSecond);
    axisLinks.emplace_back(axis.name.str(), link);
  }
}

double shardc::getWireSeconds(const Machine &machine, int64_t wireBytes,
                              ArrayRef<LinkAxis> axes) {
  double secondsPerByte = 0;
  for (const LinkAxis &axis : axes)
    if (axis.size > 1)
      secondsPerByte = std::max(secondsPerByte,
                                1 / machine.getLink(axis.name).bytesPerSecond);
  return wireBytes * secondsPerByte;
}

static int64_t getSteps(CollectiveKind kind, int64_t size) {
  if (size <= 1)
    return 0;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return 2 * Log2_64_Ceil(size);
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    return Log2_64_Ceil(size);
  case CollectiveKind::AllToAll:
    return size - 1;
  case CollectiveKind::CollectivePermute:
  case CollectiveKind::Send:
    return 1;
  }
  return 0;
}

double shardc::getLatencySeconds(const Machine &machine, CollectiveKind kind,
                                 ArrayRef<LinkAxis> axes) {
  double seconds = 0;
  for (const LinkAxis &axis : axes)
    seconds +=
        getSteps(kind, axis.size) * machine.getLink(axis.name).latencySeconds;
  return seconds;
}

double shardc::getCollectiveSeconds(const Machine &machine, CollectiveKind kind,
                                    int64_t wireBytes,
                                    ArrayRef<LinkAxis> axes) {
  if (const MeasuredCollective *measured = machine.findMeasured(kind, axes)) {
    double bytes = static_cast<double>(wireBytes);
    if (machine.isShared)
      bytes *= double(machine.numSharing) / measured->devices;
    return measured->getSeconds(bytes);
  }
  return getLatencySeconds(machine, kind, axes) +
         getWireSeconds(machine, wireBytes, axes);
}
