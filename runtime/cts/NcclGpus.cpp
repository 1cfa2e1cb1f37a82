//===- NcclGpus.cpp - Collectives by NCCL under the suite -----------------===//

#include "NcclGpus.h"

#include "GpuBuffers.h"

#include "../test/fake/Fake.h"

#include "backends/cuda/Collectives.h"
#include "shardc-rt/HostArray.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <iostream>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

constexpr absl::Duration patience = absl::Minutes(1);

/// To the other processes, for all tests; null: there are none.
Store *ranksStore() {
  static const std::unique_ptr<Store> store = []() -> std::unique_ptr<Store> {
    absl::StatusOr<Ranks> ranks = ranksFromEnvironment();
    if (!ranks.ok() || ranks->size == 1) {
      if (!ranks.ok())
        std::cerr << ranks.status().message() << "\n";
      return nullptr;
    }
    auto connected = Store::connect(*ranks, {patience});
    if (!connected.ok()) {
      std::cerr << connected.status().message() << "\n";
      std::exit(1);
    }
    return *std::move(connected);
  }();
  return store.get();
}

/// The GPU of one device.
struct Place {
  int64_t device;
  std::unique_ptr<cuda::Context> context;
  std::unique_ptr<cuda::Stream> stream;
  std::unique_ptr<BufferPool> pool;
};

class OnGpus : public PreparedCollective {
public:
  OnGpus(const std::vector<Place> &places) : places(places) {}

  int64_t numTasks() const override { return 1; }
  absl::Status runTask(int64_t) override;

  std::vector<GpuBuffers> buffers; ///< By place.
  std::unique_ptr<cuda::DeviceCollective> collective;
  /// Results of all devices on the host, and their bytes.
  std::vector<std::pair<std::vector<void *>, uint64_t>> results;

private:
  absl::Status exchange(Store &store);

  const std::vector<Place> &places;
};

class NcclGpus : public Collectives {
public:
  ~NcclGpus() override { backend.reset(); }

  /// False: not on this mesh.
  absl::StatusOr<bool> open(const Mesh &mesh);

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override;

private:
  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::Nccl> nccl;
  std::vector<Place> places;
  std::unique_ptr<cuda::DeviceCollectives> backend;
};

} // namespace

absl::Status OnGpus::runTask(int64_t) {
  std::vector<const cuda::Stream *> streams;
  for (size_t i = 0; i < places.size(); ++i) {
    if (absl::Status s = buffers[i].toGpu(); !s.ok())
      return s;
    streams.push_back(places[i].stream.get());
  }
  if (absl::Status s = collective->issue(streams); !s.ok())
    return s;
  for (GpuBuffers &ofPlace : buffers)
    if (absl::Status s = ofPlace.toHost(); !s.ok())
      return s;
  return ranksStore() ? exchange(*ranksStore()) : absl::OkStatus();
}

absl::Status OnGpus::exchange(Store &store) {
  std::string mine;
  for (const auto &[out, bytes] : results)
    mine.append(static_cast<const char *>(out[store.ranks().rank]), bytes);
  auto all = store.gatherAll("a case", mine, patience);
  if (!all.ok())
    return all.status();
  for (size_t rank = 0; rank < all->size(); ++rank) {
    const char *from = (*all)[rank].data();
    for (const auto &[out, bytes] : results) {
      std::copy_n(from, bytes, static_cast<char *>(out[rank]));
      from += bytes;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> NcclGpus::open(const Mesh &mesh) {
  Store *store = ranksStore();
  const int64_t devices = mesh.numDevices();
  if (store && store->ranks().size != devices)
    return false;
  const std::string path = libraryOf("SHARDC_LIBCUDA");
  if (path == FAKE_LIBRARY && !store)
    if (void *library = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
      auto state = reinterpret_cast<Fake *(*)()>(dlsym(library, "shardcFake"));
      state()->gpus = static_cast<int>(devices);
    }
  auto opened = cuda::Driver::open(path);
  if (!opened.ok())
    return opened.status();
  driver = *std::move(opened);
  auto count = cuda::countGpus(*driver);
  if (!count.ok())
    return count.status();
  if (!store && *count < devices)
    return false;
  auto library = cuda::Nccl::open(libraryOf("SHARDC_LIBNCCL"));
  if (!library.ok())
    return library.status();
  nccl = *std::move(library);
  std::vector<cuda::LocalDevice> local;
  for (int64_t i = 0; i < (store ? 1 : devices); ++i) {
    // Ranks share the GPUs there are.
    int gpu = store ? store->ranks().localRank % *count : i;
    auto context = cuda::Context::create(*driver, gpu);
    if (!context.ok())
      return context.status();
    auto stream = cuda::Stream::create(**context);
    if (!stream.ok())
      return stream.status();
    places.push_back({store ? store->ranks().rank : i, *std::move(context),
                      std::make_unique<cuda::Stream>(*std::move(stream)),
                      nullptr});
    places.back().pool = std::make_unique<BufferPool>(*places.back().context);
    local.push_back({places.back().device, places.back().context.get()});
  }
  auto communicators = cuda::Communicators::create(
      *nccl, mesh, std::move(local), store, patience);
  if (!communicators.ok())
    return communicators.status();
  backend = cuda::createNcclCollectives(*std::move(communicators));
  return true;
}

absl::StatusOr<std::unique_ptr<PreparedCollective>>
NcclGpus::prepare(const Mesh &mesh, CollectiveSpec spec) {
  auto prepared = std::make_unique<OnGpus>(places);
  std::vector<int64_t> devices;
  for (const Place &place : places) {
    prepared->buffers.emplace_back(*place.pool, *place.stream);
    devices.push_back(place.device);
  }
  for (CollectiveTensor &tensor : spec.tensors) {
    uint64_t width = byteSize(tensor.dtype);
    uint64_t inBytes = numElements(tensor.inShape) * width;
    uint64_t outBytes = numElements(tensor.outShape) * width;
    prepared->results.push_back({tensor.out, outBytes});
    std::vector<const void *> in;
    std::vector<void *> out;
    for (size_t i = 0; i < places.size(); ++i) {
      auto from =
          prepared->buffers[i].add(tensor.in[places[i].device], inBytes);
      auto to =
          prepared->buffers[i].add(tensor.out[places[i].device], outBytes);
      if (!from.ok() || !to.ok())
        return from.ok() ? to.status() : from.status();
      in.push_back(*from);
      out.push_back(*to);
    }
    tensor.in = std::move(in);
    tensor.out = std::move(out);
  }
  auto collective = backend->prepare(mesh, devices, spec);
  if (!collective.ok())
    return collective.status();
  prepared->collective = *std::move(collective);
  return prepared;
}

std::unique_ptr<Collectives>
shardc::rt::test::createNcclCollectives(const Mesh &mesh) {
  auto gpus = std::make_unique<NcclGpus>();
  absl::StatusOr<bool> opened = gpus->open(mesh);
  if (opened.ok())
    return *opened ? std::move(gpus) : nullptr;
  std::cerr << opened.status().message() << "\n";
  std::exit(1);
}
