//===- CompareRuns.cpp - The distance between two runs --------------------===//

#include "CompareRuns.h"

#include "base/Convert.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace shardc::run;
using namespace shardc::rt;

void Distance::extend(const Distance &other, double factor) {
  loss = std::max(loss, factor * other.loss);
  parameters = std::max(parameters, factor * other.parameters);
  ofChange = std::max(ofChange, factor * other.ofChange);
  for (auto &[name, limit] : tensors)
    if (auto found = other.tensors.find(name); found != other.tensors.end())
      limit = std::max(limit, factor * found->second);
}

std::string shardc::run::findExcess(const Distance &distance,
                                    const Distance &limits) {
  // Also for NaN.
  if (!(distance.loss <= limits.loss))
    return "losses";
  if (!(distance.parameters <= limits.parameters))
    return "parameters";
  if (!(distance.ofChange <= limits.ofChange))
    return "changes";
  for (const auto &[name, limit] : limits.tensors)
    if (!(distance.tensors.at(name) <= limit))
      return name;
  return "";
}

double shardc::run::rootMeanSquare(const HostArray &array) {
  int64_t count = numElements(array.shape);
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = numberAt(array, i);
    squares += value * value;
  }
  return count ? std::sqrt(squares / count) : 0;
}

double shardc::run::rootMeanSquare(const HostArray &from, const HostArray &to) {
  int64_t count = numElements(from.shape);
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = numberAt(to, i) - numberAt(from, i);
    squares += value * value;
  }
  return count ? std::sqrt(squares / count) : 0;
}

double Scales::of(double loss) const {
  return std::max({std::fabs(loss), greatestLoss / 1000, 1e-300});
}

/// Sets the distance of the losses.
static void compareLosses(const RunSegment &expected, const RunSegment &actual,
                          const Scales &scales, Distance &distance) {
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    double loss = expected.losses[step];
    double difference = std::fabs(actual.losses[step] - loss) / scales.of(loss);
    if (actual.losses[step] != loss)
      distance.isBitEqual = false;
    // Also true for NaN.
    if (!(difference <= distance.loss)) {
      distance.loss = difference;
      distance.lossStep = static_cast<int64_t>(step);
    }
  }
}

Distance shardc::run::compareSegments(const Plan &plan, const ArrayMap &start,
                                      const RunSegment &expected,
                                      const RunSegment &actual,
                                      const Scales &scales) {
  Distance distance;
  compareLosses(expected, actual, scales, distance);
  double squares = 0, differences = 0, changes = 0, scale = 0, largest = 0;
  int64_t parameters = 0;
  for (const auto &[name, wanted] : expected.state) {
    const HostArray &found = actual.state.at(name);
    if (found.data != wanted.data)
      distance.isBitEqual = false;
    distance.tensors[name] = rootMeanSquare(wanted, found);
    if (plan.findTensor(name)->role != Role::Parameter)
      continue;
    const HostArray &before = start.at(name);
    int64_t count = numElements(wanted.shape);
    parameters += count;
    for (int64_t i = 0; i < count; ++i) {
      double value = numberAt(wanted, i);
      double difference = std::fabs(numberAt(found, i) - value);
      double change = value - numberAt(before, i);
      scale = std::max(scale, std::fabs(value));
      squares += value * value;
      differences += difference * difference;
      changes += change * change;
      if (!(difference <= largest)) {
        largest = difference;
        distance.where = absl::StrCat(name, " element ", i);
      }
    }
  }
  // Without a scale any difference is too large.
  auto relative = [](double part, double whole) {
    return whole > 0 ? part / whole : part > 0 ? INFINITY : part;
  };
  distance.parameters = scales.byMeanSquare
                            ? std::sqrt(relative(differences, squares))
                            : relative(largest, scale);
  distance.ofChange = std::sqrt(relative(differences, changes));
  return distance;
}

HostArray shardc::run::moveByRounding(const HostArray &array, double amount,
                                      uint64_t seed) {
  if (!isFloat(array.dtype))
    return array;
  absl::StatusOr<HostArray> moved = convert(array, DType::F64);
  std::mt19937_64 random(seed);
  for (double &value : moved->values<double>())
    value *= random() & 1 ? 1 + amount : 1 - amount;
  return *convert(*moved, array.dtype);
}

HostArray shardc::run::takeBack(const HostArray &array, const HostArray &start,
                                const HostArray &moved) {
  HostArray result(DType::F64, array.shape);
  int64_t count = numElements(array.shape);
  for (int64_t i = 0; i < count; ++i)
    result.values<double>()[i] =
        numberAt(array, i) - (numberAt(moved, i) - numberAt(start, i));
  return result;
}
