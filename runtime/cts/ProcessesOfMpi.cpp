//===- ProcessesOfMpi.cpp - Collectives by MPI under the suite ------------===//

#include "ProcessesOfMpi.h"

#include "base/Memory.h"
#include "collectives/BetweenProcesses.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Processes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

using namespace shardc::rt;

namespace {

/// Those that mpirun started, until the program ends; null: there is one.
Processes *processesOfMpi() {
  static Processes *processes = [] {
    absl::StatusOr<Ranks> ranks = ranksFromEnvironment();
    if (!ranks.ok() || ranks->launcher != "mpirun" || ranks->size == 1)
      return static_cast<Processes *>(nullptr);
    ranks->address.clear();
    ranks->port = 0;
    ProcessesOptions options;
    options.mpiPath = MPI_LIBRARY;
    auto opened = Processes::connect(*ranks, options);
    if (!opened.ok()) {
      std::cerr << opened.status().message() << "\n";
      std::exit(1);
    }
    return opened->release();
  }();
  static bool isEnding =
      processes && std::atexit([] {
                     if (absl::Status s = processesOfMpi()->end(); !s.ok())
                       std::cerr << s.message() << "\n";
                     delete processesOfMpi();
                   }) == 0;
  (void)isEnding;
  return processes;
}

/// Operands and results of this process in memory that others see: copies of
/// the suite's.
class SeenCopies {
public:
  /// Moves the operands and results of a collective there.
  void moveInto(CollectiveSpec &spec) {
    for (CollectiveTensor &tensor : spec.tensors) {
      const uint64_t width = byteSize(tensor.dtype);
      for (const void *in : tensor.in)
        add(in, numElements(tensor.inShape) * width);
      for (const void *out : tensor.out)
        add(out, numElements(tensor.outShape) * width);
    }
    if (!memory.allocateVisible(bytes))
      std::abort();
    for (CollectiveTensor &tensor : spec.tensors) {
      for (const void *&in : tensor.in)
        in = in ? at(in) : nullptr;
      for (void *&out : tensor.out)
        out = out ? at(out) : nullptr;
    }
  }
  const Memory &seen() const { return memory; }
  void copyFromSuite() const {
    for (const auto &[of, copy] : copies)
      std::memcpy(memory.get() + copy.offset, of, copy.bytes);
  }
  void copyToSuite() const {
    for (const auto &[of, copy] : copies)
      std::memcpy(const_cast<void *>(of), memory.get() + copy.offset,
                  copy.bytes);
  }

private:
  struct Copy {
    uint64_t offset, bytes;
  };
  void add(const void *of, uint64_t size) {
    if (!of || !copies.try_emplace(of, Copy{bytes, size}).second)
      return;
    bytes += (size + 63) / 64 * 64;
  }
  void *at(const void *of) const { return memory.get() + copies.at(of).offset; }

  std::map<const void *, Copy> copies;
  uint64_t bytes = 0;
  Memory memory;
};

/// A collective, all rounds of which are one task.
class InMpi : public PreparedCollective {
public:
  InMpi(std::unique_ptr<PreparedCollective> first,
        std::vector<std::pair<std::vector<void *>, uint64_t>> results,
        std::unique_ptr<SeenCopies> copies, int64_t devices,
        Transport &transport)
      : first(std::move(first)), results(std::move(results)),
        copies(std::move(copies)), devices(devices), transport(transport) {}

  int64_t numTasks() const override { return 1; }

  absl::Status runTask(int64_t) override {
    if (copies)
      copies->copyFromSuite();
    for (PreparedCollective *part : {first->start(), first.get()})
      for (PreparedCollective *round = part; round; round = round->next())
        for (int64_t task = round->numTasks(); task-- > 0;)
          if (absl::Status s = round->runTask(task); !s.ok())
            return s;
    if (copies)
      copies->copyToSuite();
    std::string mine;
    forEachResult(transport.rank(), [&](void *result, uint64_t bytes) {
      mine.append(static_cast<const char *>(result), bytes);
    });
    auto all = transport.gatherAll(mine);
    if (!all.ok())
      return all.status();
    for (int process = 0; process < transport.size(); ++process) {
      const char *from = (*all)[process].data();
      forEachResult(process, [&](void *result, uint64_t bytes) {
        std::copy_n(from, bytes, static_cast<char *>(result));
        from += bytes;
      });
    }
    return absl::OkStatus();
  }

private:
  template <typename Visit>
  void forEachResult(int process, Visit visit) {
    DeviceRange local = devicesOfProcess(devices, process, transport.size());
    for (const auto &[out, bytes] : results)
      for (int64_t device = local.first; device < local.last; ++device)
        visit(out[device], bytes);
  }

  std::unique_ptr<PreparedCollective> first;
  /// By tensor, and device of any process.
  std::vector<std::pair<std::vector<void *>, uint64_t>> results;
  std::unique_ptr<SeenCopies> copies; ///< Null: the suite's memory is used.
  int64_t devices;
  Transport &transport;
};

class MpiCollectives : public Collectives {
public:
  /// `areSeen`: the processes read operands and results of each other in place,
  /// however few bytes they have.
  MpiCollectives(Transport &transport, bool areSeen)
      : transport(transport), areSeen(areSeen),
        backend(createCollectivesBetweenProcesses(
            transport, areSeen ? 0 : mostSmallBytes)) {}

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    DeviceRange local =
        devicesOfProcess(mesh.numDevices(), transport.rank(), transport.size());
    std::vector<std::pair<std::vector<void *>, uint64_t>> results;
    for (CollectiveTensor &tensor : spec.tensors) {
      results.push_back(
          {tensor.out, numElements(tensor.outShape) * byteSize(tensor.dtype)});
      for (int64_t device = 0; device < mesh.numDevices(); ++device)
        if (!local.contains(device)) {
          tensor.in[device] = nullptr;
          tensor.out[device] = nullptr;
        }
    }
    std::unique_ptr<SeenCopies> copies;
    if (areSeen) {
      copies = std::make_unique<SeenCopies>();
      copies->moveInto(spec);
      backend->useMemory(copies->seen());
    }
    auto prepared = backend->prepare(mesh, std::move(spec));
    if (!prepared.ok())
      return prepared.status();
    return std::make_unique<InMpi>(*std::move(prepared), std::move(results),
                                   std::move(copies), mesh.numDevices(),
                                   transport);
  }

private:
  Transport &transport;
  const bool areSeen;
  std::unique_ptr<Collectives> backend;
};

} // namespace

static std::unique_ptr<Collectives> create(const Mesh &mesh, bool areSeen) {
  Processes *processes = processesOfMpi();
  if (!processes || mesh.numDevices() < processes->size() ||
      mesh.numDevices() > 4 * processes->size())
    return nullptr;
  return std::make_unique<MpiCollectives>(processes->transport(), areSeen);
}

std::unique_ptr<Collectives>
shardc::rt::test::createMpiCollectives(const Mesh &mesh) {
  return create(mesh, /*areSeen=*/false);
}

std::unique_ptr<Collectives>
shardc::rt::test::createSeenMpiCollectives(const Mesh &mesh) {
  return create(mesh, /*areSeen=*/true);
}
