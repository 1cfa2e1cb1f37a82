//===- compare-training.cpp - A run against golden values -----------------===//
//
//   compare-training METRICS.jsonl LOSSES.json PARAMS.npz EXPECTED.npz
//                    LOSS-TOLERANCE PARAMETER-TOLERANCE [BYTES.json KEY]
//
// Compares the loss of every step, relatively, and every parameter, relative to
// the largest magnitude of its array. LOSSES.json has a number for each step,
// or an object with the loss and other metrics, which are compared as the loss
// is. Entry KEY of BYTES.json is [collectives, bytes] of a step: none may send
// more, and with the key "cheapest" none more than "xla" says. Prints the
// largest differences; exit code 1 if one is over its tolerance or if something
// is missing on either side.
//
//===----------------------------------------------------------------------===//

#include "data/Npz.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace shardc::rt;

static int fail(const std::string &message) {
  std::fprintf(stderr, "compare-training: %s\n", message.c_str());
  return 1;
}

static std::vector<nlohmann::json> readMetrics(const char *path) {
  std::vector<nlohmann::json> steps;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line))
    steps.push_back(nlohmann::json::parse(line, nullptr, false));
  return steps;
}

/// The largest relative difference of the metrics in `expected`; NaN if one is
/// missing.
static double compareMetrics(const nlohmann::json &actual,
                             const nlohmann::json &expected) {
  if (expected.is_number())
    return compareMetrics(actual, {{"loss", expected}});
  double largest = 0;
  for (const auto &[name, value] : expected.items()) {
    auto found = actual.find(name);
    double wanted = value.get<double>();
    double got = found != actual.end() && found->is_number()
                     ? found->get<double>()
                     : std::nan("");
    double difference =
        std::fabs(got - wanted) / std::fmax(std::fabs(wanted), 1e-30);
    if (!(difference <= largest))
      largest = difference;
  }
  return largest;
}

/// The bytes that a step may send, or -1 if the file does not say so.
static double readMostBytes(const char *path, const std::string &key) {
  std::ifstream file(path);
  nlohmann::json counts = nlohmann::json::parse(file, nullptr, false);
  auto bytesOf = [&](const std::string &name) {
    return counts.is_object() && counts.contains(name) &&
                   counts[name].size() == 2
               ? counts[name][1].get<double>()
               : -1;
  };
  return key == "cheapest" ? std::fmin(bytesOf(key), bytesOf("xla"))
                           : bytesOf(key);
}

int main(int argc, char **argv) {
  if (argc != 7 && argc != 9)
    return fail("six or eight arguments expected");
  double lossTolerance = std::atof(argv[5]);
  double parameterTolerance = std::atof(argv[6]);

  std::vector<nlohmann::json> losses = readMetrics(argv[1]);
  std::ifstream lossFile(argv[2]);
  nlohmann::json expectedLosses =
      nlohmann::json::parse(lossFile, nullptr, false);
  if (!expectedLosses.is_array() || expectedLosses.empty() ||
      expectedLosses.size() != losses.size())
    return fail(std::to_string(losses.size()) + " steps in " + argv[1] +
                ", expected those of " + argv[2]);
  double largestLoss = 0;
  for (size_t step = 0; step < losses.size(); ++step) {
    double difference = compareMetrics(losses[step], expectedLosses[step]);
    if (!(difference <= largestLoss))
      largestLoss = difference;
  }

  if (argc == 9) {
    double most = readMostBytes(argv[7], argv[8]);
    for (const nlohmann::json &step : losses)
      if (!(step["wire_bytes"].get<double>() <= most))
        return fail("a step sends " + step["wire_bytes"].dump() +
                    " bytes, expected at most " + std::to_string(most));
  }

  absl::StatusOr<ArrayMap> actual = readNpz(argv[3]);
  absl::StatusOr<ArrayMap> expected = readNpz(argv[4]);
  if (!actual.ok() || !expected.ok())
    return fail(std::string(
        (actual.ok() ? expected.status() : actual.status()).message()));
  if (actual->size() != expected->size())
    return fail("the archives hold different numbers of parameters");
  double largestParameter = 0;
  for (const auto &[name, array] : *expected) {
    auto found = actual->find(name);
    if (found == actual->end() || found->second.shape != array.shape ||
        found->second.dtype != DType::F32 || array.dtype != DType::F32)
      return fail("parameter " + name + " is missing or of another shape");
    double scale = 0, largest = 0;
    for (size_t i = 0; i < array.values<float>().size(); ++i) {
      double value = array.values<float>()[i];
      double difference = std::fabs(value - found->second.values<float>()[i]);
      scale = std::fmax(scale, std::fabs(value));
      if (!(difference <= largest))
        largest = difference;
    }
    double relative = scale > 0 ? largest / scale : largest;
    if (!(relative <= largestParameter))
      largestParameter = relative;
  }

  std::printf("losses differ by at most %.3g, parameters by %.3g\n",
              largestLoss, largestParameter);
  return largestLoss <= lossTolerance && largestParameter <= parameterTolerance
             ? 0
             : 1;
}
