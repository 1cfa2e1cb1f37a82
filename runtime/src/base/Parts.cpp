//===- Parts.cpp - Work that threads of its own divide --------------------===//

#include "base/Parts.h"

#include "base/UsableCpus.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

using namespace shardc::rt;

int shardc::rt::copyThreads() {
  constexpr int most = 8;
  return std::min(findUsableCpus().count(), most);
}

void shardc::rt::forEachPart(
    int64_t count, int64_t least, int threads,
    absl::FunctionRef<void(int64_t, int64_t, int64_t)> run) {
  const int64_t parts =
      std::clamp<int64_t>(count / std::max<int64_t>(least, 1), 1, threads);
  auto runPart = [&](int64_t part) {
    run(part, count * part / parts, count * (part + 1) / parts);
  };
  std::vector<std::thread> helpers;
  int64_t begun = 1;
  try {
    for (; begun < parts; ++begun)
      helpers.emplace_back(runPart, begun);
  } catch (const std::system_error &) {
    // No more threads: this one runs the rest.
  }
  runPart(0);
  for (; begun < parts; ++begun)
    runPart(begun);
  for (std::thread &helper : helpers)
    helper.join();
}
