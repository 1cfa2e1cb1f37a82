//===- FakeNcclTest.cpp - The fake's sends and receives -------------------===//
//
// A send ends when its receiver has it, and both have to agree in their sizes:
// what would hang on GPUs hangs here, too.
//
//===----------------------------------------------------------------------===//

#include "fake/Fake.h"

#include "Processes.h"

#include "backends/cuda/Collectives.h"
#include "backends/cuda/DeviceMemory.h"
#include "shardc-rt/Store.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// A transfer as one of two processes issues it.
struct Issued {
  int64_t from, to;
  uint64_t bytes;
};

/// Issues groups of transfers in each of two processes, and waits for them.
/// Both get the first byte that rank 0 has, or say why not.
std::vector<std::string>
exchange(const std::vector<std::vector<std::vector<Issued>>> &groupsOfRank) {
  return runRanks(2, [&](const Ranks &ranks) -> std::string {
    auto say = [](const absl::Status &status) {
      return std::string(status.message());
    };
    auto store = Store::connect(ranks, {absl::Seconds(30)});
    if (!store.ok())
      return say(store.status());
    auto driver = cuda::Driver::open(FAKE_LIBRARY);
    auto nccl = cuda::Nccl::open(FAKE_LIBRARY);
    auto context = cuda::Context::create(**driver, 0);
    auto stream = cuda::Stream::create(**context);
    auto memory = cuda::DeviceMemory::allocate(**context, 128, "a test");
    Mesh mesh({{"stage", 2}});
    auto communicators = cuda::Communicators::create(
        **nccl, mesh, {{ranks.rank, context->get()}}, store->get(),
        absl::Seconds(30));
    if (!communicators.ok())
      return say(communicators.status());
    // Both make the part, whether or not they use it.
    if (absl::Status s = (*communicators)->over({0}).status(); !s.ok())
      return say(s);
    auto collectives = cuda::createNcclCollectives(*std::move(communicators));
    auto *bytes =
        reinterpret_cast<char *>(static_cast<uintptr_t>(memory->address()));
    std::fill_n(bytes, 64, static_cast<char>('a' + ranks.rank));
    std::fill_n(bytes + 64, 64, '-');
    for (const std::vector<Issued> &group : groupsOfRank[ranks.rank]) {
      std::vector<cuda::DeviceTransfer> transfers;
      for (const Issued &one : group)
        transfers.push_back({one.from, one.to, memory->address(),
                             memory->address() + 64, one.bytes});
      auto prepared =
          collectives->prepareTransfers(mesh, {ranks.rank}, 0, transfers);
      if (!prepared.ok())
        return say(prepared.status());
      const cuda::Stream *streams[] = {&*stream};
      if (absl::Status s = (*prepared)->issue(streams); !s.ok())
        return say(s);
    }
    if (absl::Status s = collectives->check(); !s.ok()) {
      collectives->abort();
      return say(s);
    }
    auto event = cuda::Event::create(**context);
    std::string result(1, bytes[64]);
    if (!event->record(*stream).ok() ||
        !event->wait(absl::Milliseconds(100), "waiting").ok())
      result = "hangs";
    if (result == "hangs")
      collectives->abort();
    // Neither leaves before the other has looked.
    (void)(*store)->gatherAll("the end", result, absl::Seconds(30));
    return result;
  });
}

using Said = std::vector<std::string>;

class FakeNcclTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("SHARDC_FAKE_PATIENCE_MS", "300", 1);
    library = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    *reinterpret_cast<Fake *(*)()>(dlsym(library, "shardcFake"))() = Fake();
  }
  void TearDown() override {
    dlclose(library);
    unsetenv("SHARDC_FAKE_PATIENCE_MS");
  }

  void *library = nullptr;
};

} // namespace

TEST_F(FakeNcclTest, AMessageCrosses) {
  EXPECT_EQ(exchange({{{{0, 1, 8}}}, {{{0, 1, 8}}}}), Said({"-", "a"}));
}

TEST_F(FakeNcclTest, OppositeMessagesCrossInOneGroup) {
  std::vector<std::vector<Issued>> both = {{{0, 1, 8}, {1, 0, 8}}};
  EXPECT_EQ(exchange({both, both}), Said({"b", "a"}));
  // Nobody receives before its own send has ended.
  EXPECT_EQ(exchange({{{{0, 1, 8}}, {{1, 0, 8}}}, {{{1, 0, 8}}, {{0, 1, 8}}}}),
            Said({"hangs", "hangs"}));
  // One of them may be a group of its own, behind the other.
  EXPECT_EQ(exchange({both, {{{0, 1, 8}}, {{1, 0, 8}}}}), Said({"b", "a"}));
}

TEST_F(FakeNcclTest, ASendWaitsForItsReceive) {
  EXPECT_EQ(exchange({{{{0, 1, 8}}}, {}})[0], "hangs");
  EXPECT_EQ(exchange({{}, {{{0, 1, 8}}}})[1], "hangs");
}

TEST_F(FakeNcclTest, BothAgreeInTheirSizes) {
  Said said = exchange({{{{0, 1, 8}}}, {{{0, 1, 16}}}});
  EXPECT_NE(said[0], "-");
  EXPECT_NE(
      said[1].find("send and receive over stage: an error of the fake (4)"),
      std::string::npos)
      << said[1];
}
